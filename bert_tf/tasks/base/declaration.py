"""What the command line and scoring know of a task without importing TensorFlow."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Mapping
from typing import Any, Literal

from bert_tf.config.sections.finetuning import FinetuneConfig, LabelErrorsConfig
from bert_tf.config.sections.models import ExportConfig

FieldKind = Literal["label", "probability", "text", "place", "value", "json"]


@dataclasses.dataclass(frozen=True)
class PredictionField:
    """A column that predictions add to rows.

    Attributes:
        name: of the column, and of the exported model's output.
        kind: what it holds: a `label`; a `probability`; a `text`; a `place`, counted in characters,
            -1 for none; any other number, a `value`; or lists and objects, as `json`: JSON text in
            the outputs of an exported model, Python lists and dicts in a task's own predictions.
        decided_by: the probability that has to reach `--abstain-below`, if it is given, for the
            column to be filled in; None where there is no such probability.
        is_extra: whether `score` adds it only on request; `evaluate` always does.
    """

    name: str
    kind: FieldKind
    decided_by: str | None = None
    is_extra: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProbabilitiesField:
    """The probabilities of all that a task chooses from, for `score --scores`.

    Attributes:
        output: name of the exported model's output, float32 [rows, n].
        noun: what each of them is of.
        labels: key of `task.json` with the name of each, in order; None where every row has its
            own, and they are known by their numbers, from 0.
        list_input: the input that they are of then; rows with fewer have zeros at the end.
    """

    output: str
    noun: str
    labels: str | None = None
    list_input: str | None = None


Fault = tuple[str, str]
"""Why a row cannot be used: a reason as of `Reject`, and what was found there or nothing."""


def same_text(name: str, text: str) -> Any:
    """A plain text is a value of any input as it is."""
    return text


@dataclasses.dataclass(frozen=True, kw_only=True)
class WordsDeclaration:
    """What `score` adds to rows that are lists of words, joined by blanks to the text.

    Attributes:
        input: name of the model's input that the text is.
        column: name of the column of words, as of `--column`, and its key in `task.json`.
        prediction: the column with what is predicted of each word, a list; in CoNLL files the last
            column.
        implementation: `module:function` from (words [rows], the model's outputs by name) to these
            lists.
    """

    input: str
    column: str
    prediction: PredictionField
    implementation: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServedTaskDeclaration:
    """What exported models of a task take and give.

    Attributes:
        name: as on the command line and in `task.json`.
        summary: what a model of it gives, for the help.
        inputs: names of what an exported model may take of each row; those whose column is null in
            the model's `task.json` it does not.
        predictions: the columns that it adds, in order.
        implementation: `module:class`, see `bert_tf.tasks.base.task`.
        probabilities: those of all that it chooses from; None where it does not choose, or gives
            none.
        host: `module:class` of its `HostTask`; None where only TensorFlow's graph has its steps.
        row_fault: why `score` rejects a row whose texts are there, from its values by input name;
            None where it rejects none.
        trial_value: the value of an input, by its name, that holds a given text; with such values
            an exported model is compared with the one it was made of.
        words: of rows that are lists of words; None where the task takes none.
    """

    name: str
    summary: str
    inputs: tuple[str, ...]
    predictions: tuple[PredictionField, ...]
    implementation: str
    host: str | None = None
    probabilities: ProbabilitiesField | None = None
    row_fault: Callable[[Mapping[str, Any]], Fault | None] | None = None
    trial_value: Callable[[str, str], Any] = same_text
    words: WordsDeclaration | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class PretrainedTaskDeclaration(ServedTaskDeclaration):
    """A task that pretrained models do, as `bert_tf.tasks.pretrained` lists it.

    Attributes:
        options: the section of `export`.
        example: a command line to copy.
    """

    options: type[ExportConfig]
    example: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class LabelErrorsDeclaration:
    """How a task finds rows whose label is likely wrong.

    Attributes:
        options: the section of `label-errors`.
        example: a command line to copy.
        implementation: `module:function`, from (config, console, check, folder) to
            `bert_tf.tasks.running.label_errors.LabelErrors`.
    """

    options: type[LabelErrorsConfig]
    example: str
    implementation: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskDeclaration(ServedTaskDeclaration):
    """A task to fine-tune for, as `bert_tf.tasks.registry` lists it.

    Attributes:
        options: the section of `finetune`.
        example: a command line to copy.
        label_errors: None where the task does not look for wrong labels.
        page: `module:function` that makes what the page of an evaluation shows of it, from (task,
            source, predicted, results) to `bert_tf.tasks.base.report_sections.Section`s; where
            there are none, that is the first predictions.
        columns: `module:function` from a `bert_tf.data.tables.sketches.TableSketch` to the settings
            that name its columns, for `init`; None where the defaults of the options are meant.
    """

    options: type[FinetuneConfig]
    example: str
    label_errors: LabelErrorsDeclaration | None = None
    page: str | None = None
    columns: str | None = None


def imported(path: str) -> Any:
    """Imports what a declaration names as `module:attribute`."""
    module, _, attribute = path.partition(":")
    return getattr(importlib.import_module(module), attribute)
