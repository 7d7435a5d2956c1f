"""What can be known of multiple choice without TensorFlow: its options, inputs and outputs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from bert_tf.config.section import option
from bert_tf.config.sections.finetuning import (
    FinetuneConfig,
    best_metric_option,
    sequence_length_option,
)
from bert_tf.tasks.base.declaration import (
    Fault,
    PredictionField,
    ProbabilitiesField,
    TaskDeclaration,
)

SEQUENCE_LENGTH = 128
METRICS = ("accuracy", "mean_reciprocal_rank")
MOST_CHOICES = 1000
_LEAST_LENGTH = 5  # [CLS] a [SEP] b [SEP]


@dataclasses.dataclass(frozen=True, kw_only=True)
class MultipleChoiceConfig(FinetuneConfig):
    """Fine-tunes a model that chooses the right one of several texts."""

    always_needed: ClassVar[tuple[str, ...]] = ("context_column", "label_column")

    metrics: ClassVar[tuple[str, ...]] = METRICS
    default_sequence_length: ClassVar[int] = SEQUENCE_LENGTH

    context_column: str = option("column of the context", default="context")
    question_column: str | None = option(
        "column of the text that every choice continues: a question, the start of a sentence",
        default=None,
    )
    choices_column: tuple[str, ...] = option(
        "column of the list of choices, or each choice's; repeatable", default=("choices",)
    )
    label_column: str = option("column of the right choice", default="label")
    label_form: str = option(
        "what a label is: the number of the choice, from 0, or its text (auto: numbers if all "
        "training labels are whole numbers)",
        default="auto",
        choices=("auto", "number", "text"),
    )
    max_seq_length: int = sequence_length_option(SEQUENCE_LENGTH)
    best_metric: str | None = best_metric_option(*METRICS)

    def faults(self) -> list[str]:
        """Refuses sequences too short for two texts as well."""
        faults = super().faults()
        if self.sequence_length < _LEAST_LENGTH:
            faults.append(
                f"max_seq_length: {self.max_seq_length} leaves no token of a context and a choice "
                f"beside [CLS] and [SEP]; use at least {_LEAST_LENGTH}"
            )
        return faults


def choices_fault(values: Mapping[str, Any]) -> Fault | None:
    """Why there is nothing to choose from, if so."""
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
    """Choices of a number that depends on the text, so that rows differ in it."""
    if name != "choices":
        return text
    return ["yes", f"no {text}", "maybe so", text or "never"][: 2 + len(text) % 3]


MULTIPLE_CHOICE = TaskDeclaration(
    name="multiple-choice",
    summary="the right one of several texts for a context",
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
    page="bert_tf.tasks.multiple_choice.page:sections",
    columns="bert_tf.tasks.multiple_choice.columns:likely_columns",
    row_fault=choices_fault,
    trial_value=trial_choices,
)
