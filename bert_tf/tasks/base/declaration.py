"""Declarations and shared options of tasks, for command line and scoring, without TensorFlow."""

from __future__ import annotations

import dataclasses
import importlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from bert_tf.base.errors import Fault, UsageError
from bert_tf.config.section import Fraction, option, optional
from bert_tf.config.sections.finetuning import (
    HEAD,
    LONG_TEXTS,
    WINDOWS,
    FinetuneConfig,
    Teaching,
)
from bert_tf.config.sections.models import ExportConfig
from bert_tf.config.values import Bounds

if TYPE_CHECKING:
    from bert_tf.data.tables.sketches import ColumnSketch, TableSketch

_KERAS_HUB_ENCODER = "BertBackbone"
PAIR_IS_OPTIONAL = "is_pair_optional"
"""Key of `task.json`: true if a table without the column of the second text has single texts."""
PRETRAINING_METRIC_TYPES = dict.fromkeys(
    ("mlm_accuracy", "nsp_accuracy", "sop_accuracy"), "accuracy"
)
"""`TaskCard.metric_types` of the metrics of a pretraining run."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskCard:
    """The task's part of a model card.

    Attributes:
        facts: items of a list: inputs, outputs, ….
        example: a row by input name: a text, or a list of texts.
        signature_output: the output of the exported model to look at first.
        transformers_class: the class of transformers that loads the model with its head.
        pipeline_tag: the Hub's name of the task.
        metric_types: the Hub's ids of metrics that have other names in metrics.json.
        google_script: script of google-research/bert that loads the model; None without one.
        script_reads_text: whether that script needs the vocabulary.
    """

    title: str
    facts: tuple[str, ...] = ()
    example: Mapping[str, Any]
    signature_output: str
    transformers_class: str
    pipeline_tag: str
    metric_types: Mapping[str, str] = dataclasses.field(default_factory=dict)
    keras_hub_class: str = _KERAS_HUB_ENCODER
    google_script: str | None = None
    script_reads_text: bool = True
    limits: str = (
        "The model is only as good as its data: evaluate it on your own rows with `bert-pipeline "
        "evaluate` before relying on it."
    )

    @property
    def signature_call(self) -> str:
        """The arguments of the exported model's signature for the example, in Python."""
        rows = {
            name: json.dumps([value], ensure_ascii=False) for name, value in self.example.items()
        }
        return ", ".join(f"{name}=tf.constant({row})" for name, row in rows.items())

    @property
    def is_keras_hub_task(self) -> bool:
        """Whether KerasHub has the whole task, not only the encoder."""
        return self.keras_hub_class != _KERAS_HUB_ENCODER


FieldKind = Literal["label", "probability", "text", "place", "count", "value", "json"]


@dataclasses.dataclass(frozen=True)
class PredictionField:
    """A column that predictions add to rows, and an output of the exported model.

    Kinds: a `label`; a `probability`; a `text`; a `place`, counted in characters, -1 for none; a
    `count`, an integer; any other number, a `value`; or lists and objects, as `json`: JSON text in
    the outputs of an exported model, Python lists and dicts in a task's own predictions.

    Attributes:
        decided_by: name of the probability that has to reach --abstain-below; None if there is
            none.
        is_extra: whether `score` adds the column only on request; `evaluate` always does.
        only_with: the input without which models do not predict it; None for none.
    """

    name: str
    kind: FieldKind
    decided_by: str | None = None
    is_extra: bool = False
    only_with: str | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProbabilitiesField:
    """The probabilities of all choices of a task, for `score --scores`.

    Without `labels`, the key of `task.json` with the names in order, each row has its own choices,
    numbered from 0, in `list_input`; rows with fewer have zeros at the end.
    """

    output: str  # name of the exported model's output, float32 [rows, n]
    noun: str  # name of a choice
    labels: str | None = None
    list_input: str | None = None


def same_text(name: str, text: str) -> Any:
    """Return the text as the value of an input that takes texts.

    Args:
        name: name of the input.
        text: text that the value must hold.
    """
    return text


@dataclasses.dataclass(frozen=True, kw_only=True)
class WordsDeclaration:
    """Columns that `score` adds to rows of lists of words, joined by blanks to the text.

    Attributes:
        input: name of the model's input for the text.
        column: name of the words, as of `--column` and in `task.json`.
        prediction: in CoNLL files the last column.
        implementation: `module:function` from (words [rows], the model's outputs by name, its
            `task.json`) to outputs by name, [rows]: `prediction`, a list with a value per word, and
            those that replace the model's.
    """

    input: str
    column: str
    prediction: PredictionField
    implementation: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServedTaskDeclaration:
    """The inputs and outputs of exported models of a task.

    Attributes:
        row_fault: returns why `score` rejects a row with texts, from its values by input name.
        is_exact: whether `score` computes it in float32 unless another precision is asked for,
            since 16 bits would change the order of the numbers that users compare.
        has_distances: whether `finetune` keeps the distances of texts from the rows of each label.
        outcome_faults: returns why rows cannot be predicted although they could be read, by their
            numbers, from the outputs [rows] by name.
        trial_value: a value of an input, by its name, that holds a given text; `export` compares
            the outputs for such values.
    """

    name: str  # as on the command line and in `task.json`
    summary: str  # the predictions, for the help
    inputs: tuple[str, ...]  # except those whose column is null in `task.json`
    predictions: tuple[PredictionField, ...]
    implementation: str  # `module:class` of the `ServedTask`
    host: str | None = None  # `module:class` of a `HostTask`; None if only the graph has its steps
    probabilities: ProbabilitiesField | None = None
    row_fault: Callable[[Mapping[str, Any]], Fault | None] | None = None
    outcome_faults: Callable[[Mapping[str, Any]], dict[int, Fault]] | None = None
    is_exact: bool = False
    has_distances: bool = False
    trial_value: Callable[[str, str], Any] = same_text
    words: WordsDeclaration | None = None  # None if the task takes no rows of words

    def optional_inputs(self, task: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the inputs that rows may lack, by a model's `task.json`: empty texts then."""
        return self.inputs[1:] if task.get(PAIR_IS_OPTIONAL) else ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class PretrainedTaskDeclaration(ServedTaskDeclaration):
    """A task for pretrained models.

    Attributes:
        options: the section of `export`.
        example: a command line to copy.
        run_fault: returns why a run cannot be exported for the task, from its manifest; None if it
            can.
    """

    options: type[ExportConfig]
    example: str
    run_fault: Callable[[Mapping[str, Any]], str | None] | None = None

    def for_columns(self, columns: Mapping[str, Any] | None) -> Self:
        """Return the declaration of models that read these columns, by input.

        Args:
            columns: column of each input, None where the model does not read it, as in `task.json`.
        """
        read = {name for name, column in (columns or {}).items() if column is not None}
        kept = tuple(
            field
            for field in self.predictions
            if field.only_with is None or field.only_with in read
        )
        return dataclasses.replace(self, predictions=kept)


@dataclasses.dataclass(frozen=True, kw_only=True)
class LabelErrorsDeclaration:
    """The search for wrong labels of a task."""

    options: type[FinetuneConfig]  # and a `LabelErrorsSection`
    example: str  # a command line to copy
    implementation: str  # `module:function` from (config, console, check, folder) to `LabelErrors`


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskDeclaration(ServedTaskDeclaration):
    """A task to fine-tune for, as `bert_tf.tasks.registry` lists it.

    Attributes:
        page: `module:function` of an evaluation's page, from (task, source, predicted, results) to
            sections (`report_sections.py`); without one it shows the first predictions.
        columns: the settings that name a table's columns, for `init`; without it the defaults hold.
    """

    options: type[FinetuneConfig]
    example: str  # a command line to copy
    label_errors: LabelErrorsDeclaration | None = None
    page: str | None = None
    columns: Callable[[TableSketch], dict[str, Any]] | None = None


def imported(path: str) -> Any:
    """Import the object that a declaration names.

    Args:
        path: `module:attribute`.
    """
    module, _, attribute = path.partition(":")
    return getattr(importlib.import_module(module), attribute)


def faults_of_length(config: FinetuneConfig, least: int, texts: str = "a text") -> Iterator[str]:
    """Yield a fault if sequences are too short for the texts of a task.

    Args:
        config: options of the task.
        least: tokens that a sequence needs, [CLS] and [SEP] included.
        texts: the texts that would get no token, for the message.
    """
    if config.sequence_length < least:
        yield (
            f"max_seq_length: {config.max_seq_length} leaves no token of {texts} beside [CLS] and "
            f"[SEP]; use at least {least}"
        )


class TableTaskConfig(FinetuneConfig):
    """Fine-tunes on a table with a column of texts, or two, and a column of labels."""

    always_needed: ClassVar[tuple[str, ...]] = ("text_column", "label_column")

    text_column: str = option("column of the text", "text")
    text_pair_column: str | None = optional("column of the second text of a pair")
    label_column: str = option("column of the label", "label")
    long_texts: str = option(
        "handling of texts longer than max_seq_length: use only the head, the head and tail, or "
        "all of it in overlapping windows whose logits are averaged",
        choices=LONG_TEXTS,
    )

    def faults(self) -> Iterator[str]:
        yield from faults_of_length(self, 3 if self.text_pair_column is None else 5)
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
            temperature=getattr(self, "distill_temperature", 1.0),
        )


class SoftLabelConfig(DistillationConfig):
    """The same for tasks whose predictions are probabilities."""

    distill_temperature: Annotated[float, Bounds(maximum=100.0, above=0.0)] = option(
        "with --teacher: temperature of the softmax of both models in the distillation loss", 2.0
    )


LABEL_NAMES = (
    "label",
    "labels",
    "class",
    "category",
    "stance",
    "target",
    "sentiment",
    "intent",
    "topic",
    "gold_label",
    "y",
)
_TEXT_NAMES = ("text", "sentence")


def labeled_texts(what: str, **label: Any) -> Callable[[TableSketch], dict[str, Any]]:
    """Make `TaskDeclaration.columns` for a text, or a pair of texts, with a label.

    Args:
        what: name of the label in messages: "a label".
        **label: arguments of `TableSketch.find` for its column.
    """

    def columns(table: TableSketch) -> dict[str, Any]:
        from bert_tf.data.tables.cells import PRODIGY  # Arrow: help needs none

        names = {column.name for column in table.columns}
        if "accept" in names and names & PRODIGY:
            # Prodigy's `answer` is the action of the annotator, not a label.
            kept = tuple(column for column in table.columns if column.name != "answer")
            table = dataclasses.replace(table, columns=kept)
        label_column = table.find("label_column", **label)
        if label_column is None:
            error = table.missing("label_column", what, label["names"])
            lists = [column.name for column in table.columns if column.kind == "list"]
            if not lists:
                raise error
            raise UsageError(
                f"{error}; lists of labels, as in {lists[0]!r}, need fine-tuning for any number of "
                "labels"
            )
        return {**likely_texts(table, taken=(label_column,)), "label_column": label_column}

    return columns


def likely_texts(table: TableSketch, *, taken: tuple[str | None, ...] = ()) -> dict[str, Any]:
    """Choose the column of the text and, if names say that there is one, of the second text.

    Args:
        table: statistics of the columns; `chosen` has those that the user named.
        taken: columns with another use, such as the label's.

    Returns:
        Names by option: `text_column`, and `text_pair_column` if there is one.
    """
    from bert_tf.data.tables.value_forms import PAIRS  # Arrow: help needs none

    if table.chosen.get("text_column") is None and table.chosen.get("text_pair_column") is None:
        free_columns = [column for column in table.columns if column.name not in taken]
        by_name = {column.name.lower(): column for column in free_columns}
        for names in PAIRS:
            pair = [by_name[name] for name in names if name in by_name]
            if len(pair) == len(names) and all(map(holds_text, pair)):
                return {"text_column": pair[0].name, "text_pair_column": pair[1].name}
    settings = {
        "text_column": table.column(
            "text_column",
            "the text",
            names=_TEXT_NAMES,
            fits=lambda column: column.is_text,
            rank=by_length,
            taken=taken,
        )
    }
    pair_column = table.chosen.get("text_pair_column")
    if pair_column:
        settings["text_pair_column"] = pair_column
    return settings


def by_length(column: ColumnSketch) -> float:
    """Return a rank of columns that puts those with long texts first."""
    return -column.characters


def holds_text(column: ColumnSketch) -> bool:
    """Return whether the cells of a column are texts, rather than numbers, labels or lists."""
    return column.kind == "text"
