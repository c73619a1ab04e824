#!/usr/bin/env python3
"""Writes golden/adamw.txt: what torch.optim.AdamW does to numbers with chosen gradients.

For developers: test_backend_kernels_update replays the file. Needs PyTorch (pip install torch, in a virtual
environment); its CPU will do.
usage: tests/oracles/adamw.py > tests/golden/adamw.txt

torch computes in double. A line is one number that is trained:

  <rate> <beta1> <beta2> <eps> <decay> <number at first> [<gradient> <number after this step>]...
"""
import random

import torch

TRAININGS, STEPS = 40, 8


def rounded(number):
    """As fp32 has it, in which the plugin gets settings and gradients."""
    return torch.tensor(number, dtype=torch.float32).item()


def train(rng):
    rate, decay = rng.choice((1e-3, 2e-3, .05)), rng.choice((0, 5e-4, .01, .1, 2))
    betas = rng.choice(((.9, .999), (.875, .9375), (.5, .75), (.0, .5), (.95, .99)))
    eps, size = rng.choice((1e-8, 1e-7, 1e-3)), 10 ** rng.uniform(-3, 2)
    rate, decay, eps, *betas = (rounded(n) for n in (rate, decay, eps, *betas))
    number = torch.nn.Parameter(torch.tensor(rounded(rng.uniform(-2, 2)), dtype=torch.float64))
    line = [rate, *betas, eps, decay, number.item()]
    optimizer = torch.optim.AdamW([number], lr=rate, betas=betas, eps=eps, weight_decay=decay)
    for step in range(STEPS):
        gradient = 0. if rng.random() < .1 else rounded(rng.gauss(0, 1) * size)
        number.grad = torch.tensor(gradient, dtype=torch.float64)
        optimizer.step()
        line += [gradient, number.item()]
    return " ".join(f"{n:.12g}" for n in line)


print(f"# torch.optim.AdamW of PyTorch {torch.__version__.split('+')[0]}, by oracles/adamw.py")
rng = random.Random(20260101)
for training in range(TRAININGS):
    print(train(rng))
