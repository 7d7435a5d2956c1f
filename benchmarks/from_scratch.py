"""Pretrains the same model from scratch for the same time: ours and HuggingFace's Trainer.

    python benchmarks/from_scratch.py DATA --torch-python PATH [--size mini] [--minutes 20]

DATA is the output of `bert-pipeline preprocess`. Ours is `bert-pipeline train` with default
settings, the peer transformers' Trainer with `BertForPreTraining`, one run per learning rate. All
train on DATA's records, with the same batch, warmup, decay and clipping, as many steps as the
minutes allow, and are measured on the same held-out records. The runs follow one another: the
machine should have no other work. Prints one row per run.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import subprocess
import sys
import tempfile
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf.base.processor import describe_processor
from bert_tf.config.bert import sized_config
from bert_tf.data.records.dataset_info import PretrainingData
from bert_tf.data.records.pretraining_inputs import PretrainingInputs, evaluation_batches
from pipeline.outputs.manifest import read_manifest

_EVAL_EXAMPLES = 2000
_WARMUP_PROPORTION = 0.05
_COLUMNS = ("steps", "seconds", "mlm_loss", "mlm_accuracy", "nsp_accuracy")


def export_examples(data: PretrainingData, path: Path, *, batches: int, batch_size: int) -> None:
    """Write training examples, in an order like ours, and held-out ones as arrays."""
    inputs = PretrainingInputs(data.paths("train"), data, batch_size=batch_size, seed=1)
    evals = evaluation_batches(data, batch_size=_EVAL_EXAMPLES, limit=_EVAL_EXAMPLES)
    splits: dict[str, Any] = {"train": islice(inputs.batches(0), batches), "eval": evals}
    arrays: dict[str, Any] = {}
    for split, dataset in splits.items():
        found = [{name: tensor.numpy() for name, tensor in batch.items()} for batch in dataset]
        for name in found[0]:
            arrays[f"{split}/{name}"] = np.concatenate([batch[name] for batch in found])
    np.savez(path, **arrays)


def train_ours(options: argparse.Namespace, folder: Path) -> dict[str, float]:
    """`bert-pipeline train`, evaluated once at its end."""
    command = [
        *(str(Path(sys.executable).with_name("bert-pipeline")), "train"),
        *("--data", options.data, "--output", str(folder), "--size", options.size),
        *("--learning-rate", str(options.learning_rate), "--steps", "1000000"),
        *("--batch-size", str(options.batch_size), "--seed", str(options.seed)),
    ]
    settings = {
        "max_minutes": options.minutes,
        "warmup_proportion": _WARMUP_PROPORTION,
        "eval_every": 1_000_000,
        "eval_examples": _EVAL_EXAMPLES,
    }
    for name, value in settings.items():
        command += ["--set", f"train.{name}={value}"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").open()]
    trained = [line for line in lines if line["split"] == "train"][-1]
    evaluated = [line for line in lines if line["split"] == "eval"][-1]
    return {"steps": trained["step"], "seconds": trained["time"], **evaluated}


def train_theirs(
    options: argparse.Namespace, examples: Path, vocab_size: int, learning_rate: float
) -> dict[str, float]:
    """Return the Trainer in an interpreter of its own."""
    config = dataclasses.asdict(sized_config(options.size, vocab_size))
    del config["hidden_act"]  # theirs is the exact GELU, which PyTorch computes in one kernel
    settings = {
        "config": config,
        "minutes": options.minutes,
        "learning_rate": learning_rate,
        "batch_size": options.batch_size,
        "warmup_proportion": _WARMUP_PROPORTION,
        "seed": options.seed,
    }
    script = Path(__file__).with_name("from_scratch_huggingface.py")
    result = subprocess.run(
        [options.torch_python, str(script), str(examples), json.dumps(settings)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return json.loads(result.stdout.splitlines()[-1])


def show(name: str, row: dict[str, float]) -> None:
    print(f"{name:24}" + "".join(f"{row[column]:>14.6g}" for column in _COLUMNS), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", help="output of bert-pipeline preprocess")
    parser.add_argument("--torch-python", required=True, help="with torch and transformers")
    parser.add_argument("--size", default="mini")
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--learning-rate", type=float, default=1e-3, help="ours")
    parser.add_argument(
        "--their-learning-rates", type=float, nargs="+", default=[1e-3, 3e-4], help="one run each"
    )
    parser.add_argument("--batches", type=int, default=3000, help="exported for the Trainer")
    options = parser.parse_args()
    data = PretrainingData.from_manifest(options.data, read_manifest(options.data))
    print(f"processor: {describe_processor()}")
    print(f"BERT-{options.size}, {options.minutes:g} minutes, batches of {options.batch_size}")
    print(" " * 24 + "".join(f"{column:>14}" for column in _COLUMNS), flush=True)
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        show(f"ours, {options.learning_rate:g}", train_ours(options, folder / "ours"))
        examples = folder / "examples.npz"
        export_examples(data, examples, batches=options.batches, batch_size=options.batch_size)
        for learning_rate in options.their_learning_rates:
            show(
                f"HuggingFace, {learning_rate:g}",
                train_theirs(options, examples, data.vocab_size, learning_rate),
            )


if __name__ == "__main__":
    main()
