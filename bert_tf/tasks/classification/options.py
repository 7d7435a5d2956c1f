"""What can be known of classification without TensorFlow: its options, inputs and outputs."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from bert_tf.config.sections.finetuning import best_metric_option, sequence_length_option
from bert_tf.tasks.declaration import PredictionField, TaskDeclaration
from bert_tf.tasks.table_options import TableTaskConfig

SEQUENCE_LENGTH = 128
METRICS = ("accuracy", "macro_f1", "matthews_correlation")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClassificationConfig(TableTaskConfig):
    """Fine-tunes a classifier of texts, or of pairs of texts."""

    metrics: ClassVar[tuple[str, ...]] = METRICS
    default_sequence_length: ClassVar[int] = SEQUENCE_LENGTH

    max_seq_length: int = sequence_length_option(SEQUENCE_LENGTH)
    best_metric: str | None = best_metric_option(*METRICS)


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
