"""What a model card says of a tagger."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bert_tf.tasks.base.declaration import TaskCard

if TYPE_CHECKING:
    from bert_tf.tasks.tagging.task import TaggingTask

_LABELS_ON_CARD = 20


def tagging_card(task: TaggingTask) -> TaskCard:
    """Labels, column, how words and long texts are read."""
    listed = ", ".join(f"`{label}`" for label in task.labels[:_LABELS_ON_CARD])
    more = len(task.labels) - _LABELS_ON_CARD
    return TaskCard(
        title="Tagger of words",
        facts=(
            f"tags ({task.scheme}): {listed}" + (f" and {more:,} more" if more > 0 else ""),
            f"reads texts from the column `{task.columns.text}`; its words are what blanks and "
            "punctuation separate, and the first token of a word decides its tag",
            f"texts of any length, read in windows of {task.max_seq_length} tokens with a "
            f"stride of {task.window_stride}; a word is read where it has most context",
            "`predicted_entities` is a JSON list with start and end (characters), label, text "
            "and score (mean probability of the words' tags); `predicted_tags` has every word",
        ),
        example={"text": "Ada Lovelace was born in London."},
        signature_output="predicted_entities",
        transformers_class="AutoModelForTokenClassification",
        pipeline_tag="token-classification",
        metric_types={"macro_f1": "f1", "strict_f1": "f1"},
    )
