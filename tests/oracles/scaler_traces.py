#!/usr/bin/env python3
"""Writes golden/scaler_traces.txt: what torch.amp.GradScaler does to its scale in thousands of random
trainings.

For developers: the tests only replay the file, which holds every sixtieth training; test_scaler_traces
replays all with AMP_GOLDEN set to the folder that scaler_traces.txt was written to. Needs PyTorch 2.3 or
later (pip install torch, in a virtual environment); its CPU will do. Before 2.3 GradScaler works on GPUs
only. 2.5.1 and 2.15.0 write the same file, but for its first line.
usage: tests/oracles/scaler_traces.py --sample > tests/golden/scaler_traces.txt
       tests/oracles/scaler_traces.py > FOLDER/scaler_traces.txt

Each training is real: parameters, a scaled loss, backward, unscale_, step and update, with one or two
optimizers. A batch overflows where an input is inf or NaN, or so large that scale * input passes fp32.
Whether a step counts as overflown is what torch itself found, and the script checks that torch skipped
exactly the optimizers it should. Trainings in which update(new_scale) sets the scale are not written: ours
has no such call. A line is

  <scale> <growth> <backoff> <interval> <steps> <overflows> [end] <crc> [: <bits>...]

    scale, growth, backoff   decimal; a scale is rounded to fp32 as torch does
    overflows   hexadecimal digits, each four steps, the first step in the highest bit
    end         the last step takes torch's scale below fp32's smallest normal number; it is not in crc
    crc         CRC-32 (zlib's) over the steps, each the scale's bits and the growth tracker, both 32 bits,
                little-endian
    :           every so often: the scale's bits after the first step, and after each that changed it
"""
import random
import struct
import sys
import zlib

import torch

TRAININGS = 5200
WRITTEN_OUT = 25          # one in so many trainings has its scales written out
SMALLEST = 2.0 ** -126    # the smallest normal number of fp32


def digits(number, count):
    return f"{number:.{count}g}"


def random_settings(rng):
    """Decimal strings, so that the file and torch see the same numbers."""
    interval = min(50, int(2 ** rng.uniform(0, 5.7)))
    if rng.random() < .25:
        return digits(2.0 ** rng.randint(-9, 126), 17), "2", ".5", interval
    scale = digits(10 ** rng.uniform(-3, 38), rng.choice((1, 3, 9)))
    growth = digits(1 + 10 ** rng.uniform(-4, 1.176), rng.choice((2, 4, 6)))
    growth = rng.choice(("2", "1.5", "16", "1.0001", growth)) if rng.random() < .4 else growth
    growth = growth if float(growth) > 1 else "1.0001"
    backoff = digits(rng.choice((rng.uniform(.01, .999), 1 - 10 ** rng.uniform(-3, -.1))), rng.choice((2, 4)))
    backoff = rng.choice((".5", ".01", ".999", ".25")) if rng.random() < .3 else backoff
    return scale, growth, backoff if 0 < float(backoff) < 1 else ".5", interval


def random_overflows(rng, steps):
    """Independent overflows, rare to frequent, or runs of them."""
    chance = rng.choice((0, .02, .1, .1, .3, .5, .9, 1))
    if rng.random() < .7:
        return [rng.random() < chance for _ in range(steps)]
    overflows = []
    while len(overflows) < steps:
        overflows += [rng.random() < .5] * rng.randint(1, 15)
    return overflows[:steps]


class Training:
    """Two weight vectors, each under an SGD of its own or both under one."""

    def __init__(self, rng, scaler):
        self.rng, self.scaler = rng, scaler
        self.weights = [torch.nn.Parameter(torch.zeros(rng.randint(1, 9))) for _ in range(2)]
        groups = [[w] for w in self.weights] if rng.random() < .3 else [self.weights]
        self.optimizers = [torch.optim.SGD(group, lr=1.0) for group in groups]

    def poison(self, inputs):
        """Makes the gradient of one element overflow, or of several."""
        scale = self.scaler.get_scale()
        for _ in range(self.rng.choice((1, 1, 2, 5))):
            bad = [float("nan"), float("inf"), -float("inf")]
            if scale > 4:
                bad.append(3e38)  # finite: it is the loss scale that makes it overflow
            x = self.rng.choice(inputs)
            x[self.rng.randrange(len(x))] = self.rng.choice(bad)

    def step(self, overflow, new_scale):
        """Returns found_inf, as torch sees it."""
        inputs = [torch.full_like(w, self.rng.uniform(.25, 1)) for w in self.weights]
        if overflow:
            self.poison(inputs)
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=True)
        loss = sum((w * x).sum() for w, x in zip(self.weights, inputs))
        with torch.no_grad():
            for w in self.weights:  # back to 0, so that a poisoned input meets no other infinity
                w.zero_()
        self.scaler.scale(loss).backward()
        any_found = False
        for optimizer in self.optimizers:
            finite = all(bool(w.grad.isfinite().all()) for g in optimizer.param_groups for w in g["params"])
            self.scaler.unscale_(optimizer)
            self.scaler.step(optimizer)
            found = self.scaler._found_inf_per_device(optimizer)
            found = any(flag.item() != 0 for flag in found.values())
            moved = any(bool((w != 0).any()) for g in optimizer.param_groups for w in g["params"])
            if found == finite or (found and moved):
                sys.exit("torch skipped a step with finite gradients, or took one without")
            any_found = any_found or found
        self.scaler.update(new_scale)
        return any_found


def run(rng):
    scale, growth, backoff, interval = random_settings(rng)
    steps = rng.randint(6, 40 + 3 * interval)
    scaler = torch.amp.GradScaler("cpu", init_scale=float(scale), growth_factor=float(growth),
                                  backoff_factor=float(backoff), growth_interval=interval)
    training = Training(rng, scaler)
    sets_scales = rng.random() < .1
    mask, new_scales, trace, changes, ended = [], [], b"", [], False
    before = None
    for step, overflow in enumerate(random_overflows(rng, steps)):
        new_scale = digits(10 ** rng.uniform(-3, 38), 6) if sets_scales and rng.random() < .05 else None
        mask.append(training.step(overflow, None if new_scale is None else float(new_scale)))
        if mask[-1] != overflow:
            sys.exit("torch did not see what the batch was made for")
        if new_scale is not None:
            new_scales.append(new_scale)
        if scaler.get_scale() < SMALLEST:
            ended = True
            break
        state = struct.pack("<fI", scaler.get_scale(), scaler._get_growth_tracker())
        if state[:4] != before:
            changes.append(f"{struct.unpack('<I', state[:4])[0]:x}")
        before = state[:4]
        trace += state
    bits = "".join("1" if bit else "0" for bit in mask)
    bits += "0" * (-len(bits) % 4)
    overflows = f"{int(bits, 2):0{len(bits) // 4}x}"
    line = [scale, growth, backoff, str(interval), str(len(mask)), overflows]
    return line + ["end"] * ended + [f"{zlib.crc32(trace):08x}"], changes, new_scales


def main():
    if not hasattr(torch.amp, "GradScaler"):
        sys.exit(f"PyTorch {torch.__version__} has no GradScaler for the CPU: take 2.3 or later")
    torch.set_num_threads(1)
    rng = random.Random(2018)
    step, first = (60, 20) if sys.argv[1:] == ["--sample"] else (1, 0)
    print("# Written by tests/oracles/scaler_traces.py, which says how to read it, "
          f"with PyTorch {torch.__version__}.")
    for number in range(TRAININGS):
        line, changes, new_scales = run(rng)
        if number % WRITTEN_OUT == 0:
            line += [":"] + changes
        if number % step == first and not new_scales:
            print(*line)


if __name__ == "__main__":
    main()
