#!/usr/bin/env python3
"""Detection of one image: builds of Darknet, and OpenCV's dnn module, in one run. For those who develop AMP;
users have `darknet amp bench -detect`.

    detect.py CFG SIDE... [--rounds N] [--warmup N]

A SIDE is NAME=LIBRARY:DTYPE, with a libdarknet.so and off, fp32, bf16 or fp16, or NAME=opencv (Python's
cv2, which reads Darknet's files up to version 4). All load the same drawn weights and predict the same
image, in a process each with one thread. They take turns, a prediction in each round, so that a busy machine
meets them alike. Printed are the medians of the processor's time, and of its ratio to the first side within a
round; the resident memory that a network and its predictions added at the peak; and how far the last yolo
layer's objectness is from the first side's. It needs numpy."""
import argparse
import ctypes
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

import numpy


def sections_of(cfg):
    """[(name, {key: value})]"""
    sections = []
    for line in open(cfg):
        line = re.sub(r"\s+|[#;].*", "", line)
        if line.startswith("["):
            sections.append((line.strip("[]"), {}))
        elif "=" in line:
            sections[-1][1].update([line.split("=", 1)])
    return sections


def write_weights(cfg, name):
    """Of convolutions, as Darknet draws them, with the statistics of a batch norm that has nothing to do."""
    draw = numpy.random.default_rng(1)
    sections, channels = sections_of(cfg), []
    with open(name, "wb") as out:
        out.write(numpy.array([0, 2, 0, 0, 0], "<i4").tobytes())
        for at, (kind, keys) in enumerate(sections[1:]):
            before = channels[-1] if channels else int(sections[0][1]["channels"])
            if kind == "convolutional":
                filters, size = int(keys["filters"]), int(keys["size"])
                arrays = [numpy.zeros(filters)]
                if keys.get("batch_normalize") == "1":
                    arrays += [numpy.ones(filters), numpy.zeros(filters), numpy.ones(filters)]
                window = before * size * size // int(keys.get("groups", 1))
                arrays.append(draw.normal(0, (2 / window) ** .5, filters * window))
                for array in arrays:
                    out.write(array.astype("<f4").tobytes())
                before = filters
            elif kind == "route":
                parts = [int(n) for n in keys["layers"].split(",")]
                before = sum(channels[n if n >= 0 else at + n] for n in parts)
            elif kind not in ("maxpool", "upsample", "shortcut", "yolo"):
                sys.exit("detect.py: [%s]: its weights are not known here" % kind)
            channels.append(before)


def memory_kb(key):
    return int(re.search(key + r":\s+(\d+)", open("/proc/self/status").read()).group(1))


def darknet(library, cfg, weights, image, head):
    lib = ctypes.CDLL(library)
    lib.load_network.restype = ctypes.c_void_p
    lib.network_predict.restype = ctypes.POINTER(ctypes.c_float)
    net = ctypes.c_void_p(lib.load_network(cfg.encode(), weights.encode(), 0))
    pixels = image.ctypes.data_as(ctypes.c_void_p)
    anchors, height, width, numbers = head

    def predict():
        out = lib.network_predict(net, pixels)
        return numpy.ctypeslib.as_array(out, (anchors, numbers, height, width))[:, 4]
    return predict


def opencv(cfg, weights, image, head):
    import cv2
    cv2.setNumThreads(1)
    net = cv2.dnn.readNetFromDarknet(cfg, weights)
    names = net.getUnconnectedOutLayersNames()

    def predict():
        net.setInput(image)
        return net.forward(names)[-1][:, 4]
    return predict


def work(side, cfg, weights, head):
    """A side's process: a prediction for each line that comes, and its seconds as a line."""
    numbers, out = [int(n) for n in head.split(",")], os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the libraries print
    net = sections_of(cfg)[0][1]
    image = numpy.random.default_rng(2).random((1, 3, int(net["height"]), int(net["width"])), numpy.float32)
    if side == "opencv":
        import cv2  # noqa: before memory is looked at
    before = memory_kb("VmRSS")
    predict = opencv(cfg, weights, image, numbers) if side == "opencv" else \
        darknet(side, cfg, weights, image, numbers)
    for _ in sys.stdin:
        began = time.process_time()
        found = predict()
        seconds = time.process_time() - began
        print(json.dumps([seconds, memory_kb("VmHWM") - before, sorted(map(float, found.flatten()))]),
              file=out, flush=True)


def start(folder, name, what, cfg, weights, head):
    library, _, dtype = what.partition(":")
    if dtype:
        own = os.path.join(folder, name + ".cfg")
        with open(own, "w") as out:
            out.write(open(cfg).read() + ("" if dtype == "off" else "\n[amp]\ndtype=%s\n" % dtype))
        cfg = own
    return subprocess.Popen([sys.executable, __file__, "--work", library, cfg, weights, head], text=True,
                            env=dict(os.environ, OMP_NUM_THREADS="1"), stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=open(os.path.join(folder, "log"), "a"))


def main():
    if sys.argv[1:2] == ["--work"]:
        return work(*sys.argv[2:])
    options = argparse.ArgumentParser(description=__doc__,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("cfg")
    options.add_argument("sides", nargs="+")
    options.add_argument("--rounds", type=int, default=20)
    options.add_argument("--warmup", type=int, default=3)
    given = options.parse_args()
    net, yolo = sections_of(given.cfg)[0][1], sections_of(given.cfg)[-1][1]
    stride = 8 if len([s for s, _ in sections_of(given.cfg) if s == "yolo"]) == 3 else 16
    head = "%d,%d,%d,%d" % (len(yolo["mask"].split(",")), int(net["height"]) // stride,
                            int(net["width"]) // stride, 5 + int(yolo["classes"]))
    with tempfile.TemporaryDirectory() as folder:
        weights = os.path.join(folder, "drawn.weights")
        write_weights(given.cfg, weights)
        sides = {}
        for side in given.sides:
            name, _, what = side.partition("=")
            sides[name] = start(folder, name, what, given.cfg, weights, head)
        seconds, last = {name: [] for name in sides}, {}
        for turn in range(given.warmup + given.rounds):
            for name, process in sides.items():
                process.stdin.write("\n")
                process.stdin.flush()
                line = process.stdout.readline()
                if not line:
                    words = open(os.path.join(folder, "log")).read()[-900:]
                    sys.exit("detect.py: %s ended:\n%s" % (name, words))
                took, *last[name] = json.loads(line)
                if turn >= given.warmup:
                    seconds[name].append(took)
        first = next(iter(sides))
        print("%-14s %8s %9s %8s %14s" % ("side", "cpu ms", "to " + first, "MB", "objectness"))
        for name in sides:
            ratio = statistics.median(a / b for a, b in zip(seconds[first], seconds[name]))
            apart = numpy.abs(numpy.subtract(last[name][1], last[first][1])).max()
            print("%-14s %8.1f %8.2fx %8.0f %14.1e" % (name, 1e3 * statistics.median(seconds[name]), ratio,
                                                       last[name][0] / 1024, apart))
        for process in sides.values():
            process.stdin.close()
            process.wait()


main()
