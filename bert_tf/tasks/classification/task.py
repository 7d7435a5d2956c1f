"""Classification of a text or a pair of texts into two or more labels."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import tensorflow as tf

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError
from bert_tf.base.wording import quantity
from bert_tf.data.tables.tables import Table
from bert_tf.models.heads import ProblemType
from bert_tf.tasks.base.declaration import TaskDeclaration
from bert_tf.tasks.base.losses import weighted_hits
from bert_tf.tasks.base.task import ROW_WEIGHTS, Student, TaskData, TaskReport
from bert_tf.tasks.base.task_fields import learned
from bert_tf.tasks.classification.calibration import (
    CalibrationReport,
    fit_temperature,
)
from bert_tf.tasks.classification.class_weights import NONE, class_weights
from bert_tf.tasks.classification.host import label_predictions
from bert_tf.tasks.classification.loss import (
    loss_without_texts,
    smoothed_cross_entropy,
    weights_of_labels,
)
from bert_tf.tasks.classification.metrics import classification_metrics
from bert_tf.tasks.classification.options import CLASSIFICATION, UNCALIBRATED
from bert_tf.tasks.classification.report import LabelReport
from bert_tf.tasks.classification.row_weights import rejecting_bad_weights
from bert_tf.tasks.tables.distillation import order_of_labels, softened_divergence
from bert_tf.tasks.tables.known_labels import reject_unknown_labels
from bert_tf.tasks.tables.labels import (
    LabelRows,
    label_table,
    labels_on_card,
    sorted_labels,
    suspicious_labels,
)
from bert_tf.tasks.tables.table_task import TableTask
from bert_tf.training.protocols import Batch, LossParts
from bert_tf.weights.import_weights import classifier_labels, classifier_problem
from bert_tf.weights.model_directory import ModelDirectory

_FEW_LABELS, _MANY_LABELS = 5, 1000  # never, and always, reason to doubt the column


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClassificationTask(TableTask, Student):
    """One label per row (Devlin et al. 2019, section 4.1; the tasks of GLUE but STS-B).

    Attributes:
        labels: names in the order of the logits.
        class_weights: as the option gives them.
        label_weights: what that makes the weight of each label in the loss; () for 1 each.
        weight_column: the column of row weights, if training rows have them.
        label_smoothing: fraction of a target that is spread over all labels.
        calibration: whether a temperature is fitted on the evaluation rows.
        temperature: what logits are divided by before they become probabilities.
    """

    declaration: ClassVar[TaskDeclaration] = CLASSIFICATION
    title: ClassVar[str] = "Text classifier"
    google_script: ClassVar[str | None] = "run_classifier.py"
    metric_types: ClassVar[Mapping[str, str]] = {"macro_f1": "f1"}

    labels: tuple[str, ...] = learned(())
    class_weights: str = NONE
    label_weights: tuple[float, ...] = ()
    weight_column: str | None = None
    label_smoothing: float = 0.0
    calibration: str = UNCALIBRATED
    temperature: float = 1.0

    @classmethod
    def from_weights(cls, directory: ModelDirectory) -> Self | None:
        """The task of a classifier that chooses one label."""
        if classifier_problem(directory) is not ProblemType.SINGLE_LABEL_CLASSIFICATION:
            return None
        return cls.of_weights(directory, labels=tuple(classifier_labels(directory)))

    def learn(self, table: Table, console: Console) -> Self:
        """Finds the labels and their weights.

        Raises:
            InputError: fewer than two labels, or no row has a weight.
            UsageError: a label that no row has is given a weight.
        """
        labels = sorted_labels(set(self.gold(table)))
        if len(labels) < 2:
            raise InputError(
                f"{table.source}: column {self.label_column!r} holds {labels[0]!r} in every row; "
                "classification needs at least two labels"
            )
        if len(labels) > max(_FEW_LABELS, min(_MANY_LABELS, len(table) // 2)):
            console.warn(
                f"{table.source}: column {self.label_column!r} holds {len(labels):,} labels in "
                f"{quantity(len(table), 'row')}; is it the right column?"
            )
        else:
            for line in suspicious_labels(self._label_rows(table)):
                console.warn(line)
        return dataclasses.replace(self, labels=labels).trained_on(table)

    def trained_on(self, source: Table) -> Self:
        """With the weights of labels that follow from these rows.

        Raises:
            InputError: no row has a weight, or with balanced labels none of a label.
            UsageError: a label that no row has is given a weight.
        """
        row_weights = self.row_weights(source)
        if not row_weights.any():
            raise InputError(
                f"{source.source}: column {self.weight_column!r} holds 0 in every row, so no row "
                "counts; is it the right column?"
            )
        weights = class_weights(
            self.class_weights, self.labels, self.gold(source), row_weights.tolist()
        )
        return dataclasses.replace(self, label_weights=weights)

    def usable(self, table: Table, console: Console) -> Table:
        """Rejects rows whose weight is no number from 0, or whose label the model does not know;
        labels are without the blanks around them, unless the model has them.

        Raises:
            InputError: no row is left.
        """
        labels = [label if label in self.labels else label.strip() for label in self.gold(table)]
        table = dataclasses.replace(table, columns={**table.columns, self.label_column: labels})
        if self.weight_column in table.columns:
            table = rejecting_bad_weights(table, self.weight_column)
        if not self.labels:
            return table
        rows = [(label,) for label in self.gold(table)]
        return reject_unknown_labels(table, rows, self.labels, console)

    def classes(self, table: Table) -> list[str]:
        """The labels."""
        return self.gold(table)

    def gold(self, table: Table) -> list[str]:
        """The name of each row's label."""
        return table.columns[self.label_column]

    def describe(self, train: Table, evaluation: Table | None) -> Iterator[str]:
        """The labels with their rows."""
        rows = None if evaluation is None else self._label_rows(evaluation)
        return label_table(self.labels, self._label_rows(train), rows)

    @property
    def num_logits(self) -> int:
        """One per label."""
        return len(self.labels)

    def targets(self, table: Table) -> dict[str, np.ndarray]:
        """`label`: its number, int32 [rows]."""
        return {"label": self._numbers(self.gold(table))}

    def training_columns(self) -> tuple[str, ...]:
        """The column of weights."""
        return () if self.weight_column is None else (self.weight_column,)

    def row_weights(self, table: Table) -> np.ndarray:
        """The column of weights; 1 without one."""
        if self.weight_column is None:
            return super().row_weights(table)
        return np.array(table.columns[self.weight_column], np.float32)

    def chance_loss(self, targets: Mapping[str, np.ndarray], weights: np.ndarray) -> float:
        """That of predicting the frequencies of the labels for every row."""
        return loss_without_texts(
            targets["label"],
            weights,
            classes=len(self.labels),
            class_weights=self.label_weights,
            smoothing=self.label_smoothing,
        )

    def weights(self, batch: Batch) -> dict[str, tf.Tensor]:
        """The sum of the weights of rows, each times that of its label."""
        weights = batch[ROW_WEIGHTS] * weights_of_labels(batch["label"], self.label_weights)
        return {"loss": tf.reduce_sum(weights)}

    def loss_parts(self, outputs: dict[str, tf.Tensor], batch: Batch) -> LossParts:
        """Cross-entropy, and accuracy, in which rows count alike."""
        logits, labels, weights = outputs["logits"], batch["label"], batch[ROW_WEIGHTS]
        losses = smoothed_cross_entropy(
            logits, labels, class_weights=self.label_weights, smoothing=self.label_smoothing
        )
        predicted = tf.argmax(logits, axis=-1, output_type=tf.int32)
        counted = tf.cast(weights > 0, tf.float32)
        return LossParts(
            losses={"loss": tf.reduce_sum(losses * weights)},
            metrics={"accuracy": weighted_hits(predicted == labels, counted)},
        )

    def order_of_logits(self, teacher: Self, path: str) -> np.ndarray:
        """Where the teacher has each label."""
        return order_of_labels(self.labels, teacher.labels, path)

    def soft_losses(
        self, logits: tf.Tensor, teacher_logits: tf.Tensor, *, temperature: float
    ) -> tf.Tensor:
        """See `softened_divergence`."""
        return softened_divergence(logits, teacher_logits, temperature)

    def fitted(self, data: TaskData, reduced: dict[str, np.ndarray]) -> Self:
        """With the temperature of the evaluation rows, if it is asked for."""
        if self.calibration == UNCALIBRATED:
            return self
        temperature = fit_temperature(reduced["logits"], data.targets["label"])
        return dataclasses.replace(self, temperature=temperature)

    def served_predictions(self, logits: tf.Tensor) -> dict[str, tf.Tensor]:
        """The likeliest label, its probability, and those of all labels."""
        probabilities = tf.nn.softmax(logits / self.temperature, axis=-1)
        return {
            "predicted_label": tf.gather(self.labels, tf.argmax(probabilities, axis=-1)),
            "predicted_score": tf.reduce_max(probabilities, axis=-1),
            "probabilities": probabilities,
        }

    def served_constants(self) -> dict[str, tf.Tensor]:
        """`labels`, string [labels], in the order of `probabilities`."""
        return {"labels": tf.constant(self.labels)}

    def predictions(self, logits: np.ndarray) -> dict[str, Any]:
        """See `served_predictions`."""
        return label_predictions(logits, self.labels, self.temperature)

    def metrics(self, table: Table, predicted: dict[str, Any]) -> dict[str, float]:
        """Accuracy, macro F1, Matthews correlation."""
        gold, chosen = self.gold(table), predicted["predicted_label"]
        return classification_metrics(self._numbers(gold), self._numbers(chosen))

    def report(self, table: Table, predicted: dict[str, Any]) -> TaskReport:
        """Measures by label, the confusion of labels, and calibration."""
        gold = self._numbers(self.gold(table))
        labels = LabelReport(gold, self._numbers(predicted["predicted_label"]), self.labels)
        calibration = CalibrationReport(predicted["probabilities"], gold, self.temperature)
        is_calibrated = self.calibration != UNCALIBRATED
        return TaskReport(
            details={**labels.details(), "calibration": calibration.details()},
            lines=(*labels.lines(), *((calibration.line(),) if is_calibrated else ())),
            warnings=(*labels.warnings(), *calibration.warnings()),
        )

    def card_facts(self) -> Iterator[str]:
        """The labels, and what calibrates their probabilities."""
        yield labels_on_card(self.labels)
        if self.calibration != UNCALIBRATED:
            yield (
                f"probabilities are calibrated: logits are divided by {self.temperature:g} before "
                "the softmax, in this tool's exported graph; other libraries do not divide them"
            )

    def _label_rows(self, table: Table) -> LabelRows:
        return LabelRows(table.source, self.gold(table), table.lines)

    def _numbers(self, labels: Sequence[str]) -> np.ndarray:
        number = {label: place for place, label in enumerate(self.labels)}
        return np.array([number[label] for label in labels], np.int32)
