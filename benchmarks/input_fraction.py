"""How long pretraining steps wait for their batches, padded and packed.

    python benchmarks/input_fraction.py DATA [DATA ...] [--size tiny] [--batch-size 32]
        [--steps 100] [--rounds 3] [--profiles FOLDER]

Each DATA is an output of `bert-pipeline preprocess`; give one with `masking=token` and one with
`masking=dynamic` to see masks that are read and masks that are drawn. Steps run as in `train`, in
two ways in turns: on the records, under TensorFlow's profiler, and on the first of their batches
again and again, which costs no input. Printed are, for padded and for packed rows,

- wait: the fraction of the steps' time spent waiting for tf.data's iterator, from the
  trace (events of IteratorGetNext, those that overlap counted once);
- slower: how much more time a step takes than on the repeated batch (median against median),
  which includes the time that the input's threads take from the step's processors.

`--profiles` keeps the traces, for TensorBoard's profile plugin.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import tensorflow as tf
from record_steps import RecordSteps, open_inputs
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from bert_tf.base.processor import describe_processor
from bert_tf.config.section import build_section
from bert_tf.config.sections import TrainConfig
from bert_tf.data.records.dataset_info import PretrainingData
from pipeline.cli.startup import keep_freed_memory
from pipeline.outputs.manifest import read_manifest

WINDOW = "benchmark steps"


def profiled(steps: RecordSteps, num_steps: int, folder: Path) -> tuple[float, float]:
    """Seconds of some steps, and the fraction of them that was spent waiting for batches."""
    tf.profiler.experimental.start(str(folder))
    try:
        with tf.profiler.experimental.Trace(WINDOW):
            seconds = steps.run(num_steps)["seconds"]
    finally:
        tf.profiler.experimental.stop()
    trace = max(folder.rglob("*.xplane.pb"))  # folders are called by the time
    return seconds, waiting_fraction(xplane_pb2.XSpace.FromString(trace.read_bytes()), num_steps)


def waiting_fraction(space: xplane_pb2.XSpace, num_steps: int) -> float:
    """Fraction of the window of a trace in which an iterator was asked for its next element."""
    [(begin, end)] = intervals_of(space, WINDOW)
    waits = sorted(intervals_of(space, "IteratorGetNext"))
    if len(waits) < num_steps:
        raise SystemExit(f"the trace has {len(waits)} waits of {num_steps} steps; it is cut off")
    waited, reached = 0.0, begin
    for first, last in waits:
        first, last = max(first, reached), min(last, end)
        waited += max(0.0, last - first)
        reached = max(reached, last)
    return waited / (end - begin)


def intervals_of(space: xplane_pb2.XSpace, name: str) -> list[tuple[float, float]]:
    """Begin and end of the host's events whose name starts with `name`, in picoseconds."""
    found = []
    for plane in space.planes:
        names = {key: value.name for key, value in plane.event_metadata.items()}
        for line in plane.lines:
            start = 1000 * line.timestamp_ns
            found += [
                (start + event.offset_ps, start + event.offset_ps + event.duration_ps)
                for event in line.events
                if names[event.metadata_id].startswith(name)
            ]
    return found


def measure(config: TrainConfig, data: PretrainingData, packing: str, options, folder: Path) -> str:
    """Return the line of one kind of rows."""
    inputs = open_inputs(config, data, packing=packing)
    reading = RecordSteps(config, data, lambda: inputs.batches(0))
    repeating = RecordSteps(config, data, lambda: inputs.batches(0).take(1).cache().repeat())
    for steps in (reading, repeating):
        steps.run(options.steps)  # compiles
    seconds: dict[str, list[float]] = {"reading": [], "repeating": []}
    waits = []
    for number in range(options.rounds):
        taken, wait = profiled(reading, options.steps, folder / str(number))
        seconds["reading"].append(taken)
        waits.append(wait)
        taken, _ = profiled(repeating, options.steps, folder / f"{number}-repeated")
        seconds["repeating"].append(taken)
    ours, theirs = (median(seconds[name]) / options.steps for name in seconds)
    return (
        f"{data.masking:8} {'packed' if packing == 'on' else 'padded':8} {inputs.rows:6} "
        f"{1000 * ours:10.1f} {median(waits):8.2%} {max(waits):8.2%} {ours / theirs - 1:+8.2%}"
    )


def main() -> None:
    options = parse_arguments()
    keep_freed_memory()
    print(describe_processor())
    print(
        f"{options.size}, batches of {options.batch_size}, {options.rounds} turns of "
        f"{options.steps} steps"
    )
    print(
        f"{'masking':8} {'rows':8} {'number':>6} {'ms/step':>10} {'wait':>8} {'worst':>8} "
        f"{'slower':>8}"
    )
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.profiles or Path(scratch)
        kinds = itertools.product(enumerate(options.data), ("off", "on"))
        for (number, directory), packing in kinds:
            data = PretrainingData.from_manifest(directory, read_manifest(directory))
            values: dict[str, Any] = {
                "data": directory,
                "output": "unused",
                "size": options.size,
                "batch_size": options.batch_size,
                "precision": options.precision,
                "xla": options.xla,
            }
            config = build_section(TrainConfig, values)
            print(measure(config, data, packing, options, folder / f"{number}-packing-{packing}"))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="+", help="outputs of bert-pipeline preprocess")
    parser.add_argument("--size", default="tiny")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--xla", default="auto")
    parser.add_argument("--steps", type=int, default=100, help="steps per turn")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--profiles", type=Path, help="folder that keeps the traces")
    return parser.parse_args()


if __name__ == "__main__":
    main()
