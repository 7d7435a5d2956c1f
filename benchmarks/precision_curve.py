"""Loss curves of float32 and of bfloat16 side by side, and the effect of another seed.

    python benchmarks/precision_curve.py DATA [--size tiny] [--steps 500] [--batch-size 32]
        [--every 50] [--seed 1] [--other-seed 2] [--runs FOLDER]

DATA is an output of `bert-pipeline preprocess` with eval shards. The `train` job runs three times:
in float32 and in bfloat16 from the same seed, so with the same initial weights, batches and dropout
masks, and in float32 from another seed. Prints the masked-LM loss on the held-out records and the
mean over the training batches since the line before, every so many steps; then the largest
difference of each run from the first. The effect of bfloat16 is noise if it is no larger than that
of another seed. `--runs` keeps the run directories.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from bert_tf.base.console import Console
from bert_tf.base.processor import describe_processor
from bert_tf.config.section import build_section
from bert_tf.config.sections import StorageConfig, TrainConfig
from bert_tf.data.records.dataset_info import PretrainingData
from bert_tf.training.metrics_log import read_metrics
from pipeline.cli.startup import keep_freed_memory
from pipeline.jobs import pretraining
from pipeline.outputs.job_spec import RunOptions
from pipeline.outputs.manifest import read_manifest

SPLITS = {"eval": "held-out", "train": "training"}
Curve = dict[int, float]


def train(options: argparse.Namespace, output: Path, precision: str, seed: int) -> dict[str, Curve]:
    """Run the `train` job; by split, the masked-LM loss by step."""
    values = {
        "data": options.data,
        "output": str(output),
        "size": options.size,
        "steps": options.steps,
        "batch_size": options.batch_size,
        "learning_rate": options.learning_rate,
        "precision": precision,
        "xla": options.xla,
        "seed": seed,
        "log_every": options.every,
        "eval_every": options.every,
    }
    config, run_options = (
        build_section(TrainConfig, values),
        RunOptions(console=Console(sys.stderr)),
    )
    pretraining.run(config, StorageConfig(), run_options)
    lines = read_metrics(output / "metrics.jsonl")
    return {
        split: {line["step"]: line["mlm_loss"] for line in lines if line["split"] == split}
        for split in SPLITS
    }


def print_curves(curves: dict[str, dict[str, Curve]]) -> None:
    """Print a table for each split, with a column for each run."""
    names = list(curves)
    for split, title in SPLITS.items():
        print(f"\n{title + ' mlm_loss':>18}" + "".join(f"{name:>20}" for name in names))
        for step in curves[names[0]][split]:
            losses = [curves[name][split][step] for name in names]
            print(f"{step:18}" + "".join(f"{loss:20.4f}" for loss in losses))


def print_differences(curves: dict[str, dict[str, Curve]]) -> None:
    """How far the other runs are from the first at most, and the one as a fraction of the other."""
    first, *others = curves
    print()
    for split, title in SPLITS.items():
        largest = {}
        for name in others:
            differences = {
                step: abs(curves[name][split][step] - loss)
                for step, loss in curves[first][split].items()
            }
            step = max(differences, key=differences.__getitem__)
            largest[name] = differences[step]
            print(f"{title}: {name} differs by {largest[name]:.4f} at most, at step {step}")
        rounding, noise = largest.values()
        print(f"{title}: that is {rounding / noise:.2f} of the effect of another seed")


def main() -> None:
    options = parse_arguments()
    keep_freed_memory()
    data = PretrainingData.from_manifest(options.data, read_manifest(options.data))
    if not data.eval_shards:
        sys.exit(f"{options.data} has no eval shards; preprocess with --eval-fraction above 0")
    runs = {
        f"float32, seed {options.seed}": ("float32", options.seed),
        f"bfloat16, seed {options.seed}": ("bfloat16", options.seed),
        f"float32, seed {options.other_seed}": ("float32", options.other_seed),
    }
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.runs or Path(scratch)
        curves = {
            name: train(options, folder / f"{precision}-{seed}", precision, seed)
            for name, (precision, seed) in runs.items()
        }
    print(describe_processor())
    print(f"{options.size}, {options.steps} steps of {options.batch_size} sequences")
    print_curves(curves)
    print_differences(curves)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", help="output of bert-pipeline preprocess")
    parser.add_argument("--size", default="tiny")
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--learning-rate", type=float, default=1e-4)
    parser.add_argument("--xla", default="auto")
    parser.add_argument("--every", type=int, default=50, help="steps between two losses")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--other-seed", type=int, default=2)
    parser.add_argument("--runs", type=Path, help="folder that keeps the run directories")
    return parser.parse_args()


if __name__ == "__main__":
    main()
