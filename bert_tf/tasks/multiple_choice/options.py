"""Options, inputs and outputs of multiple choice, without TensorFlow."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from bert_tf.base.errors import Fault
from bert_tf.config.section import option, optional
from bert_tf.config.sections.finetuning import FinetuneConfig
from bert_tf.tasks.base.declaration import (
    LABEL_NAMES,
    PredictionField,
    ProbabilitiesField,
    TaskDeclaration,
    by_length,
    faults_of_length,
    holds_text,
)

if TYPE_CHECKING:
    from bert_tf.data.tables.sketches import TableSketch

MOST_CHOICES = 1000
_CONTEXT = ("context", "passage", "article", "premise", "sent1", "question")
_QUESTION = ("question", "sent2")
_CHOICES = ("choices", "options", "endings", "answers")
_NUMBERED = re.compile(
    r"(choice|ending|option|answer|alternative|sol|solution|op|candidate|response)[_ ]?([a-j0-9])"
    r"|[a-j]",  # a column that is only named by a letter
    re.IGNORECASE,
)
_WRONG = re.compile(r"(distractor|wrong_?answer|incorrect_?answer)_?[a-z0-9]", re.IGNORECASE)
_RIGHT = ("correct_answer", "answer", "right_answer", "correct")


class MultipleChoiceConfig(FinetuneConfig):
    """Fine-tunes a model that chooses the correct one of several texts."""

    always_needed: ClassVar[tuple[str, ...]] = ("context_column", "label_column")

    metrics: ClassVar[tuple[str, ...]] = ("accuracy", "mean_reciprocal_rank")

    context_column: str = option("column of the context", "context")
    question_column: str | None = optional(
        "column of a question or start of a sentence that every choice continues"
    )
    choices_column: tuple[str, ...] = option(
        "column with the list of choices, or of one choice; repeatable", ("choices",)
    )
    label_column: str = option("column of the correct choice", "label")
    label_form: str = option(
        "form of the labels: number of the choice, from 0, its letter, from A, or its text (auto: "
        "the form of all training labels, number before letter)",
        choices=("auto", "number", "letter", "text"),
    )

    def faults(self) -> Iterator[str]:
        yield from faults_of_length(self, 5, "a context and a choice")


def choices_fault(values: Mapping[str, Any]) -> Fault | None:
    """Return reason and detail if a row's choices cannot be compared; None if they can.

    Args:
        values: values of a row by input; `choices` is None for a cell that is not a list of texts.
    """
    choices = values["choices"]
    if choices is None:
        return "choices are not a list of texts", ""
    if len(choices) < 2:
        return "fewer than two choices", str(len(choices))
    if len(choices) > MOST_CHOICES:
        return f"more than {MOST_CHOICES:,} choices", f"{len(choices):,}"
    empty = next((number for number, text in enumerate(choices) if not text.strip()), None)
    return None if empty is None else ("a choice is empty", f"choice {empty}, from 0")


def trial_choices(name: str, text: str) -> Any:
    """Return a value of a trial row: a text, or 2 to 4 choices, by the length of the text."""
    if name != "choices":
        return text
    count = 2 + len(text) % 3
    return ["yes", f"no {text}", "maybe so", text or "never"][:count]


def likely_columns(table: TableSketch) -> dict[str, Any]:
    """Choose the columns of context, question, choices and label, see `TaskDeclaration.columns`.

    Choices are in a column with lists, in numbered columns such as `ending0`, or in a column of the
    right choice beside columns of wrong ones.
    """
    choices = _choices(table)
    label = table.column(
        "label_column",
        "the right choice",
        names=(*LABEL_NAMES, "answer", "correct", "answerkey", "answer_key", "cop", *_RIGHT),
        fits=lambda each: each.kind in ("text", "number") and each.distinct > 1,
        rank=lambda each: each.distinct,
        taken=[name for name in choices if name.lower() not in _RIGHT],
    )
    taken = (*choices, label)
    context = table.column(
        "context_column",
        "the context",
        names=_CONTEXT,
        fits=holds_text,
        rank=by_length,
        taken=taken,
    )
    taken = (*taken, context)
    question = table.find("question_column", names=_QUESTION, fits=holds_text, taken=taken)
    settings: dict[str, Any] = {
        "context_column": context,
        "choices_column": list(choices),
        "label_column": label,
    }
    if question:
        settings["question_column"] = question
    return settings


def _choices(table: TableSketch) -> tuple[str, ...]:
    """Return the columns of the choices: the chosen ones, numbered ones, or one with lists."""
    chosen = table.chosen.get("choices_column")
    if isinstance(chosen, list | tuple) and chosen:
        return tuple(chosen)
    if chosen:
        return (str(chosen),)
    numbered = tuple(each.name for each in table.columns if _NUMBERED.fullmatch(each.name))
    if len(numbered) > 1:
        return numbered
    wrong = tuple(each.name for each in table.columns if _WRONG.fullmatch(each.name))
    right = [each.name for each in table.columns if each.name.lower() in _RIGHT]
    if wrong and right:
        return right[0], *wrong
    listed = table.column(
        "choices_column",
        "the list of choices",
        names=_CHOICES,
        fits=lambda each: each.kind == "list" or each.name.lower() in _CHOICES,
        rank=lambda each: each.distinct,
    )
    return (listed,)


MULTIPLE_CHOICE = TaskDeclaration(
    name="multiple-choice",
    summary="the correct one of several texts for a context",
    options=MultipleChoiceConfig,
    example=(
        "bert-pipeline finetune multiple-choice --train questions.jsonl --eval dev.jsonl "
        "--init bert --output chooser"
    ),
    inputs=("context", "question", "choices"),
    predictions=(
        PredictionField("predicted_choice", "place"),
        PredictionField("predicted_text", "text"),
        PredictionField("predicted_score", "probability"),
    ),
    probabilities=ProbabilitiesField(output="probabilities", noun="choice", list_input="choices"),
    implementation="bert_tf.tasks.multiple_choice.task:MultipleChoiceTask",
    host="bert_tf.tasks.multiple_choice.host:MultipleChoiceHost",
    page="bert_tf.tasks.multiple_choice.task:sections",
    columns=likely_columns,
    row_fault=choices_fault,
    trial_value=trial_choices,
)
