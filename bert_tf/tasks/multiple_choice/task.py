"""Choosing the right one of several texts (SWAG; Devlin et al. 2019, section 4.4)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import tensorflow as tf

from bert_tf.base.console import Console
from bert_tf.config.bert import BertConfig
from bert_tf.config.sections import EvaluateConfig
from bert_tf.config.sections.scoring import given_columns
from bert_tf.data.rows.encoded_rows import GroupedRows
from bert_tf.data.rows.holdout import RowGroups
from bert_tf.data.tables.dialect import PLAIN, TableDialect
from bert_tf.data.tables.judged import SHOWN_ROWS, ReadValues
from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.models.heads import BertMultipleChoice
from bert_tf.serving.graphs.multiple_choice import ChoiceModule, choice_logits
from bert_tf.serving.signatures import FAR_BELOW
from bert_tf.tasks.base.ceiling import Cause
from bert_tf.tasks.base.declaration import TaskCard, TaskDeclaration
from bert_tf.tasks.base.histograms import confidence_histogram
from bert_tf.tasks.base.host_task import named_columns
from bert_tf.tasks.base.labels import LabelRows, label_table
from bert_tf.tasks.base.prediction_rows import TaskResults, exact_values, labeled_rows
from bert_tf.tasks.base.report_sections import (
    Mark,
    MarkKind,
    MatrixSection,
    Section,
    negative_logs,
    table_by_group,
    table_by_length,
    worst_rows,
)
from bert_tf.tasks.base.standard_errors import error_of_mean
from bert_tf.tasks.base.task import (
    Baseline,
    Task,
    cross_entropy,
    weighted_hits,
)
from bert_tf.tasks.base.task_data import ROW_WEIGHTS, TaskData
from bert_tf.tasks.multiple_choice.ceiling import (
    choice_causes,
    gold_choice_logits,
    with_right_texts,
)
from bert_tf.tasks.multiple_choice.host import choice_predictions
from bert_tf.tasks.multiple_choice.options import MULTIPLE_CHOICE, MultipleChoiceConfig
from bert_tf.tasks.multiple_choice.rows import ChoiceColumns, ChoiceRows, read_choices
from bert_tf.training.protocols import Batch, LossParts
from bert_tf.weights.import_weights import architecture
from bert_tf.weights.model_directory import ModelDirectory


@dataclasses.dataclass(frozen=True, kw_only=True)
class MultipleChoiceTask(Task):
    """Compares scores of the choices of a row, whose number may differ by row.

    Each choice is scored by itself with its context, so neither the place of a choice nor the
    number of choices changes its score.

    Attributes:
        columns: names of the columns.
        label_form: form of the labels, `number`, `letter` or `text`.
        max_seq_length: most tokens of a sequence of context, question and choice.
    """

    declaration: ClassVar[TaskDeclaration] = MULTIPLE_CHOICE
    ceiling_metrics: ClassVar[tuple[str, ...]] = ("accuracy",)

    columns: ChoiceColumns
    label_form: str
    max_seq_length: int

    @classmethod
    def from_training(
        cls, config: MultipleChoiceConfig, console: Console
    ) -> tuple[Self, ChoiceRows]:
        columns = named_columns(ChoiceColumns, config)
        rows = read_choices(
            config.train, columns, label_form=config.label_form, **cls.reading(config, console)
        )
        return cls.of_options(config, columns=columns, label_form=rows.label_form), rows

    @classmethod
    def from_weights(cls, directory: ModelDirectory) -> Self | None:
        if architecture(directory) != BertMultipleChoice.huggingface_class:
            return None
        columns = named_columns(ChoiceColumns, MultipleChoiceConfig)
        return cls.of_weights(directory, columns=columns, label_form="number")

    def inputs(self) -> tuple[str, ...]:
        question = () if self.columns.question is None else ("question",)
        return ("context", *question, "choices")

    def with_columns(self, config: EvaluateConfig) -> Self:
        columns = given_columns(config, (*self.inputs(), "label"), lists=("choices",))
        return dataclasses.replace(self, columns=dataclasses.replace(self.columns, **columns))

    def read(self, path: str, console: Console, *, dialect: TableDialect = PLAIN) -> ChoiceRows:
        return read_choices(
            path, self.columns, label_form=self.label_form, dialect=dialect, console=console
        )

    def describe(self, sources: Mapping[str, ChoiceRows]) -> Iterator[str]:
        for name, source in sources.items():
            least = source.counts.min()
            most = source.counts.max()
            number = f"{most}" if least == most else f"{least} to {most}"
            chance = (1 / source.counts).mean()
            yield f"  {name}: {number} choices per row; {chance:.4f} are right by chance"
        rows_by_name: dict[str, LabelRows] = {}
        for name, source in sources.items():
            right = list(map(str, source.right.tolist()))
            rows_by_name[name] = LabelRows(source.source, right, source.lines, places=source.places)
        labels = {label for rows in rows_by_name.values() for label in rows.counts}
        yield from label_table(sorted(labels, key=int), rows_by_name)

    def texts(self, source: ChoiceRows) -> dict[str, list[Any]]:
        texts: dict[str, list[Any]] = {"context": source.contexts, "choices": source.choices}
        if source.questions is not None:
            texts["question"] = source.questions
        return texts

    def read_values(self, source: ChoiceRows) -> ReadValues:
        columns = self.columns
        first = range(min(len(source), SHOWN_ROWS))
        right = [source.choices[row][source.right[row]] for row in first]
        shown = [
            {columns.context: source.contexts[row], "choices": source.choices[row], "right": text}
            for row, text in zip(first, right, strict=True)
        ]
        question = filter(None, (columns.question,))
        return ReadValues(
            source=source.source,
            lines=source.lines,
            places=source.places,
            texts={columns.context: source.contexts},
            used=(columns.context, *question, *columns.choices, columns.label),
            shown=shown,
        )

    def groups(self, source: ChoiceRows) -> RowGroups:
        return RowGroups(keys=source.contexts)

    def encode(
        self, source: ChoiceRows, tokenizer: WordPieceTokenizer, *, training: bool
    ) -> TaskData:
        sequences = self.host().encode(tokenizer, self.texts(source)).sequences
        return TaskData(
            source=source,
            rows=GroupedRows.of(sequences, source.counts),
            targets={"right_choice": source.right.astype(np.int32)},
            weights=np.ones(len(source), np.float32),
            chance_loss=float(np.log(source.counts).mean()),
        )

    def build_model(self, config: BertConfig, *, policy: str) -> BertMultipleChoice:
        return BertMultipleChoice(config, dtype=policy, name="multiple_choice")

    def outputs(
        self, model: Any, batch: Batch, *, training: bool, dropout_key: tf.Tensor | None
    ) -> dict[str, tf.Tensor]:
        return choice_logits(model, batch, training=training, dropout_key=dropout_key)

    def loss_parts(self, outputs: dict[str, tf.Tensor], batch: Batch) -> LossParts:
        logits = outputs["logits"]
        right = batch["right_choice"]
        weights = batch[ROW_WEIGHTS]
        chosen = tf.argmax(logits, axis=-1, output_type=tf.int32)
        return LossParts(
            losses={"loss": tf.reduce_sum(cross_entropy(logits, right) * weights)},
            metrics={"accuracy": weighted_hits(chosen == right, weights)},
        )

    def reduce(
        self, data: TaskData, chosen: np.ndarray, outputs: dict[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """Return the logits, padded to the most choices of any row of the file."""
        logits = outputs["logits"]
        missing = data.rows.sequences_per_row - logits.shape[1]
        return {"logits": np.pad(logits, ((0, 0), (0, missing)), constant_values=FAR_BELOW)}

    def predict(self, data: TaskData, reduced: dict[str, np.ndarray]) -> dict[str, Any]:
        return choice_predictions(reduced["logits"], data.source.choices)

    def baseline(self, train: ChoiceRows, evaluation: ChoiceRows) -> Baseline:
        frequent = int(np.bincount(train.right).argmax())
        same = float((evaluation.right == frequent).mean())
        guessed = float((1 / evaluation.counts).mean())
        return Baseline({"accuracy": max(same, guessed)}, "guessing, or always the same choice")

    def measure(self, source: ChoiceRows, predicted: dict[str, Any]) -> TaskResults:
        values = choice_values(
            source.right,
            np.asarray(predicted["predicted_choice"]),
            predicted["probabilities"],
            source.counts,
        )
        padded = exact_values(np.asarray(predicted["probabilities"]))
        counts = source.counts.tolist()
        probabilities = [row[:count] for row, count in zip(padded, counts, strict=True)]
        predictions = labeled_rows(
            self.declaration.predictions,
            source,
            source.right,
            predicted,
            probabilities=probabilities,
        )
        return TaskResults(
            metrics={name: float(of_rows.mean()) for name, of_rows in values.items()},
            errors={name: error_of_mean(of_rows) for name, of_rows in values.items()},
            predictions=predictions,
        )

    def known_targets(self, data: TaskData) -> TaskData:
        return with_right_texts(data)

    def gold_outputs(self, data: TaskData) -> Callable[[np.ndarray], dict[str, np.ndarray]]:
        return gold_choice_logits(data)

    def is_right(self, row: Mapping[str, Any]) -> bool:
        return bool(row["predicted_choice"] == row["label"])

    def ceiling_causes(self, data: TaskData, missed: np.ndarray) -> Iterator[Cause]:
        return choice_causes(data, missed, f"{self.length_flag} {self.max_seq_length}")

    def serving_module(self, model: Any, tokenizer: WordPieceTokenizer) -> ChoiceModule:
        return ChoiceModule(
            model,
            tokenizer,
            has_question=self.columns.question is not None,
            max_seq_length=self.max_seq_length,
        )

    def sequence_outputs(self, model: Any, batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        return {"logits": model(batch, training=False)}

    def card(self) -> TaskCard:
        columns = self.columns
        question = "" if columns.question is None else f", `{columns.question}` (question)"
        listed = ", ".join(f"`{name}`" for name in columns.choices)
        return TaskCard(
            title="Multiple choice model",
            facts=(
                f"trained on the columns `{columns.context}` (context){question}, {listed} "
                f"(choices) and `{columns.label}` (the right one's {self.label_form})",
                "any number of choices; in the graph, rows with fewer choices are padded with "
                "empty texts",
                "the model scores each pair of context and choice separately, and predicts the "
                "choice with the highest score",
                f"pairs are cut at {self.max_seq_length} tokens",
            ),
            example={
                "context": "Ada sits down.",
                **({} if columns.question is None else {"question": "Then she"}),
                "choices": ["writes a letter.", "flies away."],
            },
            signature_output="predicted_text",
            transformers_class="AutoModelForMultipleChoice",
            pipeline_tag="multiple-choice",
            keras_hub_class="BertTextClassifier",  # with one class, the score of a pair
        )


def choice_values(
    right: np.ndarray, chosen: np.ndarray, probabilities: np.ndarray, counts: np.ndarray
) -> dict[str, np.ndarray]:
    """Return the values whose means are the metrics.

    Args:
        right, chosen: int [rows], numbers of the right and of the predicted choices.
        probabilities: float [rows, choices]; the first `counts` of a row are its choices.
        counts: int [rows], number of choices of each row.

    Returns:
        Values [rows] by metric: whether the row is right, and 1 / the rank of the right choice. A
        choice ranks after all others that are as likely (scikit-learn
        `label_ranking_average_precision_score`).
    """
    is_there = np.arange(probabilities.shape[1]) < counts[:, None]
    of_right = np.take_along_axis(probabilities, right[:, None], axis=1)
    ranks = ((probabilities >= of_right) & is_there).sum(axis=1)
    return {"accuracy": right == chosen, "mean_reciprocal_rank": 1 / ranks}


_MATRIX_CHOICES = 20  # at most, for a matrix of predicted and right places


def sections(
    task: MultipleChoiceTask, source: ChoiceRows, predicted: Mapping[str, Any], results: TaskResults
) -> Iterator[Section]:
    """Yield the sections of an evaluation's page, see `TaskDeclaration.page`."""
    right = source.right
    chosen = np.asarray(predicted["predicted_choice"])
    measures: dict[str, tuple[Any, np.ndarray]] = {
        "accuracy": ("fraction", right == chosen),
        "by chance": ("fraction", 1.0 / source.counts),
        "mean confidence": ("fraction", np.asarray(predicted["predicted_score"], float)),
    }
    most = int(source.counts.max())
    if source.counts.min() < most:
        names = [str(count) for count in range(most + 1)]
        yield table_by_group("By number of choices", "choices", source.counts, names, measures)
    texts = task.texts(source)
    yield table_by_length(texts, measures)
    if most <= _MATRIX_CHOICES:
        names = [str(place) for place in range(most)]
        yield MatrixSection(
            title="Places",
            row_title="right choice",
            column_title="predicted",
            rows=names,
            columns=names,
            counts=np.bincount(right * most + chosen, minlength=most * most).reshape(most, most),
            note="A column that is darker than the others is a position that the model prefers.",
        )
    yield confidence_histogram(predicted["predicted_score"], right != chosen)
    of_right = np.asarray(predicted["probabilities"])[np.arange(len(right)), right]
    wrong = np.where(right == chosen, -1.0, negative_logs(of_right))
    yield worst_rows(
        wrong,
        right != chosen,
        source.all_places,
        texts,
        lambda row: {
            "right": str(right[row]),
            "predicted": str(chosen[row]),
            "probability of the right one": f"{of_right[row]:.4f}",
            "of the prediction": f"{predicted['predicted_score'][row]:.4f}",
        },
        note="Wrongly predicted rows by the negative log probability of the right choice.",
        marks=lambda row: {
            "choices": [
                _choice_mark(texts["choices"][row], int(right[row]), "missed"),
                _choice_mark(texts["choices"][row], int(chosen[row]), "wrong"),
            ]
        },
        legend={"missed": "the right choice", "wrong": "the predicted one"},
    )


def _choice_mark(choices: Sequence[str], number: int, kind: MarkKind) -> Mark:
    """Mark a choice in the list of choices as `shown_texts` writes it: a numbered line for each."""
    lines = [f"{place}: {text}" for place, text in enumerate(choices)]
    start = sum(len(line) + 1 for line in lines[:number])
    return Mark(start, start + len(lines[number]), kind)
