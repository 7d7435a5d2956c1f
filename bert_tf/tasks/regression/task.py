"""Regression of a number on a text or a pair of texts."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Self

import numpy as np
import tensorflow as tf

from bert_tf.base.console import Console
from bert_tf.config.bert import BertConfig
from bert_tf.data.tables.file_rows import Table
from bert_tf.models.heads import BertRegressor, ProblemType
from bert_tf.tasks.base.declaration import TaskDeclaration
from bert_tf.tasks.base.host_task import learned
from bert_tf.tasks.base.labels import reject_other_labels
from bert_tf.tasks.base.standard_errors import jackknife_errors
from bert_tf.tasks.base.table_task import Student
from bert_tf.tasks.base.task import Baseline
from bert_tf.tasks.base.task_data import ROW_WEIGHTS, TaskData
from bert_tf.tasks.regression.metrics import (
    mean_and_deviation,
    missing_number,
    regression_metrics,
    warn_of_one_number,
)
from bert_tf.tasks.regression.options import NONE, REGRESSION, STANDARD
from bert_tf.training.protocols import Batch, LossParts
from bert_tf.weights.import_weights import classifier_problem
from bert_tf.weights.model_directory import ModelDirectory

# A perfect model's numbers, as predictions.jsonl rounds them, are this near to the labels, in
# standard deviations.
_ROUNDING = 1e-2
_LIKE_THOUSANDS = re.compile(r"-?[1-9]\d{0,2}(\.\d{3})?")


@dataclasses.dataclass(frozen=True, kw_only=True)
class RegressionTask(Student):
    """A number per row, by mean squared error (STS-B of GLUE, Wang et al. 2019).

    The loss subtracts `target_mean` and divides by `target_scale`.
    """

    declaration: ClassVar[TaskDeclaration] = REGRESSION
    title: ClassVar[str] = "Text regressor"
    metric_types: ClassVar[Mapping[str, str]] = {
        "pearson": "pearsonr",
        "spearman": "spearmanr",
        "r2": "r_squared",
    }
    ceiling_metrics: ClassVar[tuple[str, ...]] = ("pearson", "spearman")

    target_scaling: str
    target_mean: float = learned(0.0)
    target_scale: float = learned(0.0)

    @classmethod
    def from_weights(cls, directory: ModelDirectory) -> Self | None:
        """Make the task of a classifier with one logit, unless its config names another problem."""
        if classifier_problem(directory) is not ProblemType.REGRESSION:
            return None
        return cls.of_weights(directory, target_scaling=NONE, target_mean=0.0, target_scale=1.0)

    @property
    def num_logits(self) -> int:
        return 1

    def usable(self, table: Table, console: Console) -> Table:
        table = reject_other_labels(table, self.label_column)
        if self.target_scale:  # not known yet for training rows, which `learn` would refuse
            warn_of_one_number(self.gold(table), table.source, self.label_column, console)
        return table

    def learn(self, table: Table, console: Console) -> Self:
        cells = table.columns[self.label_column]
        if any("." in cell for cell in cells) and all(map(_LIKE_THOUSANDS.fullmatch, cells)):
            console.warn(
                f"{table.source}: column {self.label_column!r} has numbers with three decimals, "
                f"such as {max(cells, key=len)}; if these are thousands, leave the points out"
            )
        sentinel = missing_number(self.gold(table))
        if sentinel is not None:
            console.warn(
                f"{table.source}: column {self.label_column!r} has {sentinel:g} in several rows, "
                "far from all others; remove such rows if it stands for a missing value"
            )
        return self.trained_on(table)

    def trained_on(self, source: Table) -> Self:
        mean, scale = mean_and_deviation(self.gold(source), source.source, self.label_column)
        if self.target_scaling == NONE:
            mean = 0.0
            scale = 1.0
        return dataclasses.replace(self, target_mean=mean, target_scale=scale)

    def describe(self, sources: Mapping[str, Table]) -> Iterator[str]:
        golds = {name: self.gold(table) for name, table in sources.items()}
        yield f"  {self.label_column:<20.20}" + "".join(f"  {name:>10}" for name in golds)
        for name, measure in (
            ("minimum", np.min),
            ("mean", np.mean),
            ("maximum", np.max),
            ("standard deviation", np.std),
        ):
            cells = (f"{measure(numbers):>10.5g}" for numbers in golds.values())
            yield "  ".join([f"  {name:20}", *cells])

    def gold(self, table: Table) -> np.ndarray:
        return np.array([float(label) for label in table.columns[self.label_column]], np.float64)

    def targets(self, table: Table) -> dict[str, np.ndarray]:
        standardized = (self.gold(table) - self.target_mean) / self.target_scale
        return {"target": standardized.astype(np.float32)}

    def chance_loss(self, targets: Mapping[str, np.ndarray], weights: np.ndarray) -> float:
        target = targets["target"].astype(np.float64)
        mean = np.average(target, weights=weights)
        return float(np.average(np.square(target - mean), weights=weights))

    def build_model(self, config: BertConfig, *, policy: str) -> BertRegressor:
        return BertRegressor(
            config,
            target_mean=self.target_mean,
            target_scale=self.target_scale,
            dtype=policy,
            name=self.declaration.name,
        )

    def loss_parts(self, outputs: dict[str, tf.Tensor], batch: Batch) -> LossParts:
        standardized = (outputs["logits"][:, 0] - self.target_mean) / self.target_scale
        squares = tf.square(standardized - batch["target"])
        return LossParts(losses={"loss": tf.reduce_sum(squares * batch[ROW_WEIGHTS])})

    def order_of_logits(self, teacher: Self, path: str) -> np.ndarray:
        return np.zeros(1, np.int64)

    def soft_losses(
        self, logits: tf.Tensor, teacher_logits: tf.Tensor, *, temperature: float
    ) -> tf.Tensor:
        return tf.square((logits[:, 0] - teacher_logits[:, 0]) / self.target_scale)

    def served_predictions(self, logits: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"predicted_value": logits[:, 0]}

    def metrics(self, table: Table, predicted: dict[str, Any]) -> dict[str, float]:
        return regression_metrics(self.gold(table), np.asarray(predicted["predicted_value"]))

    def gold_outputs(self, data: TaskData) -> Callable[[np.ndarray], dict[str, np.ndarray]]:
        numbers = data.targets["target"] * self.target_scale + self.target_mean
        return lambda chosen: {"logits": numbers[chosen, None].astype(np.float32)}

    def is_right(self, row: Mapping[str, Any]) -> bool:
        return abs(row["predicted_value"] - row["label"]) <= _ROUNDING * self.target_scale

    def baseline(self, train: Table, evaluation: Table) -> Baseline:
        metrics = dict.fromkeys(("pearson", "spearman", "r2"), 0.0)
        return Baseline(metrics, "always predicting the mean")

    def standard_errors(self, table: Table, predicted: dict[str, Any]) -> dict[str, float]:
        values = np.asarray(predicted["predicted_value"])
        return jackknife_errors(regression_metrics, self.gold(table), values)

    def card_facts(self) -> Iterator[str]:
        if self.target_scaling == STANDARD:
            yield (
                f"numbers of the training rows: mean {self.target_mean:.5g}, standard deviation "
                f"{self.target_scale:.5g}; predictions have their scale"
            )
