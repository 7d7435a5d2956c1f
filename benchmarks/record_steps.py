"""Pretraining steps on given records as `train` makes them, for benchmarks that time them."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from bert_tf.base.console import Console
from bert_tf.config.bert import sized_config
from bert_tf.config.sections import TrainConfig
from bert_tf.data.records.dataset_info import PretrainingData
from bert_tf.data.records.pretraining_inputs import PretrainingInputs
from bert_tf.models.heads import BertPretrainingModel
from bert_tf.pretraining.loss import PretrainingLoss
from bert_tf.pretraining.phases import dynamic_masking
from bert_tf.training.arithmetic import Arithmetic, choose_precision
from bert_tf.training.distribution import distributed_iterator
from bert_tf.training.optimizers import make_optimizer
from bert_tf.training.step import TrainingStep


def open_inputs(config: TrainConfig, data: PretrainingData, *, packing: str) -> PretrainingInputs:
    """Return the training batches of one device, padded ("off") or packed ("on")."""
    return PretrainingInputs(
        data.paths("train"),
        data,
        batch_size=config.batch_size,
        seed=config.seed,
        packing=packing,
        masking=dynamic_masking(config, data),
    )


class RecordSteps:
    """A model of its own that trains on batches of records.

    Args:
        config: gives size, batch, precision and compiler.
        data: the records.
        make_dataset: opens the batches.
    """

    def __init__(
        self,
        config: TrainConfig,
        data: PretrainingData,
        make_dataset: Callable[[], tf.data.Dataset],
    ):
        strategy = tf.distribute.get_strategy()
        precision = choose_precision(
            config.precision,
            config.xla,
            strategy=tf.distribute.get_strategy(),
            console=Console(),
        )
        bert_config = sized_config(str(config.size), data.vocab_size)
        model = BertPretrainingModel(bert_config, dtype=precision.policy)
        model.build_weights()
        optimizer = make_optimizer(config, num_hidden_layers=bert_config.num_hidden_layers)
        optimizer.build(model.trainable_variables)
        self._step = TrainingStep(
            model=model,
            loss=PretrainingLoss(data.pair_task),
            optimizer=optimizer,
            strategy=strategy,
            arithmetic=Arithmetic(precision=precision),
        )
        self._batches = distributed_iterator(strategy, make_dataset)
        self._done = 0

    def run(self, steps: int) -> dict[str, float]:
        """Run some steps, and return their real tokens and sequences, and seconds."""
        start = time.perf_counter()
        results = self._step.run(
            self._batches,
            first_step=self._done,
            learning_rates=np.full(steps, 1e-4, np.float32),
        )
        seconds = time.perf_counter() - start
        self._done += steps
        return {
            "tokens": float(results["tokens"].sum()),
            "examples": float(results["examples"].sum()),
            "seconds": seconds,
        }
