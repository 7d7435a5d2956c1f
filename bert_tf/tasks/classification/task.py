"""Classification of a text or a pair of texts into two or more labels."""

from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import tensorflow as tf

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError, UsageError
from bert_tf.base.wording import quantity
from bert_tf.data.tables.file_rows import Table
from bert_tf.data.tables.label_lists import single_labels
from bert_tf.models.heads import ProblemType
from bert_tf.tasks.base.ceiling import CERTAIN
from bert_tf.tasks.base.corrections import corrected_table
from bert_tf.tasks.base.declaration import TaskDeclaration
from bert_tf.tasks.base.label_task import LabelTask, softened_divergence
from bert_tf.tasks.base.labels import (
    labels_of_several,
    labels_on_card,
    reject_cells,
    shown_labels,
    sorted_labels,
    suspicious_labels,
)
from bert_tf.tasks.base.prediction_rows import TaskReport
from bert_tf.tasks.base.standard_errors import error_of_mean, jackknife_errors
from bert_tf.tasks.base.task import (
    Baseline,
    cross_entropy,
    weighted_hits,
)
from bert_tf.tasks.base.task_data import ROW_WEIGHTS, TaskData
from bert_tf.tasks.classification.metrics import (
    CalibrationReport,
    LabelReport,
    classification_metrics,
    fit_temperature,
)
from bert_tf.tasks.classification.options import (
    BALANCED,
    CLASSIFICATION,
    NONE,
    UNCALIBRATED,
    parse_class_weights,
)
from bert_tf.tasks.profile.profile import EvaluatedRows
from bert_tf.training.protocols import Batch, LossParts
from bert_tf.weights.import_weights import classifier_labels, classifier_problem
from bert_tf.weights.model_directory import ModelDirectory

# Numbers of labels: up to the first, a column is never doubted; above the second, always.
_FEW_LABELS = 5
_MANY_LABELS = 1000


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClassificationTask(LabelTask):
    """One label per row (Devlin et al. 2019, section 4.1; the tasks of GLUE but STS-B).

    Attributes:
        class_weights: the option.
        label_weights: weight of each label in the loss; () for 1 each.
        label_smoothing: fraction of a target to spread over all labels.
        calibration: whether to fit a temperature on the evaluation rows.
        temperature: divisor of the trained model's logits.
        is_temperature_in_head: whether the head's weights are divided by it already.
    """

    declaration: ClassVar[TaskDeclaration] = CLASSIFICATION
    title: ClassVar[str] = "Text classifier"
    google_script: ClassVar[str | None] = "run_classifier.py"
    metric_types: ClassVar[Mapping[str, str]] = {"macro_f1": "f1"}
    ceiling_metrics: ClassVar[tuple[str, ...]] = ("accuracy",)

    class_weights: str = NONE
    label_weights: tuple[float, ...] = ()
    weight_column: str | None = None
    label_smoothing: float = 0.0
    calibration: str = UNCALIBRATED
    temperature: float = 1.0
    is_temperature_in_head: bool = False

    @classmethod
    def from_weights(cls, directory: ModelDirectory) -> Self | None:
        if classifier_problem(directory) is not ProblemType.SINGLE_LABEL_CLASSIFICATION:
            return None
        return cls.of_weights(directory, labels=tuple(classifier_labels(directory)))

    def learn(self, table: Table, console: Console) -> Self:
        labels = sorted_labels(set(self.gold(table)))
        if len(labels) < 2:
            raise InputError(
                f"{table.source}: column {self.label_column!r} holds {labels[0]!r} in every row; "
                "classification needs at least two labels"
            )
        self.check_labels_repeat(table)
        if len(labels) > max(_FEW_LABELS, min(_MANY_LABELS, len(table) // 2)):
            console.warn(
                f"{table.source}: column {self.label_column!r} holds {len(labels):,} labels in "
                f"{quantity(len(table), 'row')}; is it the right column?"
            )
        else:
            rows = self.label_rows(table)
            console.warn(*suspicious_labels(rows), *labels_of_several(rows))
        return dataclasses.replace(self, labels=labels).trained_on(table)

    def trained_on(self, source: Table) -> Self:
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
        # Blanks around a label, or brackets of a list with one label, are slips, unless the model
        # was trained on such labels.
        known = set(self.labels)
        gold = self.gold(table)
        single = single_labels([label.strip() for label in gold])
        labels = [
            label if label in known else bare for label, bare in zip(gold, single, strict=True)
        ]
        table = dataclasses.replace(table, columns={**table.columns, self.label_column: labels})
        if self.weight_column in table.columns:
            table = rejecting_bad_weights(table, self.weight_column)
        return self.rejecting_unknown(table, console)

    def corrected(self, table: Table, config: Any, console: Console) -> Table:
        if config.corrections is None:
            return table
        return corrected_table(table, config.corrections, self.label_column, console)

    def gold(self, table: Table) -> list[str]:
        return table.columns[self.label_column]

    def label_sets(self, table: Table) -> list[tuple[str]]:
        return [(label,) for label in self.gold(table)]

    def targets(self, table: Table) -> dict[str, np.ndarray]:
        return {"label": self.label_numbers(self.gold(table))}

    def training_columns(self) -> tuple[str, ...]:
        return () if self.weight_column is None else (self.weight_column,)

    def row_weights(self, table: Table) -> np.ndarray:
        if self.weight_column is None:
            return super().row_weights(table)
        return np.array(table.columns[self.weight_column], np.float32)

    def chance_loss(self, targets: Mapping[str, np.ndarray], weights: np.ndarray) -> float:
        return loss_without_texts(
            targets["label"],
            weights,
            classes=len(self.labels),
            class_weights=self.label_weights,
            smoothing=self.label_smoothing,
        )

    def weights(self, batch: Batch) -> dict[str, tf.Tensor]:
        weights = batch[ROW_WEIGHTS] * weights_of_labels(batch["label"], self.label_weights)
        return {"loss": tf.reduce_sum(weights)}

    def loss_parts(self, outputs: dict[str, tf.Tensor], batch: Batch) -> LossParts:
        logits = outputs["logits"]
        labels = batch["label"]
        weights = batch[ROW_WEIGHTS]
        losses = smoothed_cross_entropy(
            logits, labels, class_weights=self.label_weights, smoothing=self.label_smoothing
        )
        predicted = tf.argmax(logits, axis=-1, output_type=tf.int32)
        # Accuracy is of rows: row weights are for the loss, and 0 is padding.
        counted = tf.cast(weights > 0, tf.float32)
        return LossParts(
            losses={"loss": tf.reduce_sum(losses * weights)},
            metrics={"accuracy": weighted_hits(predicted == labels, counted)},
        )

    def soft_losses(
        self, logits: tf.Tensor, teacher_logits: tf.Tensor, *, temperature: float
    ) -> tf.Tensor:
        return softened_divergence(logits, teacher_logits, temperature)

    def fitted(self, data: TaskData, reduced: dict[str, np.ndarray]) -> Self:
        if self.calibration == UNCALIBRATED:
            return self
        temperature = fit_temperature(reduced["logits"], data.targets["label"])
        return dataclasses.replace(self, temperature=temperature)

    def folded_into(self, model: Any) -> Self:
        """Divide kernel and bias of the classifier by the temperature."""
        if self.calibration == UNCALIBRATED or self.is_temperature_in_head:
            return self
        for variable in (model.classifier.kernel, model.classifier.bias):
            variable.assign(variable / self.temperature)
        return dataclasses.replace(self, is_temperature_in_head=True)

    def served_predictions(self, logits: tf.Tensor) -> dict[str, tf.Tensor]:
        divisor = 1.0 if self.is_temperature_in_head else self.temperature
        probabilities = tf.nn.softmax(logits / divisor, axis=-1)
        return {
            "predicted_label": tf.gather(self.labels, tf.argmax(probabilities, axis=-1)),
            "predicted_score": tf.reduce_max(probabilities, axis=-1),
            "probabilities": probabilities,
        }

    def metrics(self, table: Table, predicted: dict[str, Any]) -> dict[str, float]:
        gold = self.gold(table)
        chosen = predicted["predicted_label"]
        return classification_metrics(self.label_numbers(gold), self.label_numbers(chosen))

    def baseline(self, train: Table, evaluation: Table) -> Baseline:
        counts = np.bincount(self.label_numbers(self.gold(train)))
        gold = self.label_numbers(self.gold(evaluation))
        frequent = int(counts.argmax())
        return Baseline(
            classification_metrics(gold, np.full_like(gold, frequent)),
            f"always predicting {self.labels[frequent]!r}",
        )

    def standard_errors(self, table: Table, predicted: dict[str, Any]) -> dict[str, float]:
        gold = self.label_numbers(self.gold(table))
        chosen = self.label_numbers(predicted["predicted_label"])
        errors = jackknife_errors(classification_metrics, gold, chosen)
        # The accuracy is a mean over rows, so its error is known exactly.
        return {**errors, "accuracy": error_of_mean(gold == chosen)}

    def report(self, table: Table, predicted: dict[str, Any]) -> TaskReport:
        gold = self.label_numbers(self.gold(table))
        labels = LabelReport(gold, self.label_numbers(predicted["predicted_label"]), self.labels)
        calibration = CalibrationReport(predicted["probabilities"], gold, self.temperature)
        lines = list(labels.lines())
        if self.calibration != UNCALIBRATED:
            lines.append(calibration.line())
        return TaskReport(
            details={**labels.details(), "calibration": calibration.details()},
            lines=tuple(lines),
            warnings=(*labels.warnings(), *calibration.warnings()),
        )

    def gold_numbers(self, source: Table) -> np.ndarray:
        return self.label_numbers(self.gold(source))

    def evaluated(self, source: Table, predicted: dict[str, Any]) -> EvaluatedRows:
        return EvaluatedRows.of(
            self.labels,
            self.label_numbers(self.gold(source)),
            self.label_numbers(predicted["predicted_label"]),
            predicted["probabilities"],
        )

    def gold_outputs(self, data: TaskData) -> Callable[[np.ndarray], dict[str, np.ndarray]]:
        # Logits so far apart that their softmax is certain.
        right = CERTAIN * np.eye(len(self.labels), dtype=np.float32)
        return lambda chosen: {"logits": right[data.targets["label"][chosen]]}

    def is_right(self, row: Mapping[str, Any]) -> bool:
        return bool(row["predicted_label"] == row["label"])

    def card_facts(self) -> Iterator[str]:
        yield labels_on_card(self.labels)
        if self.is_temperature_in_head:
            yield (
                "probabilities are calibrated in every library: the weights of the head are "
                f"divided by {self.temperature:g}, a temperature fitted on evaluation rows"
            )
        elif self.calibration != UNCALIBRATED:
            yield (
                f"probabilities are calibrated: logits are divided by {self.temperature:g} before "
                "the softmax, in this tool's exported graph; other libraries do not divide them"
            )

    def label_numbers(self, labels: Sequence[str]) -> np.ndarray:
        number = self.numbers()
        return np.array([number[label] for label in labels], np.int32)


def smoothed_cross_entropy(
    logits: tf.Tensor, labels: tf.Tensor, *, class_weights: Sequence[float], smoothing: float
) -> tf.Tensor:
    """Compute the loss of each row, float32 [rows].

    As PyTorch's `CrossEntropyLoss`: smoothing spreads that fraction of the target evenly over all
    classes (Szegedy et al. 2016), and each part has the weight of its class. A mean over rows
    divides by the sum of `weights_of_labels`.

    Args:
        logits: float32 [rows, classes].
        labels: int32 [rows].
        class_weights: weight of each class; () for 1 each.
        smoothing: fraction of the target to spread.
    """
    losses = cross_entropy(logits, labels) * weights_of_labels(labels, class_weights)
    if not smoothing:
        return losses
    negative_log_probabilities = -tf.nn.log_softmax(logits, axis=-1)
    if class_weights:
        negative_log_probabilities *= tf.constant(class_weights, tf.float32)
    uniform = tf.reduce_mean(negative_log_probabilities, axis=-1)
    return (1.0 - smoothing) * losses + smoothing * uniform


def weights_of_labels(labels: tf.Tensor, class_weights: Sequence[float]) -> tf.Tensor:
    """Return the weight of each row's class: int32 [rows] to float32 [rows]."""
    if not class_weights:
        return tf.ones_like(labels, tf.float32)
    return tf.gather(tf.constant(class_weights, tf.float32), labels)


def loss_without_texts(
    labels: np.ndarray,
    row_weights: np.ndarray,
    *,
    classes: int,
    class_weights: Sequence[float],
    smoothing: float,
) -> float:
    """Compute the mean loss of the best constant prediction: the entropy of the targets.

    Args:
        labels: int [rows].
        row_weights: float [rows].
        classes: number of labels.
        class_weights: weight of each class; () for 1 each.
        smoothing: fraction of each target that is spread over all classes.
    """
    weights = np.array(class_weights or np.ones(classes), np.float64)
    rows = np.bincount(labels, weights=row_weights, minlength=classes)
    targets = (1.0 - smoothing) * rows * weights + smoothing * rows.sum() * weights / classes
    # 0 times the logarithm of 0 is 0 in an entropy, but NaN in NumPy.
    used = targets[targets > 0]
    return float(-(used * np.log(used / used.sum())).sum() / (rows * weights).sum())


def rejecting_bad_weights(table: Table, column: str) -> Table:
    """Reject rows whose weight is negative or not finite.

    Raises:
        RowsRejected: no row is left.
    """
    reason = "weight is not a number from 0"
    advice = f"is {column!r} the column of weights?"
    return reject_cells(table, column, _is_weight, reason=reason, shown=repr, advice=advice)


def _is_weight(text: str) -> bool:
    try:
        return 0 <= float(text) < math.inf
    except ValueError:
        return False


def class_weights(
    option: str, labels: Sequence[str], rows: Sequence[str], row_weights: Sequence[float]
) -> tuple[float, ...]:
    """Return the weight of each label; () if all weigh 1.

    `balanced` gives all labels the same sum of weights over the rows: n / (k * count), with row
    weights for counts (scikit-learn, `compute_class_weight`); labels without rows weigh 1.

    Args:
        option: the option `--class-weights`.
        labels: labels of the model, in order.
        rows: label of each training row.
        row_weights: weight of each training row.

    Raises:
        InputError: `balanced`, but the rows of a label weigh 0.
        UsageError: the option names a label that no row has.
    """
    if option == NONE:
        return ()
    if option == BALANCED:
        return _balanced(labels, rows, row_weights)
    named_weights = parse_class_weights(option)
    unknown = [label for label in named_weights if label not in labels]
    if unknown:
        raise UsageError(
            f"--class-weights: no training row has the label {unknown[0]!r}; the labels are "
            f"{shown_labels(labels)}"
        )
    return tuple(named_weights.get(label, 1.0) for label in labels)


def _balanced(
    labels: Sequence[str], rows: Sequence[str], row_weights: Sequence[float]
) -> tuple[float, ...]:
    sums: dict[str, float] = collections.defaultdict(float)
    for label, weight in zip(rows, row_weights, strict=True):
        sums[label] += weight
    for label in sums:
        if not sums[label]:
            raise InputError(
                f"--class-weights balanced: all rows with the label {label!r} have a weight of 0; "
                "leave them out, or give weights by label"
            )
    # Only labels with rows count as classes, as in scikit-learn.
    total = sum(sums.values())
    return tuple(total / (len(sums) * sums[label]) if label in sums else 1.0 for label in labels)
