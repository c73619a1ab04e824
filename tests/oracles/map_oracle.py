#!/usr/bin/env python3
"""Writes golden/map_coco.txt: random detections and ground truths with the AP that pycocotools gives them.

For developers: the tests only replay the file. Needs pycocotools (pip install pycocotools, in a virtual environment).
usage: tests/oracles/map_oracle.py > tests/golden/map_coco.txt

Boxes stand on a grid of 1/16, so that no rounding can decide whether an overlap reaches a threshold in one
implementation and not in the other. Scores repeat on purpose: ties must fall the same way. A case is

    case <ground truths> <detections> <classes>
    t <image> <class> <x> <y> <w> <h>              centre and size, in sixteenths
    d <image> <class> <score in thousandths> <x> <y> <w> <h>
    ap <class> <AP at .5> ... <AP at .95>          -1: no ground truth of that class
"""
import contextlib
import io
import random

from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

CASES = 200


def random_box(rng):
    w, h = 2 * rng.randint(1, 12), 2 * rng.randint(1, 12)  # even: the corners stay on the grid
    return rng.randint(0, 64), rng.randint(0, 64), w, h


def near(rng, box):
    x, y, w, h = box
    move = lambda: rng.choice((0, 0, 0, 1, -1, 2))
    return x + move(), y + move(), max(2, w + 2 * move()), max(2, h + 2 * move())


def random_case(rng):
    images, classes = rng.randint(1, 4), rng.randint(1, 3)
    truths = [(rng.randrange(images), rng.randrange(classes), random_box(rng)) for _ in range(rng.randint(1, 10))]
    detections = []
    for _ in range(rng.randint(0, 16)):
        score = rng.randint(1, 9) * 100
        if rng.random() < .75:
            image, class_id, box = rng.choice(truths)
            detections.append((image, class_id, score, near(rng, box)))
        else:
            detections.append((rng.randrange(images), rng.randrange(classes), score, random_box(rng)))
    return images, classes, truths, detections


def coco_box(box):
    x, y, w, h = box
    return [x - w / 2, y - h / 2, w, h]


def coco_ap(images, classes, truths, detections):
    """precision[threshold][class], each already the mean over the 101 recall points; -1 for a class without truths."""
    coco = COCO()
    coco.dataset = {
        "info": {},
        "images": [{"id": i + 1} for i in range(images)],
        "categories": [{"id": c + 1} for c in range(classes)],
        "annotations": [{"id": n + 1, "image_id": i + 1, "category_id": c + 1, "bbox": coco_box(box),
                         "area": box[2] * box[3], "iscrowd": 0} for n, (i, c, box) in enumerate(truths)],
    }
    coco.createIndex()
    if not detections:
        return [[0. if any(t[1] == c for t in truths) else -1. for c in range(classes)]] * 10
    found = coco.loadRes([{"image_id": i + 1, "category_id": c + 1, "score": s / 1000, "bbox": coco_box(box)}
                          for i, c, s, box in detections])
    evaluation = COCOeval(coco, found, "bbox")
    evaluation.evaluate()
    evaluation.accumulate()
    precision = evaluation.eval["precision"]  # threshold, recall, class, area, most detections
    return [[precision[t, :, c, 0, -1].mean() for c in range(classes)] for t in range(10)]


def main():
    rng = random.Random(2018)
    print("# Written by tests/oracles/map_oracle.py, which says how to read it.")
    for _ in range(CASES):
        images, classes, truths, detections = random_case(rng)
        with contextlib.redirect_stdout(io.StringIO()):
            ap = coco_ap(images, classes, truths, detections)
        print("case", len(truths), len(detections), classes)
        for i, c, box in truths:
            print("t", i, c, *box)
        for i, c, score, box in detections:
            print("d", i, c, score, *box)
        for c in range(classes):
            print("ap", c, *(f"{ap[t][c]:.6g}" for t in range(10)))


if __name__ == "__main__":
    main()
