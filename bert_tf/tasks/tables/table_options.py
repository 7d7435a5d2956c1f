"""The options of tasks whose rows are a text or a pair of texts; see `TableTask`."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from bert_tf.config.section import option
from bert_tf.config.sections.finetuning import HEAD, LONG_TEXTS, WINDOWS, FinetuneConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableTaskConfig(FinetuneConfig):
    """Fine-tunes on a table with a column of texts, or two, and a column of labels."""

    always_needed: ClassVar[tuple[str, ...]] = ("text_column", "label_column")

    text_column: str = option("column of the text", default="text")
    text_pair_column: str | None = option("column of the second text", default=None)
    label_column: str = option("column of the label", default="label")
    long_texts: str = option(
        "what is read of texts longer than max_seq_length: their head, their head and tail, or all "
        "in overlapping windows whose logits are averaged",
        default=HEAD,
        choices=LONG_TEXTS,
    )

    def faults(self) -> list[str]:
        """Refuses sequences too short for texts as well."""
        faults = super().faults()
        least = 3 if self.text_pair_column is None else 5
        if self.sequence_length < least:
            faults.append(
                f"max_seq_length: {self.max_seq_length} leaves no token of a text beside [CLS] and "
                f"[SEP]; use at least {least}"
            )
        if self.long_texts != HEAD and self.text_pair_column is not None:
            faults.append(
                f"long_texts: {self.long_texts} needs a single text per row; leave out "
                "text_pair_column, or use head"
            )
        return faults

    @property
    def remedy_for_long_texts(self) -> str:
        """What to do about texts that are cut."""
        if self.text_pair_column is not None:
            return super().remedy_for_long_texts
        return f"{super().remedy_for_long_texts}, or choose --long-texts {WINDOWS}"
