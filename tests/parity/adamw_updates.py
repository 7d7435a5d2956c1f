"""Writes updates of PyTorch's AdamW, for tests/bert_tf/training/test_optimizers.py.

    python tests/parity/adamw_updates.py OUTPUT.npz

Five steps from gradients of which some are far below epsilon, where it matters what epsilon is
added to. Runs in an environment made from requirements.in.
"""

from __future__ import annotations

import sys

import numpy as np
import torch

STEPS, SIZE = 5, 24
RATE = 0.01
BETAS = (0.9, 0.999)
EPSILON = 1e-6
DECAY = 0.1


def main() -> None:
    random = np.random.default_rng(5)
    gradients = random.normal(0, np.logspace(-9, 0, SIZE), (STEPS, SIZE)).astype(np.float32)
    start = random.normal(0, 1, SIZE).astype(np.float32)
    weights = torch.nn.Parameter(torch.tensor(start))
    optimizer = torch.optim.AdamW([weights], lr=RATE, betas=BETAS, eps=EPSILON, weight_decay=DECAY)
    after = []
    for gradient in gradients:
        weights.grad = torch.tensor(gradient)
        optimizer.step()
        after.append(weights.detach().numpy().copy())
    np.savez(sys.argv[1], start=start, gradients=gradients, weights=np.stack(after))


if __name__ == "__main__":
    main()
