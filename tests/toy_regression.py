"""A task as anybody would add one, in a single file: a number for a text."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np
import tensorflow as tf

from bert_tf.config.section import option
from bert_tf.config.sections.finetuning import FinetuneConfig, best_metric_option
from bert_tf.config.sections.scoring import check_columns_are_read
from bert_tf.data.rows.encoded_rows import encode_texts
from bert_tf.data.tables.dialect import PLAIN, TableDialect
from bert_tf.data.tables.tables import read_table
from bert_tf.data.text.wordpiece import pack_pairs
from bert_tf.models.classification import BertClassifier
from bert_tf.serving.row_batches import map_row_batches
from bert_tf.serving.single_batch import single_batch
from bert_tf.serving.text_module import TextModule
from bert_tf.tasks.declaration import PredictionField, TaskDeclaration
from bert_tf.tasks.prediction_rows import prediction_rows
from bert_tf.tasks.task import ROW_WEIGHTS, TaskData, TaskResults
from bert_tf.tasks.task_card import TaskCard
from bert_tf.training.plan.protocols import LossParts


@dataclasses.dataclass(frozen=True, kw_only=True)
class RegressionConfig(FinetuneConfig):
    """Fine-tunes a model that gives a number."""

    metrics: ClassVar[tuple[str, ...]] = ("r2",)
    default_sequence_length: ClassVar[int] = 32

    text_column: str = option("column of the text", default="text")
    label_column: str = option("column of the number", default="label")
    target_scale: float = option("what targets are divided by", default=1.0, above=0.0)
    best_metric: str | None = best_metric_option("r2")


REGRESSION = TaskDeclaration(
    name="regression",
    summary="a number for a text",
    options=RegressionConfig,
    example="bert-pipeline finetune regression --train t.csv --init run --output numbers",
    inputs=("text",),
    predictions=(PredictionField("predicted_value", "value"),),
    implementation=f"{__name__}:RegressionTask",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RegressionTask:
    name: ClassVar[str] = REGRESSION.name
    text_column: str
    label_column: str
    target_scale: float
    max_seq_length: int

    @classmethod
    def from_training(cls, config, console):
        task = cls(
            text_column=config.text_column,
            label_column=config.label_column,
            target_scale=config.target_scale,
            max_seq_length=config.sequence_length,
        )
        return task, task.read(config.train, console, dialect=TableDialect.of(config))

    @classmethod
    def from_settings(cls, settings):
        columns = {f"{name}_column": column for name, column in settings["columns"].items()}
        return cls(**columns, **{key: settings[key] for key in ("target_scale", "max_seq_length")})

    @classmethod
    def from_weights(cls, directory):
        return None

    def settings(self):
        return {
            "task": self.name,
            "columns": {"text": self.text_column, "label": self.label_column},
            "target_scale": self.target_scale,
            "max_seq_length": self.max_seq_length,
        }

    def with_columns(self, config):
        check_columns_are_read(config, ("text", "label"))
        return dataclasses.replace(
            self,
            text_column=config.text_column or self.text_column,
            label_column=config.label_column or self.label_column,
        )

    def read(self, path, console, *, dialect=PLAIN):
        columns = {"text_columns": (self.text_column,), "value_columns": (self.label_column,)}
        return read_table(path, dialect=dialect, **columns, max_rows=0, console=console)

    def describe(self, train, evaluation):
        yield f"  numbers from {self._targets(train).min():g} to {self._targets(train).max():g}"

    def texts(self, source):
        return {"text": source.columns[self.text_column]}

    def encode(self, source, tokenizer, *, training):
        texts = self.texts(source)["text"]
        rows = encode_texts(tokenizer, texts, None, max_seq_length=self.max_seq_length)
        targets = {"target": self._targets(source) / np.float32(self.target_scale)}
        return TaskData(
            source=source, rows=rows, targets=targets, weights=np.ones(len(rows), np.float32)
        )

    def _targets(self, source):
        return np.array(source.columns[self.label_column], np.float32)

    def serving_module(self, model, tokenizer):
        return Regressor(self, model, tokenizer)

    def reference_outputs(self, model, tokenizer, texts):
        rows = encode_texts(tokenizer, texts["text"], None, max_seq_length=self.max_seq_length)
        batch = single_batch(rows, tokenizer.pad_id)
        outputs = self.outputs(model, batch, training=False, dropout_key=None)
        return {"predicted_value": outputs["value"].numpy() * self.target_scale}

    def card(self):
        return TaskCard(
            title="Text regressor",
            facts=(f"numbers from the column `{self.text_column}`",),
            signature_call='text=tf.constant(["some text"])',
            signature_output="predicted_value",
            transformers_class="AutoModelForSequenceClassification",
            google_script="run_classifier.py",
        )

    def build_model(self, config, *, policy):
        return BertClassifier(config, num_labels=1, dtype=policy, name="regression")

    def outputs(self, model, batch, *, training, dropout_key):
        return {"value": model(batch, training=training, dropout_key=dropout_key)[:, 0]}

    def weights(self, batch):
        return {"loss": tf.reduce_sum(batch[ROW_WEIGHTS])}

    def loss_parts(self, outputs, batch):
        errors = tf.square(outputs["value"] - batch["target"])
        return LossParts(losses={"loss": tf.reduce_sum(errors * batch[ROW_WEIGHTS])})

    def reduce(self, data, chosen, outputs):
        return outputs

    def predict(self, data, reduced):
        return {"predicted_value": reduced["value"] * np.float32(self.target_scale)}

    def measure(self, source, predicted):
        gold = self._targets(source)
        error = np.square(gold - np.asarray(predicted["predicted_value"])).mean()
        cells = prediction_rows(REGRESSION.predictions, predicted)
        return TaskResults(
            metrics={"r2": float(1 - error / gold.var())},
            predictions=[{"line": n, **each} for n, each in zip(source.lines, cells, strict=True)],
        )


class Regressor(TextModule):
    input_names: ClassVar[tuple[str, ...]] = REGRESSION.inputs

    def __init__(self, task: RegressionTask, model: Any, tokenizer: Any):
        super().__init__(model, tokenizer)
        self._task = task

    def predict(self, texts, batch_tokens):
        word_ids, type_ids = pack_pairs(
            self.tokenizer.tokenize(texts["text"]),
            None,
            max_seq_length=self._task.max_seq_length,
            tokenizer=self.tokenizer,
        )

        def score(batch, _):
            outputs = self._task.outputs(self.model, batch, training=False, dropout_key=None)
            return (outputs["value"] * self._task.target_scale,)

        (values,) = map_row_batches(
            score,
            word_ids,
            type_ids,
            batch_tokens=batch_tokens,
            pad_id=self.tokenizer.pad_id,
            outputs=(tf.TensorSpec([], tf.float32),),
        )
        return {"predicted_value": values}
