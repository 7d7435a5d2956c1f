"""What can be known of classification without TensorFlow: its options, inputs and outputs."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from bert_tf.config.section import option
from bert_tf.config.sections.finetuning import (
    FinetuneConfig,
    best_metric_option,
    sequence_length_option,
)
from bert_tf.tasks.declaration import PredictionField, TaskDeclaration

SEQUENCE_LENGTH = 128
METRICS = ("accuracy", "macro_f1", "matthews_correlation")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClassificationConfig(FinetuneConfig):
    """Fine-tunes a classifier of texts, or of pairs of texts."""

    metrics: ClassVar[tuple[str, ...]] = METRICS
    default_sequence_length: ClassVar[int] = SEQUENCE_LENGTH

    text_column: str = option("column of the text", default="text")
    text_pair_column: str | None = option("column of the second text", default=None)
    label_column: str = option("column of the label", default="label")
    max_seq_length: int = sequence_length_option(SEQUENCE_LENGTH)
    best_metric: str | None = best_metric_option(*METRICS)

    def faults(self) -> list[str]:
        """Refuses rows too short for texts as well."""
        faults = super().faults()
        least = 3 if self.text_pair_column is None else 5
        if self.sequence_length < least:
            faults.append(
                f"max_seq_length: {self.max_seq_length} leaves no token of a text beside [CLS] and "
                f"[SEP]; use at least {least}"
            )
        return faults


CLASSIFICATION = TaskDeclaration(
    name="classification",
    summary="one of several labels for a text or a pair of texts",
    options=ClassificationConfig,
    example=(
        "bert-pipeline finetune classification --train train.csv --eval dev.csv --init run "
        "--output complaints"
    ),
    inputs=("text", "text_pair"),
    predictions=(
        PredictionField("predicted_label", "label"),
        PredictionField("predicted_score", "probability"),
    ),
    implementation="bert_tf.tasks.classification.task:ClassificationTask",
)
