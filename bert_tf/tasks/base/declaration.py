"""Declarations of tasks for the command line and scoring, without TensorFlow."""

from __future__ import annotations

import dataclasses
import importlib
import json
from collections.abc import Callable, Mapping
from typing import Any, Literal

from bert_tf.config.sections.finetuning import FinetuneConfig, LabelErrorsConfig
from bert_tf.config.sections.models import ExportConfig

_KERAS_HUB_ENCODER = "BertBackbone"
PRETRAINING_METRIC_TYPES = dict.fromkeys(
    ("mlm_accuracy", "nsp_accuracy", "sop_accuracy"), "accuracy"
)
"""`TaskCard.metric_types` of what a pretraining run measures."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskCard:
    """The task's part of a model card.

    Attributes:
        facts: items of a list: inputs, outputs, ….
        example: a row for the exported model: a text, or a list of texts, by input name.
        signature_output: the output to look at first.
        metric_types: the Hub's ids of metrics that metrics.json names otherwise.
        google_script: script of google-research/bert that loads the model.
        script_reads_text: whether that script needs the vocabulary.
        limits: advice before relying on the model.
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
        "The model is as good as its data: measure it on rows of your own with "
        "`bert-pipeline evaluate` before relying on it."
    )

    @property
    def signature_call(self) -> str:
        """Arguments of the exported model's signature for the example, in Python."""
        rows = {
            name: json.dumps([value], ensure_ascii=False) for name, value in self.example.items()
        }
        return ", ".join(f"{name}=tf.constant({row})" for name, row in rows.items())

    @property
    def is_keras_hub_task(self) -> bool:
        """Whether KerasHub has the whole task, not only the encoder."""
        return self.keras_hub_class != _KERAS_HUB_ENCODER


FieldKind = Literal["label", "probability", "text", "place", "value", "json"]


@dataclasses.dataclass(frozen=True)
class PredictionField:
    """A column that predictions add to rows.

    Attributes:
        name: of the column, and of the exported model's output.
        kind: a `label`; a `probability`; a `text`; a `place`, counted in characters, -1 for none;
            any other number, a `value`; or lists and objects, as `json`: JSON text in the outputs
            of an exported model, Python lists and dicts in a task's own predictions.
        decided_by: the probability that has to reach `--abstain-below` to fill in the column.
        is_extra: whether `score` adds it only on request; `evaluate` always does.
    """

    name: str
    kind: FieldKind
    decided_by: str | None = None
    is_extra: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProbabilitiesField:
    """The probabilities of all choices of a task, for `score --scores`.

    Attributes:
        output: name of the exported model's output, float32 [rows, n].
        noun: name of a choice.
        labels: key of `task.json` with the names in order; None if each row has its own choices,
            numbered from 0, in `list_input`; rows with fewer have zeros at the end.
    """

    output: str
    noun: str
    labels: str | None = None
    list_input: str | None = None


Fault = tuple[str, str]
"""Why a row cannot be used: a reason as of `Reject`, and what was found there or nothing."""


def same_text(name: str, text: str) -> Any:
    return text


@dataclasses.dataclass(frozen=True, kw_only=True)
class WordsDeclaration:
    """Additions of `score` to rows that are lists of words, joined by blanks to the text.

    Attributes:
        input: name of the model's input for the text.
        column: of words, as of `--column` and in `task.json`.
        prediction: the column with a prediction for each word; in CoNLL files the last column.
        implementation: `module:function` from (words [rows], the model's outputs by name) to these
            lists.
    """

    input: str
    column: str
    prediction: PredictionField
    implementation: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServedTaskDeclaration:
    """The inputs and outputs of exported models of a task.

    Attributes:
        name: as on the command line and in `task.json`.
        summary: the predictions, for the help.
        inputs: of exported models, except those whose column is null in `task.json`.
        implementation: `module:class` of the `ServedTask`.
        host: `module:class` of its `HostTask`; None if only TensorFlow's graph has its steps.
        row_fault: why `score` rejects a row with texts, from its values by input name.
        trial_value: a value of an input, by its name, that holds a given text; `export` compares
            the outputs for such values.
        words: of rows that are lists of words; None if the task takes none.
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
    """A task for pretrained models; `example` is a command line to copy."""

    options: type[ExportConfig]
    example: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class LabelErrorsDeclaration:
    """The search for wrong labels of a task.

    `implementation` is `module:function`, from (config, console, check, folder) to `LabelErrors`.
    """

    options: type[LabelErrorsConfig]
    example: str
    implementation: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskDeclaration(ServedTaskDeclaration):
    """A task to fine-tune for, as `bert_tf.tasks.registry` lists it.

    Attributes:
        example: a command line to copy.
        label_errors: None if the task does not look for wrong labels.
        page: `module:function` of an evaluation's page, from (task, source, predicted, results) to
            sections (`report_sections.py`); without one it shows the first predictions.
        columns: `module:function` from a `TableSketch` to the settings that name its columns, for
            `init`; without one the defaults hold.
    """

    options: type[FinetuneConfig]
    example: str
    label_errors: LabelErrorsDeclaration | None = None
    page: str | None = None
    columns: str | None = None


def imported(path: str) -> Any:
    module, _, attribute = path.partition(":")
    return getattr(importlib.import_module(module), attribute)
