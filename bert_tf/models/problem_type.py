"""What a classifier's logits are for, in the words of HuggingFace's `config.json`."""

from __future__ import annotations

import enum


class ProblemType(enum.StrEnum):
    """`problem_type` of `BertForSequenceClassification`, which decides its loss."""

    REGRESSION = enum.auto()
    SINGLE_LABEL_CLASSIFICATION = enum.auto()
    MULTI_LABEL_CLASSIFICATION = enum.auto()
