"""Fine-tunes the same weights on the same rows: ours and HuggingFace's Trainer, seed after seed.

    python benchmarks/finetuning.py TRAIN EVAL --init FOLDER --torch-python PATH \
        [--text-column sentence] [--text-pair-column COLUMN] [--seeds 3]

TRAIN and EVAL are TSV files with a header and a column of labels. Both sides have the same rows,
hyperparameters and batches of similar lengths, and their own best precision: ours is
`bert-pipeline finetune classification` with default settings, the Trainer runs once per precision
in `--their-precisions`. The sides take turns; the machine should have no other work. Prints one row
per run, then means, standard deviations and ratios. `train` is the time of the training steps and
what compiles them, `job` that of the whole process, `cpu` its processor time.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from bert_tf.base.processor import describe_processor

_COLUMNS = ("accuracy", "loss", "train", "job", "cpu", "peak_mb")


def measured(command: list[str]) -> dict[str, float]:
    """Runs a command to its end; seconds, processor seconds and peak memory of its process."""
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{command[0]}: ended with status {status}; its message is above")
    return {
        "job": time.monotonic() - start,
        "cpu": usage.ru_utime + usage.ru_stime,
        "peak_mb": usage.ru_maxrss / 1024,
    }


def train_ours(options: argparse.Namespace, seed: int, folder: Path) -> dict[str, float]:
    """`bert-pipeline finetune classification`, evaluated after its last epoch."""
    run = folder / f"ours-{seed}"
    command = [
        *(str(Path(sys.executable).with_name("bert-pipeline")), "finetune", "classification"),
        *("--train", options.train, "--eval", options.eval, "--init", options.init),
        *("--output", str(run), "--seed", str(seed), "--epochs", str(options.epochs)),
        *("--batch-size", str(options.batch_size), "--text-column", options.text_column),
        *("--learning-rate", str(options.learning_rate), "--label-column", options.label_column),
        *("--max-seq-length", str(options.max_seq_length)),
        *("--set", f"finetune.max_train_rows={options.rows}"),
    ]
    if options.text_pair_column:
        command += ["--text-pair-column", options.text_pair_column]
    found = measured(command)
    lines = [json.loads(line) for line in (run / "metrics.jsonl").open()]
    # The Trainer evaluates once, after training; ours after every epoch.
    evaluating = sum(
        line["time"] - before["time"]
        for before, line in itertools.pairwise(lines)
        if line["split"] == "eval"
    )
    last = lines[-1]
    return {
        **found,
        "train": last["time"] - evaluating,
        "accuracy": last["accuracy"],
        "loss": last["loss"],
    }


def train_theirs(
    options: argparse.Namespace, seed: int, precision: str, folder: Path
) -> dict[str, float]:
    """The Trainer in an interpreter of its own."""
    answer = folder / f"theirs-{seed}-{precision}.json"
    names = ("train", "eval", "init", "rows", "epochs", "batch_size", "learning_rate")
    columns = ("text_column", "text_pair_column", "label_column", "max_seq_length")
    settings = {name: getattr(options, name) for name in (*names, *columns)}
    settings |= {"seed": seed, "precision": precision, "answer": str(answer)}
    script = Path(__file__).with_name("finetuning_huggingface.py")
    found = measured([options.torch_python, str(script), json.dumps(settings)])
    return {**found, **json.loads(answer.read_text())}


def show(name: str, row: dict[str, float]) -> None:
    print(f"{name:24}" + "".join(f"{row[column]:>12.5g}" for column in _COLUMNS), flush=True)


def summarize(sides: dict[str, list[dict[str, float]]]) -> None:
    """Means, deviations, and the fastest of the other sides over ours."""
    means: dict[str, dict[str, float]] = {}
    for name, rows in sides.items():
        means[name] = {column: mean(row[column] for row in rows) for column in _COLUMNS}
        show(f"{name}, mean", means[name])
        if len(rows) > 1:
            show(f"{name}, deviation", {c: stdev(row[c] for row in rows) for c in _COLUMNS})
    ours, *theirs = means.values()
    for column in ("train", "job", "cpu", "peak_mb"):
        print(f"{column}: theirs / ours {min(row[column] for row in theirs) / ours[column]:.2f}")
    difference = ours["accuracy"] - max(row["accuracy"] for row in theirs)
    print(f"accuracy: ours - theirs {100 * difference:+.2f} points")


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("train", help="TSV with a header")
    parser.add_argument("eval", help="TSV with the same columns")
    parser.add_argument("--init", required=True, help="HuggingFace folder of a BERT")
    parser.add_argument("--torch-python", required=True, help="with torch and transformers")
    parser.add_argument("--their-precisions", nargs="+", default=["float32", "bfloat16"])
    parser.add_argument("--text-column", default="text")
    parser.add_argument("--text-pair-column")
    parser.add_argument("--label-column", default="label")
    parser.add_argument("--rows", type=int, default=8000, help="training rows (0: all)")
    parser.add_argument("--epochs", type=float, default=1.0)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--learning-rate", type=float, default=5e-5)
    parser.add_argument("--max-seq-length", type=int, default=128)
    parser.add_argument("--seeds", type=int, default=3)
    return parser.parse_args()


def main() -> None:
    options = parsed()
    print(f"processor: {describe_processor()}")
    print(" " * 24 + "".join(f"{column:>12}" for column in _COLUMNS), flush=True)
    names: dict[str, Any] = {"ours": None}
    names |= {f"Trainer, {precision}": precision for precision in options.their_precisions}
    sides: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as work:
        for seed in range(1, options.seeds + 1):
            for name, precision in names.items():
                if precision is None:
                    row = train_ours(options, seed, Path(work))
                else:
                    row = train_theirs(options, seed, precision, Path(work))
                show(f"{name}, seed {seed}", row)
                sides[name].append(row)
    summarize(sides)


if __name__ == "__main__":
    main()
