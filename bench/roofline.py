#!/usr/bin/env python3
"""A lower bound for the time of one training step of a Darknet .cfg: what its arithmetic and its memory
traffic take at given rates.

    roofline.py CFG --batch N [--size N] --tflops T --bandwidth TB/S [--bytes 2|4]
    roofline.py --convolutions SIZE CFG...  prints the shapes of their convolutions, each once, as
                                           tests/golden/conv_shapes.txt has them

Counted, per layer:
  convolution   2 x multiply-adds for the output, for the input's delta (not of the first layer) and for the
                weights' gradient; each of the three reads its two operands once and writes its result once,
                and takes the longer of arithmetic and memory
  batch norm and activation, fused   8 passes over the output: statistics; read and write; backward 2 for the
                                     sums, 3 for the delta
  activation alone                   5 passes: read and write; backward 2 reads, one write
  shortcut      6 passes: 2 reads and a write; backward a read, and a read and a write of the branch's delta
  route         5 passes: read and write; backward the delta's read, and a read and a write of the source's.
                None for one input
  pooling, upsampling   the input and the output, once in each direction, and the input's delta
  loss          7 passes in fp32 over its input, and no work of the host
  update        the weights: fp32 gradient, momentum and value read, the last two written, the gradient
                cleared, the half copy written
No caches, no launches, no workspaces: nobody reaches it. Peaks are the caller's."""
import argparse
import json
import sys


def read_cfg(path):
    sections = []
    with open(path) as lines:
        for line in lines:
            line = "".join(line.split())
            if line.startswith("["):
                sections.append((line.strip("[]"), {}))
            elif line and line[0] not in "#;":
                key, _, value = line.partition("=")
                sections[-1][1][key] = value
    return [s for s in sections if s[0] != "amp"]


def roofline(path, batch, size, flops_per_ms, bytes_per_ms, width_of_element):
    """{"conv_ms", "norm_ms", "other_ms", "update_ms", "roof_ms", "gflop_per_image", "convolutions"}: of
    these [(channels, height, width, filters, size, stride, pad, dilation, groups)]"""
    sections = read_cfg(path)
    net = sections[0][1]
    shape = (int(net.get("channels", 3)), size or int(net["height"]), size or int(net["width"]))
    outputs, shapes = [], []
    convolutions = norms = others = flops_of_all = 0.0
    parameters = 0
    count = lambda s: s[0] * s[1] * s[2] * batch
    for index, (kind, o) in enumerate(sections[1:]):
        number = lambda key, default: int(o.get(key, default))
        at = lambda text: outputs[int(text) if int(text) >= 0 else index + int(text)]
        c, h, w = shape
        new = shape
        if kind in ("convolutional", "conv"):
            k, stride, groups, n = (number("size", 1), number("stride", 1),
                                    number("groups", 1), number("filters", 1))
            pad = k // 2 if number("pad", 0) else number("padding", 0)
            new = (n, (h + 2 * pad - k) // stride + 1, (w + 2 * pad - k) // stride + 1)
            shapes.append((c, h, w, n, k, stride, pad, 1, groups))
            weights = n * c // groups * k * k
            flops = 2.0 * weights * new[1] * new[2] * batch
            memory = (count(shape) + count(new) + weights) * width_of_element
            passes = 3 if index else 2
            convolutions += passes * max(flops / flops_per_ms, memory / bytes_per_ms)
            flops_of_all += passes * flops
            parameters += weights + n
            linear = o.get("activation", "logistic") == "linear"
            times = 8 if number("batch_normalize", 0) else 0 if linear else 5
            norms += times * count(new) * width_of_element / bytes_per_ms
        elif kind in ("maxpool", "max"):
            k = number("size", number("stride", 1))
            stride, pad = number("stride", 1), number("padding", k - 1)
            new = (c, (h + pad - k) // stride + 1, (w + pad - k) // stride + 1)
            others += (2 * count(shape) + 2 * count(new)) * width_of_element / bytes_per_ms
        elif kind in ("avgpool", "avg"):
            new = (c, 1, 1)
            others += (2 * count(shape) + 2 * count(new)) * width_of_element / bytes_per_ms
        elif kind == "upsample":
            stride = number("stride", 2)
            new = (c, h * stride, w * stride)
            others += (2 * count(shape) + 2 * count(new)) * width_of_element / bytes_per_ms
        elif kind == "shortcut":
            others += 6 * count(new) * width_of_element / bytes_per_ms
            if o.get("activation", "linear") != "linear":
                norms += 3 * count(new) * width_of_element / bytes_per_ms  # backward; forward is fused
        elif kind == "route":
            sources = [at(n) for n in o["layers"].split(",")]
            new = (sum(s[0] for s in sources) // number("groups", 1),) + sources[0][1:]
            if len(sources) > 1:
                others += 5 * count(new) * width_of_element / bytes_per_ms
        elif kind in ("yolo", "softmax"):
            others += 7 * count(new) * 4 / bytes_per_ms
        else:
            raise SystemExit(f"roofline: [{kind}] is not counted here")
        outputs.append(new)
        shape = new
    update = parameters * (6 * 4 + (2 if width_of_element == 2 else 0)) / bytes_per_ms
    total = convolutions + norms + others + update
    return {"conv_ms": convolutions, "norm_ms": norms, "other_ms": others, "update_ms": update,
            "roof_ms": total,
            "gflop_per_image": flops_of_all / batch / 1e9, "convolutions": shapes}


def print_convolutions(size, *paths):
    seen = set()
    for path in paths:
        for shape in roofline(path, 1, int(size), 1, 1, 2)["convolutions"]:
            if shape not in seen:
                print(path.rsplit("/", 1)[-1].removesuffix(".cfg"), *shape)
            seen.add(shape)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--convolutions"]:
        print_convolutions(*sys.argv[2:])
        sys.exit()
    arguments = argparse.ArgumentParser()
    arguments.add_argument("cfg")
    arguments.add_argument("--batch", type=int, required=True)
    arguments.add_argument("--size", type=int, default=0)
    arguments.add_argument("--tflops", type=float, required=True)
    arguments.add_argument("--bandwidth", type=float, required=True, help="TB/s")
    arguments.add_argument("--bytes", type=int, choices=(2, 4), default=2)
    given = arguments.parse_args()
    result = roofline(given.cfg, given.batch, given.size, given.tflops * 1e9, given.bandwidth * 1e9,
                      given.bytes)
    print(json.dumps({key: round(value, 3) for key, value in result.items() if key != "convolutions"}))
