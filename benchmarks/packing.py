"""Times pretraining updates on given records, padded and packed, in turns.

    python benchmarks/packing.py DATA [--size tiny] [--batch-size 32] [--rounds 7] [--updates 5]

DATA is the output of `bert-pipeline preprocess`. Both sides run `TrainingStep` as `train` does, on
batches of the same data with as many sequences on average; reading records is part of both. Prints
real pieces (padding is not counted) a second of both, and the ratio of the medians.
"""

from __future__ import annotations

import argparse
import json
import time
from statistics import median
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.config.bert import sized_config
from bert_tf.config.console import Console
from bert_tf.config.processor import describe_processor
from bert_tf.config.section import build_section
from bert_tf.config.sections import TrainConfig
from bert_tf.data.dataset import PretrainingInputs
from bert_tf.data.pretraining_data import PretrainingData
from bert_tf.models.pretraining import BertPretrainingModel
from bert_tf.training.distribution import distributed_iterator
from bert_tf.training.dynamic_masking import dynamic_masking
from bert_tf.training.optimizer import make_optimizer
from bert_tf.training.precision import choose_numerics
from bert_tf.training.pretraining_loss import PretrainingLoss
from bert_tf.training.step import TrainingStep
from pipeline.artifacts import read_manifest


class Side:
    """A model of its own that trains on padded or packed rows."""

    def __init__(self, config: TrainConfig, data: PretrainingData, *, packing: str):
        strategy = tf.distribute.get_strategy()
        numerics = choose_numerics(
            config.precision, config.xla, static_shapes=True, console=Console()
        )
        self.inputs = PretrainingInputs(
            data.paths("train"),
            data,
            batch_size=config.batch_size,
            seed=config.seed,
            packing=packing,
            masking=dynamic_masking(config, data),
        )
        bert_config = sized_config(str(config.size), data.vocab_size)
        model = BertPretrainingModel(bert_config, dtype=numerics.policy)
        model.build_weights()
        optimizer = make_optimizer(config, num_hidden_layers=bert_config.num_hidden_layers)
        optimizer.build(model.trainable_variables)
        self._step = TrainingStep(
            model=model,
            loss=PretrainingLoss(data.pair_task),
            optimizer=optimizer,
            strategy=strategy,
            use_xla=numerics.use_xla,
            scale_loss=numerics.scale_loss,
        )
        self._batches = distributed_iterator(strategy, lambda: self.inputs.batches(0))
        self._done = 0
        self.speeds: list[float] = []

    def run(self, updates: int) -> dict[str, float]:
        """Makes some updates; returns pieces, sequences and seconds."""
        start = time.perf_counter()
        results = self._step.run(
            self._batches,
            first_step=self._done,
            learning_rates=np.full(updates, 1e-4, np.float32),
        )
        seconds = time.perf_counter() - start
        self._done += updates
        return {
            "tokens": float(results["tokens"].sum()),
            "examples": float(results["examples"].sum()),
            "seconds": seconds,
        }


def main() -> None:
    arguments = parse_arguments()
    data = PretrainingData.from_manifest(arguments.data, read_manifest(arguments.data))
    values: dict[str, Any] = {
        "data": arguments.data,
        "output": "unused",
        "size": arguments.size,
        "batch_size": arguments.batch_size,
        "precision": arguments.precision,
        "xla": arguments.xla,
    }
    config = build_section(TrainConfig, values)
    sides = {
        name: Side(config, data, packing=packing)
        for name, packing in (("padded", "off"), ("packed", "on"))
    }
    for side in sides.values():
        side.run(arguments.updates)  # compiles
    for _ in range(arguments.rounds):
        for side in sides.values():
            made = side.run(arguments.updates)
            side.speeds.append(made["tokens"] / made["seconds"])
    packing = sides["packed"].inputs.packing
    assert packing is not None
    padded, packed = (median(sides[name].speeds) for name in ("padded", "packed"))
    padding = 1 - packing.pieces / (packing.sequences * data.max_seq_length)
    print(describe_processor())
    print(f"padding: {padding:.1%} of the padded rows, {1 - packing.filled_share:.1%} packed")
    print(f"rows an update: {sides['padded'].inputs.rows} and {sides['packed'].inputs.rows}")
    print(f"padded: {padded:,.0f} tokens/s   packed: {packed:,.0f} tokens/s")
    print(json.dumps({"padded": padded, "packed": packed, "ratio": round(packed / padded, 3)}))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", help="output of bert-pipeline preprocess")
    parser.add_argument("--size", default="tiny")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--xla", default="auto")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--updates", type=int, default=5, help="updates of a turn")
    return parser.parse_args()


if __name__ == "__main__":
    main()
