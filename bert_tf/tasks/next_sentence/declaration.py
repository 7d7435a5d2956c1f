"""Options, inputs and outputs of next sentences, without TensorFlow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bert_tf.config.section import option
from bert_tf.config.sections.models import ExportConfig
from bert_tf.tasks.base.declaration import PredictionField, PretrainedTaskDeclaration

TEXT = "text"
PAIR = "text_pair"
# Losses in the metrics of a run that trained the head, by the order or the origin of segments.
_LOSSES = ("nsp_loss", "sop_loss")


class NextSentenceConfig(ExportConfig):
    """Exports a pretrained model that tells whether a text follows another."""

    text_column: str = option("column of the first text", TEXT)
    text_pair_column: str = option("column of the text that may follow it", PAIR)

    def faults(self) -> Iterator[str]:
        if self.text_column == self.text_pair_column:
            yield (
                f"text_pair_column: is {self.text_pair_column!r}, as is text_column; name another "
                "column"
            )


def untrained_head(manifest: Mapping[str, Any]) -> str | None:
    """Return why the head of a run of `train` has learned nothing; None if it has."""
    measured = (manifest.get("metrics") or {}).get("train") or {}
    if "mlm_loss" not in measured or any(name in measured for name in _LOSSES):
        return None
    return (
        "its next-sentence head is untrained, since its records have no pairs "
        "(preprocess.pair_task=none)"
    )


NEXT_SENTENCE = PretrainedTaskDeclaration(
    name="next-sentence",
    summary="the probability that a text follows another",
    options=NextSentenceConfig,
    example="bert-pipeline export --run bert --task next-sentence --output follower",
    inputs=(TEXT, PAIR),
    predictions=(PredictionField("predicted_score", "probability"),),
    implementation="bert_tf.tasks.next_sentence.task:NextSentenceTask",
    host="bert_tf.tasks.next_sentence.host:NextSentenceHost",
    run_fault=untrained_head,
)
