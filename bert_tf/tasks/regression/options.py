"""Options, inputs and outputs of regression, without TensorFlow."""

from __future__ import annotations

from typing import ClassVar

from bert_tf.config.section import option
from bert_tf.tasks.base.declaration import (
    DistillationConfig,
    PredictionField,
    TaskDeclaration,
    labeled_texts,
)

STANDARD = "standard"
NONE = "none"


class RegressionConfig(DistillationConfig):
    """Fine-tunes a model that predicts a number for a text, or for a pair of texts."""

    metrics: ClassVar[tuple[str, ...]] = ("pearson", "spearman", "r2")

    label_column: str = option("column of the number", "label")
    target_scaling: str = option(
        "standard: train on targets with mean 0 and standard deviation 1 (predictions have the "
        "original scale); none: train on unscaled targets",
        choices=(STANDARD, NONE),
    )


NUMBER_NAMES = ("label", "score", "similarity", "target", "rating", "value", "y")

REGRESSION = TaskDeclaration(
    name="regression",
    summary="a number for a text, or the similarity of a pair",
    options=RegressionConfig,
    example=(
        "bert-pipeline finetune regression --train pairs.csv --eval dev.csv --init run "
        "--text-pair-column other --output similarity"
    ),
    inputs=("text", "text_pair"),
    predictions=(PredictionField("predicted_value", "value"),),
    implementation="bert_tf.tasks.regression.task:RegressionTask",
    host="bert_tf.tasks.regression.metrics:RegressionHost",
    page="bert_tf.tasks.regression.page:sections",
    columns=labeled_texts(
        "a number to predict",
        names=NUMBER_NAMES,
        fits=lambda column: column.is_quantity,
        rank=lambda column: -column.distinct,
    ),
)
