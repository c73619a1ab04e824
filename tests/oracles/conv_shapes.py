#!/usr/bin/env python3
"""Writes golden/conv_shapes.txt: the shape of every convolution of the networks that the given .cfg files
describe.

For developers: the tests only read the file.
usage: tests/oracles/conv_shapes.py NETWORK.cfg... > tests/golden/conv_shapes.txt

Each at the size that its [net] section names. Of convolutions that differ in the image's size alone, in one
network or in several, the first of the largest stands there.
"""
import pathlib
import sys

HEADER = """\
# The convolutions of some networks: input channels, height and width, filters, window, stride, padding
# on each side, dilation, groups. Of those that differ in the image's size alone, the largest.
# Written by oracles/conv_shapes.py, which leaves out most of a densenet's.
# network c h w k size stride pad dilation groups"""


def read_sections(path):
    """[(type, {key: value})], comments and empty lines left out."""
    sections = []
    for line in path.read_text(errors="replace").splitlines():
        line = line.split("#")[0].strip()
        if line.startswith("["):
            sections.append((line.strip("[]"), {}))
        elif "=" in line and not line.startswith(";"):
            key, value = line.split("=", 1)
            sections[-1][1][key.strip()] = value.strip()
    return sections


def convolution(keys, c, h, w):
    """The row of a convolutional section behind an input of c,h,w, and its output's c,h,w."""
    k, size, stride, groups = (int(keys.get(name, 1)) for name in ("filters", "size", "stride", "groups"))
    dilation = int(keys.get("dilation", 1)) if size > 1 else 1
    pad = (size // 2 if int(keys.get("pad", 0)) else int(keys.get("padding", 0))) * dilation
    window = (size - 1) * dilation + 1
    out = [(side + 2 * pad - window) // stride + 1 for side in (h, w)]
    return (c, h, w, k, size, stride, pad, dilation, groups), (k, *out)


def pool(keys, c, h, w):
    stride = int(keys.get("stride", 1))
    size = int(keys.get("size", stride))
    padding = int(keys.get("padding", size - 1))
    return (c, *((side + padding - size) // stride + 1 for side in (h, w)))


def route(keys, outputs):
    """The concatenation of other layers' outputs, or of one group of their channels."""
    sources = [outputs[int(i)] for i in keys["layers"].split(",")]
    _, h, w = sources[0]
    return sum(s[0] for s in sources) // int(keys.get("groups", 1)), h, w


def reorg(keys, c, h, w):
    stride = int(keys.get("stride", 1))
    return c * stride * stride, h // stride, w // stride


def upsample(keys, c, h, w):
    stride = int(keys.get("stride", 2))
    return c, h * stride, w * stride


def shapes(path):
    """The rows of one network, in its order."""
    (_, net), *layers = read_sections(path)
    shape = int(net.get("channels", 3)), int(net["height"]), int(net["width"])
    outputs = []
    for kind, keys in layers:
        if kind == "convolutional":
            row, shape = convolution(keys, *shape)
            yield row
        elif kind == "maxpool":
            shape = pool(keys, *shape)
        elif kind == "avgpool":
            shape = shape[0], 1, 1
        elif kind == "crop":
            shape = shape[0], int(keys["crop_height"]), int(keys["crop_width"])
        elif kind == "route":
            shape = route(keys, outputs)
        elif kind in ("reorg", "reorg3d"):
            shape = reorg(keys, *shape)
        elif kind == "upsample":
            shape = upsample(keys, *shape)
        elif kind in ("scale_channels", "sam"):
            shape = outputs[int(keys["from"])]
        elif kind == "connected":
            shape = int(keys["output"]), 1, 1
        elif kind not in ("shortcut", "dropout", "softmax", "cost", "detection", "region", "yolo",
                          "batchnorm"):
            sys.exit(f"{path}: what does a [{kind}] do to its input's shape?")
        outputs.append(shape)


def thinned(rows):
    """Where more than eight differ in their input channels alone, as in a densenet: every eighth and the
    last."""
    alike = {}
    for row in rows:
        alike.setdefault(row[1:], []).append(row)
    return [row for row in rows if len(alike[row[1:]]) <= 8 or row == alike[row[1:]][-1]
            or alike[row[1:]].index(row) % 8 == 0]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    print(HEADER)
    largest = {}
    for path in map(pathlib.Path, sys.argv[1:]):
        for row in thinned(list(dict.fromkeys(shapes(path)))):
            c, h, w, *rest = row
            if h * w > largest.get((c, *rest), (0, ""))[0]:
                largest[c, *rest] = h * w, f"{path.stem} {' '.join(map(str, row))}"
    for _, line in largest.values():
        print(line)


if __name__ == "__main__":
    main()
