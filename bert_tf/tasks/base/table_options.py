"""The options of tasks whose rows are a text or a pair of texts; see `TableTask`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from bert_tf.config.section import Bounds, Fraction, option, optional
from bert_tf.config.sections.finetuning import HEAD, LONG_TEXTS, WINDOWS, FinetuneConfig, Teaching

if TYPE_CHECKING:
    from bert_tf.data.tables.sketches import ColumnSketch, TableSketch


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableTaskConfig(FinetuneConfig):
    """Fine-tunes on a table with a column of texts, or two, and a column of labels."""

    always_needed: ClassVar[tuple[str, ...]] = ("text_column", "label_column")

    text_column: str = option("column of the text", "text")
    text_pair_column: str | None = optional("column of the second text of a pair")
    label_column: str = option("column of the label", "label")
    long_texts: str = option(
        "handling of texts longer than max_seq_length: use only the head, the head and tail, or "
        "all of it in overlapping windows whose logits are averaged",
        HEAD,
        choices=LONG_TEXTS,
    )

    def faults(self) -> Iterator[str]:
        yield from super().faults()
        least = 3 if self.text_pair_column is None else 5
        if self.sequence_length < least:
            yield (
                f"max_seq_length: {self.max_seq_length} leaves no token of a text beside [CLS] and "
                f"[SEP]; use at least {least}"
            )
        if self.long_texts != HEAD and self.text_pair_column is not None:
            yield (
                f"long_texts: {self.long_texts} needs a single text per row; leave out "
                "text_pair_column, or use head"
            )

    @property
    def remedy_for_long_texts(self) -> str:
        if self.text_pair_column is not None:
            return super().remedy_for_long_texts
        return f"{super().remedy_for_long_texts}, or choose --long-texts {WINDOWS}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class DistillationConfig(TableTaskConfig):
    """Fine-tunes on labels, or on labels and predictions of a larger model."""

    teacher: str | None = optional(
        "run or model directory, fine-tuned for the same task, to distill from", reads="model"
    )
    unlabeled: str | None = optional(
        "rows without labels for distillation from --teacher", reads="table"
    )
    distill_weight: Fraction = option(
        "with --teacher: weight of the distillation loss; the label loss has the remaining weight",
        0.5,
    )

    def faults(self) -> Iterator[str]:
        yield from super().faults()
        if self.unlabeled is not None and not (self.teacher and self.distill_weight):
            yield (
                "unlabeled: such rows are learned from a teacher; give --teacher and a "
                "--distill-weight above 0, or leave it out"
            )

    @property
    def more_inputs(self) -> dict[str, str | None]:
        return {"teacher": self.teacher, "unlabeled": self.unlabeled}

    @property
    def teaching(self) -> Teaching | None:
        if self.teacher is None:
            return None
        return Teaching(
            teacher=self.teacher,
            unlabeled=self.unlabeled,
            weight=self.distill_weight,
            temperature=self._temperature,
        )

    @property
    def _temperature(self) -> float:
        return 1.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class SoftLabelConfig(DistillationConfig):
    """The same for tasks whose predictions are probabilities."""

    distill_temperature: Annotated[float, Bounds(maximum=100.0, above=0.0)] = option(
        "with --teacher: temperature of the softmax of both models in the distillation loss", 2.0
    )

    @property
    def _temperature(self) -> float:
        return self.distill_temperature


LABEL_NAMES = (
    *("label", "labels", "class", "category", "target", "sentiment", "intent", "topic"),
    *("gold_label", "y"),
)
_TEXT_NAMES = ("text", "sentence")
_PAIRS = (
    ("text", "text_pair"),
    ("sentence1", "sentence2"),
    ("premise", "hypothesis"),
    ("question1", "question2"),
    ("question", "sentence"),
    ("text_a", "text_b"),
    ("text1", "text2"),
    ("sentence_a", "sentence_b"),
    ("#1 string", "#2 string"),
    ("query", "passage"),
)


def likely_labeled_texts(
    table: TableSketch,
    what: str,
    *,
    names: Sequence[str],
    fits: Callable[[ColumnSketch], bool],
    rank: Callable[[ColumnSketch], float],
) -> dict[str, Any]:
    """The columns of a label and of its text or pair of texts; UsageError if one is missing.

    `what`, `names`, `fits` and `rank` describe the label, as of `TableSketch.column`.
    """
    label = table.column("label_column", what, names=names, fits=fits, rank=rank)
    return {**likely_texts(table, taken=(label,)), "label_column": label}


def likely_texts(table: TableSketch, *, taken: tuple[str | None, ...] = ()) -> dict[str, Any]:
    """The columns of the text and, if their names say that there is one, of the second text.

    Skips the columns `taken`; raises UsageError if no column holds texts.
    """
    if table.given.get("text_column") is None and table.given.get("text_pair_column") is None:
        by_name = {each.name.lower(): each for each in table.columns if each.name not in taken}
        for first, second in _PAIRS:
            pair = by_name.get(first), by_name.get(second)
            if all(each is not None and each.kind == "text" for each in pair):
                return {"text_column": pair[0].name, "text_pair_column": pair[1].name}  # type: ignore[union-attr]
    text = table.column(
        "text_column",
        "the text",
        names=_TEXT_NAMES,
        fits=lambda each: each.is_text,
        rank=by_length,
        taken=taken,
    )
    pair_column = table.given.get("text_pair_column")
    return {"text_column": text} | ({"text_pair_column": pair_column} if pair_column else {})


def by_length(column: ColumnSketch) -> float:
    return -column.characters
