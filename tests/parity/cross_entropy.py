"""Writes losses of PyTorch's CrossEntropyLoss, for test_task_loss.py of classification.

    python tests/parity/cross_entropy.py OUTPUT.npz

With class weights and label smoothing: for each case its mean loss and the gradient of that by the
logits. Runs in an environment made from requirements.in.
"""

from __future__ import annotations

import sys

import numpy as np
import torch

ROWS, CLASSES = 12, 4
CASES = [(weighted, smoothing) for weighted in (False, True) for smoothing in (0.0, 0.1, 0.6)]


def main() -> None:
    random = np.random.default_rng(7)
    logits = random.normal(0, 3, (ROWS, CLASSES)).astype(np.float32)
    labels = random.integers(0, CLASSES, ROWS)
    class_weights = np.array([0.2, 1.0, 2.5, 7.0], np.float32)
    values = {"logits": logits, "labels": labels, "class_weights": class_weights}
    for weighted, smoothing in CASES:
        loss_of = torch.nn.CrossEntropyLoss(
            weight=torch.tensor(class_weights) if weighted else None, label_smoothing=smoothing
        )
        tensor = torch.tensor(logits, requires_grad=True)
        loss = loss_of(tensor, torch.tensor(labels))
        loss.backward()
        name = f"{'weighted' if weighted else 'plain'}-{smoothing}"
        values[f"{name}/loss"] = loss.item()
        values[f"{name}/gradient"] = tensor.grad.numpy()
    np.savez(sys.argv[1], **values)


if __name__ == "__main__":
    main()
