"""Writes the label issues that cleanlab finds, for test_label_errors.py of classification.

    python tests/parity/label_issues.py OUTPUT.npz

For each case the labels, the probabilities, cleanlab's thresholds and the rows that it doubts, the
least self-confident first. Runs in an environment that has cleanlab (2.9.0).
"""

from __future__ import annotations

import sys

import numpy as np
from cleanlab.count import get_confident_thresholds
from cleanlab.filter import find_label_issues

CASES = {
    "two": (80, 2, 1.0),
    "four": (200, 4, 1.5),
    "unsure": (120, 5, 0.2),
    "sharp": (150, 3, 6.0),
}


def main() -> None:
    values = {}
    for seed, (name, (rows, classes, scale)) in enumerate(CASES.items()):
        random = np.random.default_rng(seed)
        true = random.integers(0, classes, rows)
        logits = scale * (random.normal(0, 1, (rows, classes)) + 2 * np.eye(classes)[true])
        probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        labels = np.where(random.random(rows) < 0.15, random.integers(0, classes, rows), true)
        values |= {
            f"{name}/labels": labels,
            f"{name}/probabilities": probabilities.astype(np.float32),
        }
        probabilities = values[f"{name}/probabilities"].astype(np.float64)
        values[f"{name}/thresholds"] = get_confident_thresholds(labels, probabilities)
        values[f"{name}/issues"] = find_label_issues(
            labels,
            probabilities,
            filter_by="confident_learning",
            return_indices_ranked_by="self_confidence",
            n_jobs=1,
        )
    np.savez_compressed(sys.argv[1], **values)


if __name__ == "__main__":
    main()
