"""Classification of a text or a pair of texts into two or more labels."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import tensorflow as tf

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError
from bert_tf.base.wording import quantity
from bert_tf.config.bert import BertConfig
from bert_tf.config.sections import EvaluateConfig
from bert_tf.config.sections.scoring import check_columns_are_read
from bert_tf.data.rows.encoded_rows import encode_texts
from bert_tf.data.tables.dialect import PLAIN, TableDialect
from bert_tf.data.tables.rejects import Reject, summarize_rejects
from bert_tf.data.tables.tables import Table, read_table
from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.models.classification import BertClassifier
from bert_tf.tasks.classification.label_report import (
    LabelRows,
    label_table,
    shown_labels,
    suspicious_labels,
    unknown_labels,
)
from bert_tf.tasks.classification.metrics import classification_metrics
from bert_tf.tasks.classification.options import CLASSIFICATION, ClassificationConfig
from bert_tf.tasks.classification.reference import reference_probabilities
from bert_tf.tasks.classification.serving import TextClassifier
from bert_tf.tasks.losses import cross_entropy, weighted_hits
from bert_tf.tasks.prediction_rows import prediction_rows
from bert_tf.tasks.task import ROW_WEIGHTS, TaskData, TaskResults
from bert_tf.tasks.task_card import TaskCard
from bert_tf.training.plan.protocols import Batch, LossParts
from bert_tf.weights.import_weights import chooses_one_label, classifier_labels
from bert_tf.weights.model_directory import ModelDirectory

_WHOLE_NUMBER = re.compile(r"-?\d+")
_MANY_LABELS = 1000
_LABELS_ON_CARD = 20


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClassificationTask:
    """One label a row (Devlin et al. 2019, section 4.1; the tasks of GLUE but STS-B).

    Attributes:
        labels: names in the order of the logits.
        text_column, text_pair_column, label_column: where a table holds what.
        max_seq_length: pieces of a row.
    """

    name: ClassVar[str] = CLASSIFICATION.name

    labels: tuple[str, ...]
    text_column: str
    text_pair_column: str | None
    label_column: str
    max_seq_length: int

    @classmethod
    def from_training(cls, config: ClassificationConfig, console: Console) -> tuple[Self, Table]:
        """Reads the training rows and finds the labels.

        Raises:
            InputError: fewer than two labels.
        """
        undecided = cls(
            labels=(),
            text_column=config.text_column,
            text_pair_column=config.text_pair_column,
            label_column=config.label_column,
            max_seq_length=config.sequence_length,
        )
        table = undecided.read(
            config.train,
            console,
            dialect=TableDialect.of(config),
            max_rows=config.max_train_rows,
        )
        labels = sorted_labels(set(table.columns[config.label_column]))
        if len(labels) < 2:
            raise InputError(
                f"{config.train}: column {config.label_column!r} holds {labels[0]!r} in every row; "
                f"classification needs at least two labels{_rejected(table)}"
            )
        if len(labels) > min(_MANY_LABELS, len(table) // 2):
            console.warn(
                f"{config.train}: column {config.label_column!r} holds {len(labels):,} labels in "
                f"{quantity(len(table), 'row')}; is it the right column?"
            )
        else:
            for line in suspicious_labels(undecided.label_rows(table)):
                console.warn(line)
        return dataclasses.replace(undecided, labels=labels), table

    @classmethod
    def from_settings(cls, settings: dict[str, Any]) -> Self:
        """The task of a model directory."""
        columns = settings["columns"]
        return cls(
            labels=tuple(settings["labels"]),
            text_column=columns["text"],
            text_pair_column=columns["text_pair"],
            label_column=columns["label"],
            max_seq_length=settings["max_seq_length"],
        )

    @classmethod
    def from_weights(cls, directory: ModelDirectory) -> Self | None:
        """The task of a classifier that chooses one label, with the default columns.

        Whoever fine-tuned it elsewhere left no note of column names, nor of the longest row.
        """
        if not chooses_one_label(directory):
            return None
        longest = directory.config.max_position_embeddings
        return cls(
            labels=tuple(classifier_labels(directory)),
            text_column=ClassificationConfig.text_column,
            text_pair_column=ClassificationConfig.text_pair_column,
            label_column=ClassificationConfig.label_column,
            max_seq_length=min(ClassificationConfig.default_sequence_length, longest),
        )

    def settings(self) -> dict[str, Any]:
        """The content of `task.json`."""
        return {
            "task": self.name,
            "labels": list(self.labels),
            "columns": {
                "text": self.text_column,
                "text_pair": self.text_pair_column,
                "label": self.label_column,
            },
            "max_seq_length": self.max_seq_length,
        }

    def with_columns(self, config: EvaluateConfig) -> Self:
        """The same task, reading other columns where the config names them."""
        pair = () if self.text_pair_column is None else ("text_pair",)
        check_columns_are_read(config, ("text", *pair, "label"))
        return dataclasses.replace(
            self,
            text_column=config.text_column or self.text_column,
            text_pair_column=config.text_pair_column or self.text_pair_column,
            label_column=config.label_column or self.label_column,
        )

    def read(
        self, path: str, console: Console, *, dialect: TableDialect = PLAIN, max_rows: int = 0
    ) -> Table:
        """Reads texts and labels; rows with a label that the model does not know are rejected.

        Raises:
            InputError: no row is left.
        """
        pair = () if self.text_pair_column is None else (self.text_pair_column,)
        table = read_table(
            path,
            dialect=dialect,
            text_columns=(self.text_column, *pair),
            value_columns=(self.label_column,),
            max_rows=max_rows,
            console=console,
        )
        return self._with_known_labels(table, console) if self.labels else table

    def label_rows(self, table: Table) -> LabelRows:
        """The labels of a table."""
        return LabelRows(table.source, table.columns[self.label_column], table.lines)

    def describe(self, train: Table, evaluation: Table | None) -> Iterator[str]:
        """The labels with their rows."""
        rows = None if evaluation is None else self.label_rows(evaluation)
        return label_table(self.labels, self.label_rows(train), rows)

    def _with_known_labels(self, table: Table, console: Console) -> Table:
        known = set(self.labels)
        labels = table.columns[self.label_column]
        kept = [index for index, label in enumerate(labels) if label in known]
        if len(kept) == len(labels):
            return table
        unknown = [
            (label, line)
            for label, line in zip(labels, table.lines, strict=True)
            if label not in known
        ]
        rejects = [
            Reject(table.source, line, "label is not one the model knows", repr(label))
            for label, line in unknown
        ]
        if not kept:
            raise InputError(
                f"{table.source}: no row has a label the model knows "
                f"({shown_labels(self.labels)}); the first: {rejects[0]}"
            )
        rows = LabelRows(table.source, *zip(*unknown, strict=True))
        for text in unknown_labels(rows, self.labels):
            console.warn(text)
        return dataclasses.replace(
            table,
            columns={name: [values[i] for i in kept] for name, values in table.columns.items()},
            lines=[table.lines[index] for index in kept],
            rejects=[*table.rejects, *rejects],
        )

    def texts(self, source: Table) -> dict[str, list[str]]:
        """`text`, and `text_pair` where rows are pairs."""
        texts = {"text": source.columns[self.text_column]}
        if self.text_pair_column is not None:
            texts["text_pair"] = source.columns[self.text_pair_column]
        return texts

    def encode(self, source: Table, tokenizer: WordPieceTokenizer, *, training: bool) -> TaskData:
        """Tokenizes the texts and numbers the labels."""
        texts = self.texts(source)
        rows = encode_texts(
            tokenizer,
            texts["text"],
            texts.get("text_pair"),
            max_seq_length=self.max_seq_length,
        )
        return TaskData(
            source=source,
            rows=rows,
            targets={"label": self._numbers(source.columns[self.label_column])},
            weights=np.ones(len(rows), np.float32),
        )

    def _numbers(self, labels: Sequence[str]) -> np.ndarray:
        number = {label: place for place, label in enumerate(self.labels)}
        return np.array([number[label] for label in labels], np.int32)

    def serving_module(self, model: Any, tokenizer: WordPieceTokenizer) -> TextClassifier:
        """Labels with their probabilities."""
        return TextClassifier(self, model, tokenizer)

    def reference_outputs(
        self, model: Any, tokenizer: WordPieceTokenizer, texts: dict[str, list[str]]
    ) -> dict[str, np.ndarray]:
        """The probability of every label."""
        return {
            "probabilities": reference_probabilities(
                self, model, tokenizer, texts["text"], texts.get("text_pair")
            )
        }

    def card(self) -> TaskCard:
        """A classifier of texts, or of pairs."""
        pair = self.text_pair_column
        texts = f"`{self.text_column}`" + ("" if pair is None else f" and `{pair}`")
        listed = ", ".join(f"`{label}`" for label in self.labels[:_LABELS_ON_CARD])
        more = len(self.labels) - _LABELS_ON_CARD
        second = "" if pair is None else ', text_pair=tf.constant(["another text"])'
        return TaskCard(
            title="Text classifier",
            facts=(
                f"trained on the columns {texts} (text) and `{self.label_column}` (label)",
                f"texts are cut at {self.max_seq_length} pieces",
                f"labels: {listed}" + (f" and {more:,} more" if more > 0 else ""),
            ),
            signature_call=f'text=tf.constant(["some text"]){second}',
            signature_output="predicted_label",
            transformers_class="AutoModelForSequenceClassification",
            keras_hub_class="BertTextClassifier",
            google_script="run_classifier.py",
        )

    def build_model(self, config: BertConfig, *, policy: str) -> BertClassifier:
        """The encoder with a linear layer on its pooled output."""
        return BertClassifier(
            config, num_labels=len(self.labels), dtype=policy, name="classification"
        )

    def outputs(
        self, model: Any, batch: Batch, *, training: bool, dropout_key: tf.Tensor | None
    ) -> dict[str, tf.Tensor]:
        """`logits`, float32 [rows, labels]."""
        return {"logits": model(batch, training=training, dropout_key=dropout_key)}

    def weights(self, batch: Batch) -> dict[str, tf.Tensor]:
        """The number of rows."""
        return {"loss": tf.reduce_sum(batch[ROW_WEIGHTS])}

    def loss_parts(self, outputs: dict[str, tf.Tensor], batch: Batch) -> LossParts:
        """Cross-entropy and accuracy."""
        logits, labels, weights = outputs["logits"], batch["label"], batch[ROW_WEIGHTS]
        predicted = tf.argmax(logits, axis=-1, output_type=tf.int32)
        return LossParts(
            losses={"loss": tf.reduce_sum(cross_entropy(logits, labels) * weights)},
            metrics={"accuracy": weighted_hits(predicted == labels, weights)},
        )

    def reduce(
        self, data: TaskData, chosen: np.ndarray, outputs: dict[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """The logits."""
        return outputs

    def predict(self, data: TaskData, reduced: dict[str, np.ndarray]) -> dict[str, Any]:
        """The likeliest label and its probability."""
        logits = reduced["logits"].astype(np.float64)
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        return {
            "predicted_label": [self.labels[choice] for choice in logits.argmax(axis=1)],
            "predicted_score": odds.max(axis=1) / odds.sum(axis=1),
        }

    def measure(self, source: Table, predicted: dict[str, Any]) -> TaskResults:
        """Accuracy, macro F1, Matthews correlation; a label and its probability a row."""
        gold = source.columns[self.label_column]
        chosen = predicted["predicted_label"]
        return TaskResults(
            metrics=classification_metrics(self._numbers(gold), self._numbers(chosen)),
            predictions=[
                {"line": line, "label": label, **cells}
                for line, label, cells in zip(
                    source.lines,
                    gold,
                    prediction_rows(CLASSIFICATION.predictions, predicted),
                    strict=True,
                )
            ],
        )


def _rejected(table: Table) -> str:
    if not table.rejects:
        return ""
    rows = len(table) + len(table.rejects)
    summary = summarize_rejects(table.rejects)[0]
    return f"; {len(table.rejects):,} of {quantity(rows, 'row')} are rejected, most for: {summary}"


def sorted_labels(labels: set[str]) -> tuple[str, ...]:
    """Labels in a stable order: by number if all are whole numbers, else as text."""
    if all(_WHOLE_NUMBER.fullmatch(label) for label in labels):
        return tuple(sorted(labels, key=lambda label: (int(label), label)))
    return tuple(sorted(labels))
