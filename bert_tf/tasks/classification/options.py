"""Options, inputs and outputs of classification, without TensorFlow."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from typing import ClassVar

from bert_tf.config.section import FractionBelowOne, option, optional
from bert_tf.config.sections.finetuning import LabelErrorsSection
from bert_tf.tasks.base.declaration import (
    LABEL_NAMES,
    LabelErrorsDeclaration,
    PredictionField,
    ProbabilitiesField,
    SoftLabelConfig,
    TaskDeclaration,
    labeled_texts,
)

NONE = "none"
BALANCED = "balanced"
UNCALIBRATED = "none"
TEMPERATURE = "temperature"


def parse_class_weights(text: str) -> dict[str, float]:
    """Parse `--class-weights`: `spam=3,"a, b"=0.5`.

    Returns:
        Weights by label; {} for `none` or `balanced`.

    Raises:
        ValueError: the text is anything else.
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


class ClassificationConfig(SoftLabelConfig):
    """Fine-tunes a classifier of texts, or of pairs of texts."""

    metrics: ClassVar[tuple[str, ...]] = ("accuracy", "macro_f1", "matthews_correlation")

    class_weights: str = option(
        "label weights in the loss: none, balanced (higher for rare labels), or label=weight,… "
        "(1 for other labels)",
        NONE,
    )
    weight_column: str | None = optional(
        "column with the weight of each training row in the loss, 0 or above"
    )
    corrections: str | None = optional(
        "corrected labels of training rows: corrections.csv of label-errors, after you edited it",
        reads="table",
    )
    label_smoothing: FractionBelowOne = option(
        "fraction of each target to spread over all labels", 0.0
    )
    calibration: str = option(
        "temperature: fit a softmax temperature on the evaluation rows; predicted labels do not "
        "change",
        choices=(UNCALIBRATED, TEMPERATURE),
    )

    @property
    def more_inputs(self) -> dict[str, str | None]:
        return {**super().more_inputs, "corrections": self.corrections}

    def faults(self) -> Iterator[str]:
        try:
            parse_class_weights(self.class_weights)
        except ValueError as error:
            yield f"class_weights: {error}"
        if self.calibration != UNCALIBRATED and not self.evaluates:
            yield (
                "calibration: needs rows to fit it on; give --eval or an --eval-fraction above 0, "
                "or leave it out"
            )


class ClassificationLabelErrorsConfig(LabelErrorsSection, ClassificationConfig):
    """Finds rows whose label a classifier doubts."""

    def faults(self) -> Iterator[str]:
        """Reject a teacher, which may have seen the held-out rows of a fold."""
        if self.teacher is not None:
            yield "teacher: may have been trained on the labels to check; leave it out"


CLASSIFICATION = TaskDeclaration(
    name="classification",
    has_distances=True,
    summary="one of several labels for a text or a pair of texts",
    options=ClassificationConfig,
    example=(
        "bert-pipeline finetune classification --train train.csv --eval dev.csv --init run "
        "--output complaints"
    ),
    inputs=("text", "text_pair"),
    predictions=(
        PredictionField("predicted_label", "label", decided_by="predicted_score"),
        PredictionField("predicted_score", "probability"),
    ),
    probabilities=ProbabilitiesField(output="probabilities", noun="label", labels="labels"),
    implementation="bert_tf.tasks.classification.task:ClassificationTask",
    host="bert_tf.tasks.classification.metrics:ClassificationHost",
    page="bert_tf.tasks.classification.page:sections",
    columns=labeled_texts(
        "a label",
        names=LABEL_NAMES,
        fits=lambda column: column.is_label,
        rank=lambda column: column.distinct,
    ),
    label_errors=LabelErrorsDeclaration(
        options=ClassificationLabelErrorsConfig,
        example=(
            "bert-pipeline label-errors classification --train train.csv --init minilm "
            "--output doubted"
        ),
        implementation="bert_tf.tasks.classification.label_errors:find_label_errors",
    ),
)
