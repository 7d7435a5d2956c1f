"""How long the input takes to its first batch, from the start of the records and from far on.

    python benchmarks/resume_time.py DATA [--batch-size 32] [--steps 0 1000 100000 10000000]

DATA is an output of `bert-pipeline preprocess`. A resumed run opens its input at the step that
it had reached. Prints, for padded and for packed rows, the seconds that indexing the shards takes,
those from then to the first batch, and the megabytes that were read for it. Shards lie in the
system's cache after the first time, which is not printed.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from record_steps import open_inputs

from bert_tf.base.processor import describe_processor
from bert_tf.config.section import build_section
from bert_tf.config.sections import TrainConfig
from bert_tf.data.records.dataset_info import PretrainingData
from pipeline.outputs.manifest import read_manifest


def bytes_read() -> int:
    """Bytes that this process has read from files, cached or not (Linux)."""
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["rchar"])


def first_batch(
    config: TrainConfig, data: PretrainingData, packing: str, step: int
) -> tuple[float, float, int]:
    """Seconds to open the input, seconds from then to the batch of an step, bytes read for it."""
    start = time.perf_counter()
    inputs = open_inputs(config, data, packing=packing)
    opened, before = time.perf_counter(), bytes_read()
    next(iter(inputs.batches(step)))
    return opened - start, time.perf_counter() - opened, bytes_read() - before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", help="output of bert-pipeline preprocess")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--steps", type=int, nargs="+", default=[0, 1000, 100_000, 10_000_000])
    options = parser.parse_args()
    data = PretrainingData.from_manifest(options.data, read_manifest(options.data))
    values = {
        "data": options.data,
        "output": "unused",
        "size": "tiny",
        "batch_size": options.batch_size,
    }
    config = build_section(TrainConfig, values)
    print(describe_processor())
    print(f"{'rows':8}{'step':>12}{'open s':>9}{'first batch s':>15}{'MB read':>9}")
    for packing, rows in (("off", "padded"), ("on", "packed")):
        first_batch(config, data, packing, 0)
        for step in options.steps:
            opening, batch, read = first_batch(config, data, packing, step)
            print(f"{rows:8}{step:12}{opening:9.2f}{batch:15.2f}{read / 1e6:9.1f}")


if __name__ == "__main__":
    main()
