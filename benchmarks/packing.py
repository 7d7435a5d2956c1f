"""Times pretraining steps on given records, padded and packed, in turns.

    python benchmarks/packing.py DATA [--size tiny] [--batch-size 32] [--rounds 7] [--steps 5]

DATA is the output of `bert-pipeline preprocess`. Both sides run `TrainingStep` as `train` does, on
batches of the same data with as many sequences on average; reading records is part of both. Prints
real tokens (padding is not counted) per second of both, and the ratio of the medians.
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from statistics import median
from typing import Any

from record_steps import RecordSteps, open_inputs

from bert_tf.base.processor import describe_processor
from bert_tf.config.section import build_section
from bert_tf.config.sections import TrainConfig
from bert_tf.data.records.dataset_info import PretrainingData
from pipeline.cli.startup import keep_freed_memory
from pipeline.outputs.manifest import read_manifest


def main() -> None:
    arguments = parse_arguments()
    keep_freed_memory()
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
    inputs = {
        "padded": open_inputs(config, data, packing="off"),
        "packed": open_inputs(config, data, packing="on"),
    }
    sides = {
        name: RecordSteps(config, data, partial(opened.batches, 0))
        for name, opened in inputs.items()
    }
    speeds: dict[str, list[float]] = {name: [] for name in sides}
    for side in sides.values():
        side.run(arguments.steps)  # compiles
    for _ in range(arguments.rounds):
        for name, side in sides.items():
            made = side.run(arguments.steps)
            speeds[name].append(made["tokens"] / made["seconds"])
    packing = inputs["packed"].packing
    assert packing is not None
    padded, packed = (median(speeds[name]) for name in ("padded", "packed"))
    padding = 1 - packing.tokens / (packing.sequences * data.max_seq_length)
    print(describe_processor())
    print(f"padding: {padding:.1%} of the padded rows, {1 - packing.packing_efficiency:.1%} packed")
    print(f"rows per step: {inputs['padded'].rows} and {inputs['packed'].rows}")
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
    parser.add_argument("--steps", type=int, default=5, help="steps per turn")
    return parser.parse_args()


if __name__ == "__main__":
    main()
