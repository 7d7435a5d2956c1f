"""Options, inputs and outputs of multi-label classification, without TensorFlow."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from bert_tf.config.section import option, repeatable
from bert_tf.config.sections.finetuning import names_in, repeated_names
from bert_tf.tasks.base.declaration import (
    PredictionField,
    ProbabilitiesField,
    SoftLabelConfig,
    TaskDeclaration,
    labeled_texts,
    likely_texts,
)

if TYPE_CHECKING:
    from bert_tf.data.tables.sketches import ColumnSketch, TableSketch

SEPARATOR = "|"
GLOBAL = "global"
PER_LABEL = "per-label"
FIXED = "0.5"


class MultiLabelConfig(SoftLabelConfig):
    """Fine-tunes a classifier that assigns any number of labels to a text or a pair of texts."""

    metrics: ClassVar[tuple[str, ...]] = (
        "micro_f1",
        "macro_f1",
        "samples_f1",
        "subset_accuracy",
        "mean_average_precision",
        "roc_auc",
        "label_ranking_average_precision",
    )

    label_column: tuple[str, ...] = option(  # type: ignore[assignment]
        "column of the labels: a list, or a string with separators; if repeated, one column of "
        "0 or 1 per label, named after it",
        ("label",),
    )
    label_names: tuple[str, ...] = repeatable(
        "names of labels that the file has as ids from 0, or as a list of zeros and ones: A,B,C"
    )
    label_separator: str = option("separator of labels in a string", SEPARATOR)
    thresholds: str = option(
        "minimum probability of a predicted label: best F1 on the evaluation rows, for all "
        f"labels (global) or each (per-label); or {FIXED}",
        choices=(GLOBAL, PER_LABEL, FIXED),
    )

    @property
    def names(self) -> tuple[str, ...]:
        """Return `label_names`, of which several may be in one text."""
        return names_in(self.label_names)

    def faults(self) -> Iterator[str]:
        if len(self.label_column) > 1 and self.label_names:
            yield (
                "label_names: with several label_column these are the names of the labels; leave "
                "one of the two out"
            )
        for key, names in (("label_names", self.names), ("label_column", self.label_column)):
            yield from repeated_names(key, names)


_NAMES = ("labels", "label", "tags", "topics", "genres", "categories", "classes", "accept")


def likely_columns(table: TableSketch) -> dict[str, Any]:
    """Choose the columns of texts and labels, see `TaskDeclaration.columns`.

    Finds the separator of labels, too, and columns of zeros and ones with a label each.
    """
    label_column = table.chosen.get("label_column")
    if label_column is not None:
        columns = list(label_column)
    elif any(column.is_label_list and column.separator != " " for column in table.columns):
        columns = []
    else:
        from bert_tf.data.tables.value_forms import names_split  # Arrow: help needs none

        columns = [column.name for column in table.columns if column.binary]
        columns = [name for name in columns if not names_split(name)]
    if len(columns) > 1:
        return {**likely_texts(table, taken=tuple(columns)), "label_column": columns}
    if label_column is not None:
        table = dataclasses.replace(table, chosen={**table.chosen, "label_column": columns[0]})
    most_words = max((column.words for column in table.columns), default=0.0)

    def may_be_labels(column: ColumnSketch) -> bool:
        # Blanks in the column with the most words are those of texts.
        is_text = column.separator == " " and column.words >= most_words
        return column.is_label_list and not is_text

    choose = labeled_texts(
        "a list of labels", names=_NAMES, fits=may_be_labels, rank=lambda column: column.distinct
    )
    settings = choose(table)
    separators = {column.name: column.separator for column in table.columns}
    separator = separators.get(settings["label_column"])
    if separator is not None:
        settings["label_separator"] = separator
    return settings


MULTILABEL = TaskDeclaration(
    name="multilabel",
    summary="any number of labels for a text or a pair of texts",
    options=MultiLabelConfig,
    example=(
        "bert-pipeline finetune multilabel --train train.jsonl --eval dev.jsonl --init run "
        "--output topics"
    ),
    inputs=("text", "text_pair"),
    predictions=(
        PredictionField("predicted_labels", "json"),
        PredictionField("predicted_scores", "json"),
    ),
    probabilities=ProbabilitiesField(output="probabilities", noun="label", labels="labels"),
    implementation="bert_tf.tasks.multilabel.task:MultiLabelTask",
    host="bert_tf.tasks.multilabel.metrics:MultiLabelHost",
    page="bert_tf.tasks.multilabel.page:sections",
    columns=likely_columns,
)
