"""Writes PyTorch's loss of distillation, for test_label_task.py of the tasks.

    python tests/parity/distillation_loss.py OUTPUT.npz

`KLDivLoss(reduction="batchmean")` of softened predictions, times T²: for each temperature the loss,
and its gradient by the student's logits. Runs in an environment made from requirements.in.
"""

from __future__ import annotations

import sys

import numpy as np
import torch

ROWS, CLASSES = 12, 4
TEMPERATURES = (0.5, 1.0, 2.0, 7.0)


def main() -> None:
    random = np.random.default_rng(11)
    student, teacher = random.normal(0, 3, (2, ROWS, CLASSES)).astype(np.float32)
    values = {"student": student, "teacher": teacher}
    loss_of = torch.nn.KLDivLoss(reduction="batchmean")
    for temperature in TEMPERATURES:
        tensor = torch.tensor(student, requires_grad=True)
        loss = temperature**2 * loss_of(
            torch.log_softmax(tensor / temperature, dim=-1),
            torch.softmax(torch.tensor(teacher) / temperature, dim=-1),
        )
        loss.backward()
        values[f"{temperature}/loss"] = loss.item()
        values[f"{temperature}/gradient"] = tensor.grad.numpy()
    np.savez(sys.argv[1], **values)


if __name__ == "__main__":
    main()
