"""How far the estimate of a pretraining step's memory is from the peak of real steps.

    python benchmarks/step_memory.py [--sizes tiny mini small] [--rows 16 32] [--lengths 128 512]
        [--micro-batches 1] [--ways bfloat16 float32-xla float32] [--vocab-size 30522]

For each combination two steps run in a process of their own, with TensorFlow's memory kept as
`bert-pipeline train` has it kept. Prints the peak of the process's resident memory, the estimate
(`bert_tf.pretraining.step_memory`), and how far it is off; at the end the largest difference.
"""

from __future__ import annotations

import argparse
import itertools

from bert_tf.config.bert import sized_config
from bert_tf.pretraining.memory_trial import peak_of_step
from bert_tf.pretraining.step_memory import gigabytes, step_memory
from bert_tf.pretraining.step_trial import StepShape
from bert_tf.training.devices.precision import Arithmetic, PrecisionPolicy
from bert_tf.training.run.arithmetic import BatchRows
from pipeline.cli.startup import keep_freed_memory

WAYS = {
    "bfloat16": PrecisionPolicy("mixed_bfloat16", False, use_kernels=True),
    "bfloat16-no-xla": PrecisionPolicy("mixed_bfloat16", False),
    "bfloat16-xla": PrecisionPolicy("mixed_bfloat16", True),
    "float32": PrecisionPolicy("float32", False, use_kernels=True),
    "float32-no-xla": PrecisionPolicy("float32", False),
    "float32-xla": PrecisionPolicy("float32", True),
}
MASKED = 0.15


def main() -> None:
    """Measures every combination."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", nargs="+", default=["tiny", "mini", "small"])
    parser.add_argument("--rows", nargs="+", type=int, default=[16, 32])
    parser.add_argument("--lengths", nargs="+", type=int, default=[128, 512])
    parser.add_argument("--micro-batches", type=int, default=1)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=["bfloat16", "float32-xla"])
    parser.add_argument("--vocab-size", type=int, default=30522)
    options = parser.parse_args()
    keep_freed_memory()
    worst = 0.0
    print("size   rows length way           measured  estimate  off", flush=True)
    for size, rows, length, name in itertools.product(
        options.sizes, options.rows, options.lengths, options.ways
    ):
        model, precision = sized_config(size, options.vocab_size), WAYS[name]
        shape = StepShape(rows=rows, length=length, predictions=round(MASKED * length) + 1)
        parts = BatchRows(batch=rows, micro_batches=options.micro_batches, is_filled_up=False)
        shards = 1 if precision.use_xla else parts.shards()
        peak = peak_of_step(
            model,
            shape,
            Arithmetic(precision=precision, shards=shards),
            micro_batches=options.micro_batches,
        )
        step = step_memory(model, shape, precision, micro_batches=options.micro_batches)
        if peak is None:
            print(f"{size:6} {rows:4} {length:6} {name:13} did not fit", flush=True)
            continue
        off = step.total / peak - 1
        worst = max(worst, abs(off))
        print(
            f"{size:6} {rows:4} {length:6} {name:13} {gigabytes(peak):>7}   "
            f"{gigabytes(step.total):>7}  {off:+.1%}",
            flush=True,
        )
    print(f"largest difference: {worst:.1%}")


if __name__ == "__main__":
    main()
