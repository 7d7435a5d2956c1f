"""Weights of labels in the loss: how they are written, and the numbers."""

from __future__ import annotations

import collections
import csv
import math
from collections.abc import Sequence

from bert_tf.base.errors import InputError, UsageError
from bert_tf.tasks.tables.labels import shown_labels

NONE, BALANCED = "none", "balanced"


def parse_class_weights(text: str) -> dict[str, float]:
    """Weights as `--class-weights` gives them: `spam=3,"a, b"=0.5`; {} for a word.

    Args:
        text: `none`, `balanced`, or pairs of label and weight separated by commas, quoted as a cell
            of CSV where a label has a comma.

    Raises:
        ValueError: it is none of these.
    """
    if text in (NONE, BALANCED):
        return {}
    weights: dict[str, float] = {}
    for pair in next(csv.reader([text])):
        label, is_pair, number = pair.strip().rpartition("=")
        try:
            weight = float(number)
        except ValueError:
            weight = math.nan
        if not is_pair or not (0 < weight < math.inf):
            raise ValueError(
                f"expected none, balanced or label=weight,… with weights above 0, got {pair!r}"
            )
        if label in weights:
            raise ValueError(f"label {label!r} has two weights; give it one")
        weights[label] = weight
    return weights


def class_weights(
    asked: str, labels: Sequence[str], rows: Sequence[str], row_weights: Sequence[float]
) -> tuple[float, ...]:
    """The weight of each label; () where all weigh 1.

    `balanced` gives all labels the same sum of weights over the rows: n / (k * count), with row
    weights for counts (scikit-learn, `compute_class_weight`). A label without rows, since all of
    them are held out, weighs 1.

    Args:
        asked: as `parse_class_weights` takes it; labels that it does not name weigh 1.
        labels: of the model, in its order.
        rows: the label of each training row.
        row_weights: the weight of each training row.

    Raises:
        InputError: `balanced`, and the rows of a label weigh 0 in all.
        UsageError: a label is named that no row has.
    """
    if asked == NONE:
        return ()
    if asked == BALANCED:
        return _balanced(labels, rows, row_weights)
    given = parse_class_weights(asked)
    unknown = [label for label in given if label not in labels]
    if unknown:
        raise UsageError(
            f"--class-weights: no training row has the label {unknown[0]!r}; the labels are "
            f"{shown_labels(labels)}"
        )
    return tuple(given.get(label, 1.0) for label in labels)


def _balanced(
    labels: Sequence[str], rows: Sequence[str], row_weights: Sequence[float]
) -> tuple[float, ...]:
    sums: dict[str, float] = collections.defaultdict(float)
    for label, weight in zip(rows, row_weights, strict=True):
        sums[label] += weight
    for label in sums:
        if not sums[label]:
            raise InputError(
                f"--class-weights balanced: all rows with the label {label!r} have a weight of 0; "
                "leave them out, or give weights by label"
            )
    total = sum(sums.values())
    return tuple(total / (len(sums) * sums[label]) if label in sums else 1.0 for label in labels)
