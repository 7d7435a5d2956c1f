"""Fine-tunes the same weights on the same rows: ours and HuggingFace's Trainer, seed after seed.

    python benchmarks/finetuning.py DATA --init FOLDER --torch-python PATH \
        [--sets SST-2 TREC …] [--sides ours bfloat16 float32] [--seeds 3] [--results FILE]

DATA is a folder with the data sets of `finetuning_data.py`. Both sides have the same rows,
hyperparameters and batches of similar lengths: ours is `bert-pipeline finetune` with default
settings, the Trainer runs in the precisions named. The sides take turns; for times, the machine
should have no other work, and `--metrics-only` keeps none where it has. Prints a row per run, then
means, standard deviations and ratios. `train` is the time of the training steps and their
compilation, `step_ms` that of a step after the first ten, `job` that of the whole process, `cpu`
its processor time. With `--results` every run is kept in that file and not repeated.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from commands import bert_pipeline
from finetuning_data import DataSet, data_sets, f1_of_answers

from bert_tf.base.processor import describe_processor

_OURS = "ours"
_COLUMNS = ("metric", "train", "step_ms", "job", "cpu", "peak_mb")


def measured(command: list[str]) -> dict[str, float]:
    """Run a command to its end; seconds, processor seconds and peak memory of its process."""
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


def train_ours(data: DataSet, init: str, seed: int, folder: Path) -> dict[str, float]:
    """`bert-pipeline finetune`, with the metric of its last epoch."""
    run = folder / f"{data.name}-{seed}"
    options: dict[str, Any] = {
        "train": data.train,
        "eval": data.eval,
        "init": init,
        "output": run,
        "seed": seed,
        "epochs": data.epochs,
        "batch-size": data.batch_size,
        "learning-rate": data.learning_rate,
        "max-seq-length": data.max_seq_length,
        "text-column": data.text_column,
        "text-pair-column": data.text_pair_column,
        "label-column": data.label_column,
        "set": f"finetune.max_train_rows={data.rows}",
    }
    flags = [(f"--{name}", value) for name, value in options.items() if value is not None]
    found = measured(bert_pipeline("finetune", data.task, *itertools.chain(*flags)))
    lines = [json.loads(line) for line in (run / "metrics.jsonl").open()]
    # The Trainer evaluates once, after training; ours after every epoch.
    training, evaluating = [], 0.0
    for before, line in itertools.pairwise([{"time": 0.0}, *lines]):
        if line["split"] == "eval":
            evaluating += line["time"] - before["time"]
        else:
            training.append((line["step"], line["time"] - evaluating))
    (first_step, first), (last_step, last) = training[0], training[-1]
    return {
        **found,
        "train": last,
        "step_ms": 1000 * (last - first) / (last_step - first_step),
        "metric": data.scale * lines[-1][data.metric],
    }


def train_theirs(
    data: DataSet, init: str, seed: int, precision: str, python: str, folder: Path
) -> dict[str, float]:
    """Return the Trainer in an interpreter of its own."""
    answer = folder / "answer.json"
    settings = dataclasses.asdict(data)
    settings |= {"init": init, "seed": seed, "precision": precision, "answer": str(answer)}
    script = Path(__file__).with_name("finetuning_huggingface.py")
    found = measured([python, str(script), json.dumps(settings)])
    given = json.loads(answer.read_text())
    if "answers" in given:
        metric = f1_of_answers(data.eval, given["answers"], tuned=data.metric == "best_f1")
    else:
        metric = data.scale * given["metric"]
    return {**found, "train": given["train"], "step_ms": given["step_ms"], "metric": metric}


class Results:
    """Runs by data set, side and seed; kept in a file, if any."""

    def __init__(self, path: Path | None):
        self._path = path
        self._runs: dict[tuple[str, str, int], dict[str, float]] = {}
        if path is not None and path.is_file():
            for line in path.read_text().splitlines():
                entry = json.loads(line)
                self._runs[entry["set"], entry["side"], entry["seed"]] = entry["found"]

    def __contains__(self, key: tuple[str, str, int]) -> bool:
        return key in self._runs

    def add(self, key: tuple[str, str, int], found: dict[str, float]) -> None:
        self._runs[key] = found
        if self._path is not None:
            name, side, seed = key
            entry = {"set": name, "side": side, "seed": seed, "found": found}
            with self._path.open("a") as stream:
                stream.write(json.dumps(entry) + "\n")

    def show(self, key: tuple[str, str, int]) -> None:
        name, side, seed = key
        _show(f"{name}, {side}, seed {seed}", self._runs[key])

    def summarize(self, name: str, sides: list[str], seeds: int) -> None:
        """Means, deviations, and the fastest of the other sides over ours."""
        means: dict[str, dict[str, float]] = {}
        for side in sides:
            rows = [self._runs[name, side, seed] for seed in range(1, seeds + 1)]
            columns = {c: [row[c] for row in rows if c in row] for c in _COLUMNS}
            means[side] = {c: mean(values) for c, values in columns.items() if values}
            _show(f"{name}, {side}, mean", means[side])
            deviations = {c: stdev(values) for c, values in columns.items() if values[1:]}
            if deviations:
                _show(f"{name}, {side}, deviation", deviations)
        theirs = [means[side] for side in sides if side != _OURS]
        if _OURS in means and theirs:
            ours = means[_OURS]
            ratios = (
                f"{column} {min(row[column] for row in theirs) / ours[column]:.2f}"
                for column in _COLUMNS[1:]
                if all(column in row for row in (ours, *theirs))
            )
            difference = ours["metric"] - max(row["metric"] for row in theirs)
            print(f"{name}: theirs / ours: {', '.join(ratios)}; metric {difference:+.2f} points")


def _show(name: str, row: dict[str, float]) -> None:
    cells = (f"{row[column]:.5g}" if column in row else "-" for column in _COLUMNS)
    print(f"{name:32}" + "".join(f"{cell:>12}" for cell in cells), flush=True)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder of the data sets")
    parser.add_argument("--init", required=True, help="HuggingFace folder of a BERT")
    parser.add_argument("--torch-python", required=True, help="with torch and transformers")
    parser.add_argument("--sets", nargs="+", help="names of data sets (default: all)")
    parser.add_argument("--sides", nargs="+", default=[_OURS, "bfloat16", "float32"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--metrics-only", action="store_true", help="keep no times")
    parser.add_argument("--results", type=Path, help="JSON lines; runs in it are not repeated")
    return parser.parse_args()


def main() -> None:
    options = parsed()
    print(f"processor: {describe_processor()}")
    print(" " * 32 + "".join(f"{column:>12}" for column in _COLUMNS), flush=True)
    known = data_sets(options.data)
    names = options.sets or list(known)
    results = Results(options.results)
    with tempfile.TemporaryDirectory() as work:
        for name in names:
            for seed in range(1, options.seeds + 1):
                for side in options.sides:
                    key = (name, side, seed)
                    if key not in results:
                        folder = Path(tempfile.mkdtemp(dir=work))
                        if side == _OURS:
                            found = train_ours(known[name], options.init, seed, folder)
                        else:
                            found = train_theirs(
                                known[name], options.init, seed, side, options.torch_python, folder
                            )
                        if options.metrics_only:
                            found = {c: found[c] for c in ("metric", "peak_mb")}
                        results.add(key, found)
                    results.show(key)
            results.summarize(name, options.sides, options.seeds)


if __name__ == "__main__":
    main()
