"""The options of tasks whose rows are a text or a pair of texts; see `bert_tf.tasks.table_task`."""

from __future__ import annotations

import dataclasses

from bert_tf.config.section import option
from bert_tf.config.sections.finetuning import FinetuneConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableTaskConfig(FinetuneConfig):
    """Fine-tunes on a table with a column of texts, or two, and a column of labels."""

    text_column: str = option("column of the text", default="text")
    text_pair_column: str | None = option("column of the second text", default=None)
    label_column: str = option("column of the label", default="label")

    def faults(self) -> list[str]:
        """Refuses sequences too short for texts as well."""
        faults = super().faults()
        least = 3 if self.text_pair_column is None else 5
        if self.sequence_length < least:
            faults.append(
                f"max_seq_length: {self.max_seq_length} leaves no token of a text beside [CLS] and "
                f"[SEP]; use at least {least}"
            )
        return faults
