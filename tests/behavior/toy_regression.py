"""A task as anybody would add one, in a single file: a number for a text."""

import dataclasses
from typing import Annotated, ClassVar

import numpy as np
import tensorflow as tf

from bert_tf.config.section import option
from bert_tf.config.values import Bounds
from bert_tf.tasks.base.declaration import PredictionField, TableTaskConfig, TaskDeclaration
from bert_tf.tasks.base.table_task import TableTask
from bert_tf.tasks.base.task_data import ROW_WEIGHTS
from bert_tf.training.protocols import LossParts


class RegressionConfig(TableTaskConfig):
    """Fine-tunes a model that gives a number."""

    metrics: ClassVar[tuple[str, ...]] = ("r2",)
    default_sequence_length: ClassVar[int] = 32

    target_scale: Annotated[float, Bounds(above=0.0)] = option("what targets are divided by", 1.0)


REGRESSION = TaskDeclaration(
    name="toy-regression",
    summary="a number for a text",
    options=RegressionConfig,
    example="bert-pipeline finetune toy-regression --train t.csv --init run --output numbers",
    inputs=("body", "reply"),
    predictions=(PredictionField("predicted_value", "value"),),
    implementation=f"{__name__}:RegressionTask",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RegressionTask(TableTask):
    declaration = REGRESSION
    title = "Text regressor"
    num_logits = 1

    target_scale: float

    def gold(self, table):
        return np.array(super().gold(table), float)

    def card_facts(self):
        yield f"numbers from the column `{self.label_column}`, divided by {self.target_scale:g}"

    def targets(self, table):
        return {"target": (self.gold(table) / self.target_scale).astype(np.float32)}

    def loss_parts(self, outputs, batch):
        errors = tf.square(outputs["logits"][:, 0] - batch["target"])
        return LossParts(losses={"loss": tf.reduce_sum(errors * batch[ROW_WEIGHTS])})

    def served_predictions(self, logits):
        return {"predicted_value": logits[:, 0] * self.target_scale}

    def predictions(self, logits):
        return {"predicted_value": logits[:, 0] * np.float32(self.target_scale)}

    def metrics(self, table, predicted):
        errors = self.gold(table) - np.asarray(predicted["predicted_value"])
        return {"r2": float(1 - np.square(errors).mean() / self.gold(table).var())}
