"""Processor time in milliseconds to load one photo in Python as `detector train` does: decode, crop with
jitter .3, resize to 416x416, change hue, saturation and exposure, flip, planes of floats. Called by
loading.sh.

    load_image.py cv2|PIL LIST
"""
import os, random, sys, time

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
import numpy as np

SIDE, JITTER, HUE, SATURATION, EXPOSURE, ROUNDS = 416, .3, .1, 1.5, 1.5, 4


def scale(most):
    factor = random.uniform(1, most)
    return factor if random.random() < .5 else 1 / factor


def crop_of(w, h):
    """Left, top, right, bottom: parts of the photo, and black beyond it."""
    dw, dh = w * JITTER, h * JITTER
    return [int(v) for v in (random.uniform(-dw, dw), random.uniform(-dh, dh),
                             w + random.uniform(-dw, dw), h + random.uniform(-dh, dh))]


def planes(rgb, flip):
    if flip: rgb = rgb[:, ::-1]
    return np.ascontiguousarray(rgb.transpose(2, 0, 1), dtype=np.float32) / 255


def by_cv2(file):
    image = cv2.imread(file)
    h, w = image.shape[:2]
    left, top, right, bottom = crop_of(w, h)
    # only what lies in the photo is resized, to its place on a black canvas
    x0, x1, y0, y1 = max(left, 0), min(right, w), max(top, 0), min(bottom, h)
    sx, sy = SIDE / (right - left), SIDE / (bottom - top)
    cx, cy = int((x0 - left) * sx), int((y0 - top) * sy)
    cw, ch = max(int((x1 - x0) * sx), 1), max(int((y1 - y0) * sy), 1)
    canvas = np.zeros((SIDE, SIDE, 3), np.uint8)
    canvas[cy:cy + ch, cx:cx + cw] = cv2.resize(image[y0:y1, x0:x1], (cw, ch))
    hue, sat, val = cv2.split(cv2.cvtColor(canvas, cv2.COLOR_BGR2HSV))
    steps = np.arange(256, dtype=np.float32)
    hue = cv2.LUT(hue, ((steps + 180 * random.uniform(-HUE, HUE)) % 180).astype(np.uint8))
    sat = cv2.LUT(sat, np.clip(steps * scale(SATURATION), 0, 255).astype(np.uint8))
    val = cv2.LUT(val, np.clip(steps * scale(EXPOSURE), 0, 255).astype(np.uint8))
    rgb = cv2.cvtColor(cv2.merge((hue, sat, val)), cv2.COLOR_HSV2RGB)
    return planes(rgb, random.random() < .5)


def by_pil(file):
    image = Image.open(file).convert("RGB")
    box = crop_of(*image.size)
    image = image.transform((SIDE, SIDE), Image.Transform.EXTENT, box, Image.Resampling.BILINEAR)
    hue, sat, val = image.convert("HSV").split()
    turn, more, brighter = 255 * random.uniform(-HUE, HUE), scale(SATURATION), scale(EXPOSURE)
    hue = hue.point([int(i + turn) % 256 for i in range(256)])
    sat = sat.point([min(int(i * more), 255) for i in range(256)])
    val = val.point([min(int(i * brighter), 255) for i in range(256)])
    return planes(np.asarray(Image.merge("HSV", (hue, sat, val)).convert("RGB")), random.random() < .5)


if sys.argv[1] == "cv2":
    import cv2
    cv2.setNumThreads(1)
    load = by_cv2
else:
    from PIL import Image
    load = by_pil
files = open(sys.argv[2]).read().split()
random.seed(1)
load(files[0])
began = time.process_time()
for _ in range(ROUNDS):
    for name in files: load(name)
print(1e3 * (time.process_time() - began) / (ROUNDS * len(files)))
