"""Any number of labels for a text or a pair of texts."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import tensorflow as tf

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError, UsageError
from bert_tf.base.wording import quantity
from bert_tf.config.bert import BertConfig
from bert_tf.config.sections import EvaluateConfig
from bert_tf.data.tables.file_rows import Table
from bert_tf.models.heads import BertClassifier, ProblemType
from bert_tf.serving.signatures import PROBABILITY_DIGITS
from bert_tf.tasks.base.ceiling import CERTAIN
from bert_tf.tasks.base.declaration import TableTaskConfig, TaskDeclaration
from bert_tf.tasks.base.host_task import kept_if_set
from bert_tf.tasks.base.label_task import LabelTask, softened_binary_divergence
from bert_tf.tasks.base.labels import (
    LabelMeasures,
    labels_on_card,
    sorted_labels,
    suspicious_labels,
)
from bert_tf.tasks.base.prediction_rows import (
    TaskReport,
    TaskResults,
    exact_values,
    json_values,
    labeled_rows,
)
from bert_tf.tasks.base.standard_errors import error_of_mean, jackknife_errors
from bert_tf.tasks.base.task import Baseline
from bert_tf.tasks.base.task_data import ROW_WEIGHTS, TaskData
from bert_tf.tasks.multilabel.label_cells import (
    LabelForm,
    is_one_column_of_many,
    likely_separator,
    listed_labels,
)
from bert_tf.tasks.multilabel.metrics import (
    DEFAULT_THRESHOLD,
    global_threshold,
    label_set_metrics,
    ranking_metrics,
    sigmoid,
    thresholds_by_label,
)
from bert_tf.tasks.multilabel.options import FIXED, GLOBAL, MULTILABEL, SEPARATOR, MultiLabelConfig
from bert_tf.training.protocols import Batch, LossParts
from bert_tf.weights.import_weights import classifier_labels, classifier_problem
from bert_tf.weights.model_directory import ModelDirectory

# Of a label as a prior. Its logit is -9.2, which a few steps can still raise.
_LEAST_FREQUENCY = 1e-4
# Most labels per row of predictions.jsonl, which would be far larger than its texts with more.
_MOST_LABELS_WITH_PROBABILITIES = 100


def _in_shell(separator: str) -> str:
    """Write a separator as an argument in a shell: '|', and $'\\n' for a line end."""
    return f"'{separator}'" if separator.isprintable() else f"${separator!r}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class MultiLabelTask(LabelTask):
    """A probability for each label, and the labels above a threshold.

    Attributes:
        thresholds: the way to choose `decision_thresholds`: `global`, `per-label` or `0.5`.
        label_frequencies: fraction of the training rows with each label; () if unknown.
        decision_thresholds: one for all labels, or one each; () for 0.5.
        label_columns: columns of zeros and ones, named like labels; () if one column has all.
        label_names: names of labels that files have as numbers.
    """

    declaration: ClassVar[TaskDeclaration] = MULTILABEL
    title: ClassVar[str] = "Multi-label text classifier"
    metric_types: ClassVar[Mapping[str, str]] = {
        "micro_f1": "f1",
        "macro_f1": "f1",
        "samples_f1": "f1",
        "micro_precision": "precision",
        "macro_precision": "precision",
        "micro_recall": "recall",
        "macro_recall": "recall",
        "subset_accuracy": "accuracy",
    }
    has_label_lists: ClassVar[bool] = True
    ceiling_metrics: ClassVar[tuple[str, ...]] = ("micro_f1",)

    label_separator: str
    thresholds: str
    label_frequencies: tuple[float, ...] = ()
    decision_thresholds: tuple[float, ...] = ()
    label_columns: tuple[str, ...] = kept_if_set(())
    label_names: tuple[str, ...] = kept_if_set(())

    @classmethod
    def options_of(cls, config: TableTaskConfig) -> dict[str, Any]:
        assert isinstance(config, MultiLabelConfig)
        options = {**super().options_of(config), "label_names": config.names}
        return {**options, **_label_columns(config.label_column)}

    @classmethod
    def from_weights(cls, directory: ModelDirectory) -> Self | None:
        if classifier_problem(directory) is not ProblemType.MULTI_LABEL_CLASSIFICATION:
            return None
        return cls.of_weights(
            directory,
            labels=tuple(classifier_labels(directory)),
            label_separator=SEPARATOR,
            thresholds=FIXED,
        )

    def columns_of_labels(self) -> tuple[str, ...]:
        return self.label_columns or (self.label_column,)

    def with_columns(self, config: EvaluateConfig) -> Self:
        task = super().with_columns(config)
        if config.label_column is None and task.label_column == self.label_column:
            return task
        return dataclasses.replace(task, **_label_columns(task.label_column))

    def usable(self, table: Table, console: Console) -> Table:
        table = LabelForm(
            column=self.label_column,
            columns=self.label_columns,
            separator=self.label_separator,
            names=self.label_names,
        ).listed(table)
        return self.rejecting_unknown(table, console)

    def learn(self, table: Table, console: Console) -> Self:
        sets = self.label_sets(table)
        labels = sorted_labels({label for labels_of_row in sets for label in labels_of_row})
        if len(labels) < 2:
            held = f"no label but {labels[0]!r}" if labels else "no label"
            raise InputError(
                f"{table.source}: column {self.label_column!r} holds {held}; at least two labels "
                f"are needed; in a text {self.label_separator!r} separates them "
                "(--label-separator)"
            )
        if is_one_column_of_many(sets):
            raise UsageError(
                f"{table.source}: column {self.label_column!r} holds 0 or 1 in every row; name the "
                "column of each label, --label-column A --label-column B, or fine-tune for a "
                "single label per row"
            )
        self.check_labels_repeat(table)
        self._warn_of_texts(table.source, sets, console)
        for label in (*self.label_columns, *self.label_names):
            if label not in labels:
                console.warn(f"{table.source}: no row has the label {label!r}; it is not learned")
        console.warn(*suspicious_labels(self.label_rows(table)))
        return dataclasses.replace(self, labels=labels).trained_on(table)

    def _warn_of_texts(self, source: str, sets: Sequence[Sequence[str]], console: Console) -> None:
        """Warn of labels that are probably several, with another separator."""
        likely = likely_separator(sets)
        labeled = sum(map(bool, sets))
        if likely is not None:
            separator, rows, example = likely
            console.warn(
                f"{source}: {rows:,} of {quantity(labeled, 'row')} with labels have one such as "
                f"{example!r}; if {separator!r} separates labels, give --label-separator "
                f"{_in_shell(separator)} (now {self.label_separator!r})"
            )
        elif all(len(labels) <= 1 for labels in sets):
            or_none = "" if labeled == len(sets) else ", or none"
            console.warn(
                f"{source}: every row has exactly one label{or_none}; if cells hold several, name "
                f"their separator by --label-separator (now {self.label_separator!r})"
            )

    def trained_on(self, source: Table) -> Self:
        frequencies = self.membership(self.label_sets(source)).mean(axis=0)
        return dataclasses.replace(self, label_frequencies=tuple(frequencies.tolist()))

    def gold(self, table: Table) -> list[list[str]]:
        number = self.numbers()
        return [sorted(labels, key=number.__getitem__) for labels in self.label_sets(table)]

    def targets(self, table: Table) -> dict[str, np.ndarray]:
        return {"labels": self.membership(self.label_sets(table))}

    def chance_loss(self, targets: Mapping[str, np.ndarray], weights: np.ndarray) -> float:
        """Return the mean over labels of the entropy of having it or not."""
        frequencies = np.average(targets["labels"], axis=0, weights=weights)
        inner = frequencies[(frequencies > 0) & (frequencies < 1)]
        entropies = -inner * np.log(inner) - (1 - inner) * np.log1p(-inner)
        return float(entropies.sum() / len(frequencies))

    def build_model(self, config: BertConfig, *, policy: str) -> BertClassifier:
        """Make the encoder with a linear layer on its pooled output.

        A new layer predicts the frequency of each label (the prior of Lin et al. 2017, section
        4.1); otherwise the first steps lower all logits through the encoder, whose output becomes
        the same for all texts if labels are many and rare.
        """
        frequencies = np.clip(self.label_frequencies, _LEAST_FREQUENCY, 1 - _LEAST_FREQUENCY)
        return BertClassifier(
            config,
            num_labels=self.num_logits,
            problem_type=ProblemType.MULTI_LABEL_CLASSIFICATION,
            initial_bias=np.log(frequencies / (1 - frequencies)).tolist(),
            dtype=policy,
            name=self.declaration.name,
        )

    def loss_parts(self, outputs: dict[str, tf.Tensor], batch: Batch) -> LossParts:
        losses = tf.nn.sigmoid_cross_entropy_with_logits(
            labels=tf.cast(batch["labels"], tf.float32), logits=outputs["logits"]
        )
        by_row = tf.reduce_mean(losses, axis=1)
        return LossParts(losses={"loss": tf.reduce_sum(by_row * batch[ROW_WEIGHTS])})

    def soft_losses(
        self, logits: tf.Tensor, teacher_logits: tf.Tensor, *, temperature: float
    ) -> tf.Tensor:
        return softened_binary_divergence(logits, teacher_logits, temperature)

    def served_predictions(self, logits: tf.Tensor) -> dict[str, tf.Tensor]:
        probabilities = tf.sigmoid(logits)
        is_there = probabilities >= tf.constant(self._thresholds(), tf.float32)
        names = tf.constant([json.dumps(label, ensure_ascii=False) for label in self.labels])
        scores = tf.strings.as_string(probabilities, precision=PROBABILITY_DIGITS)
        return {
            "predicted_labels": _json_arrays(tf.broadcast_to(names, tf.shape(logits)), is_there),
            "predicted_scores": _json_arrays(scores, is_there),
            "probabilities": probabilities,
        }

    def fitted(self, data: TaskData, reduced: dict[str, np.ndarray]) -> Self:
        if self.thresholds == FIXED:
            return self
        probabilities = sigmoid(reduced["logits"])
        gold = data.targets["labels"]
        if self.thresholds == GLOBAL:
            chosen: tuple[float, ...] = (global_threshold(probabilities, gold),)
        else:
            chosen = thresholds_by_label(probabilities, gold)
        return dataclasses.replace(self, decision_thresholds=chosen)

    def metrics(self, table: Table, predicted: dict[str, Any]) -> dict[str, float]:
        gold = self.membership(self.label_sets(table))
        return {
            **self._set_metrics(table, predicted),
            **ranking_metrics(gold, np.asarray(predicted["probabilities"])),
        }

    def row_probabilities(self, predicted: Mapping[str, Any]) -> list[Any] | None:
        if len(self.labels) > _MOST_LABELS_WITH_PROBABILITIES:
            return None
        rows = exact_values(np.asarray(predicted["probabilities"]))
        return [dict(zip(self.labels, row, strict=True)) for row in rows]

    def measure_decisions(self, source: Table, predicted: dict[str, Any]) -> TaskResults:
        """Leave out the metrics of rankings, which take seconds for thousands of labels."""
        return TaskResults(
            metrics=self._set_metrics(source, predicted),
            predictions=labeled_rows(
                self.declaration.predictions, source, self.gold(source), predicted
            ),
        )

    def _set_metrics(self, table: Table, predicted: dict[str, Any]) -> dict[str, float]:
        gold, chosen = self._gold_and_predicted(table, predicted)
        return label_set_metrics(gold, chosen, self._measures(gold, chosen))

    def baseline(self, train: Table, evaluation: Table) -> Baseline:
        frequencies = self.membership(self.label_sets(train)).mean(axis=0)
        # Labels of at least half of the rows; if there are none, the most frequent ones.
        is_frequent = frequencies >= min(DEFAULT_THRESHOLD, frequencies.max())
        gold = self.membership(self.label_sets(evaluation)).astype(bool)
        chosen = np.broadcast_to(is_frequent, gold.shape)
        return Baseline(
            label_set_metrics(gold, chosen, self._measures(gold, chosen)),
            "always predicting the most frequent labels",
        )

    def standard_errors(self, table: Table, predicted: dict[str, Any]) -> dict[str, float]:
        """Return the errors of metrics of label sets; rankings are too slow to compute often."""
        gold, chosen = self._gold_and_predicted(table, predicted)

        def measure(gold: np.ndarray, chosen: np.ndarray) -> dict[str, float]:
            return label_set_metrics(gold, chosen, self._measures(gold, chosen))

        errors = jackknife_errors(measure, gold, chosen)
        return {**errors, "subset_accuracy": error_of_mean((gold == chosen).all(axis=1))}

    def report(self, table: Table, predicted: dict[str, Any]) -> TaskReport:
        return self._measures(*self._gold_and_predicted(table, predicted)).report()

    def gold_outputs(self, data: TaskData) -> Callable[[np.ndarray], dict[str, np.ndarray]]:
        has = data.targets["labels"]
        return lambda chosen: {"logits": np.where(has[chosen], CERTAIN, -CERTAIN)}

    def is_right(self, row: Mapping[str, Any]) -> bool:
        return bool(row["predicted_labels"] == row["label"])

    def card_facts(self) -> Iterator[str]:
        yield labels_on_card(self.labels)
        thresholds = self._thresholds()
        values = f"{min(thresholds):.4g}"
        if max(thresholds) > min(thresholds):
            values += f" to {max(thresholds):.4g}, one for each label (`decision_thresholds` in "
            values += "`task.json`)"
        yield f"a row has the labels whose probability, by a sigmoid, is at least {values}"

    def _thresholds(self) -> tuple[float, ...]:
        return self.decision_thresholds or (DEFAULT_THRESHOLD,)

    def _gold_and_predicted(
        self, table: Table, predicted: dict[str, Any]
    ) -> tuple[np.ndarray, np.ndarray]:
        chosen = json_values(predicted["predicted_labels"])
        return self.membership(self.label_sets(table)), self.membership(chosen)

    def _measures(self, gold: np.ndarray, predicted: np.ndarray) -> LabelMeasures:
        return LabelMeasures(
            (gold & predicted).sum(axis=0),
            predicted.sum(axis=0),
            gold.sum(axis=0),
            rows=len(gold),
            labels=self.labels,
        )

    def label_sets(self, table: Table) -> list[tuple[str, ...]]:
        return listed_labels(table.columns[self.label_column])

    def membership(self, sets: Sequence[Sequence[str]]) -> np.ndarray:
        """Return which labels each row has, bool [rows, labels].

        Args:
            sets: labels of each row.
        """
        number = self.numbers()
        has = np.zeros((len(sets), len(self.labels)), bool)
        rows = np.repeat(np.arange(len(sets)), [len(labels) for labels in sets])
        columns = [number[label] for labels in sets for label in labels]
        has[rows, columns] = True
        return has


def _label_columns(label_column: str | tuple[str, ...]) -> dict[str, Any]:
    """Return fields of a task for the option `label_column`, one column or one for each label."""
    columns = (label_column,) if isinstance(label_column, str) else label_column
    return {"label_column": columns[0], "label_columns": columns if len(columns) > 1 else ()}


def _json_arrays(values: tf.Tensor, is_there: tf.Tensor) -> tf.Tensor:
    """Join the texts that are there to a JSON array per row, string [rows].

    Args:
        values: JSON texts, string [rows, labels].
        is_there: bool [rows, labels].
    """
    kept = tf.ragged.boolean_mask(values, is_there)
    return tf.strings.join(["[", tf.strings.reduce_join(kept, axis=1, separator=", "), "]"])
