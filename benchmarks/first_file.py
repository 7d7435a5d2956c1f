"""The first file of a new user: small tables, and commands without hyperparameters.

    python benchmarks/first_file.py DATA --init FOLDER --torch-python PATH [--before TREE] \
        [--files SST-2 TREC …] [--seeds 3] [--results FILE]

DATA is a folder with the data sets of `finetuning_data.py`. Of each, some dozens to hundreds of
training rows become a file, and up to 500 others a test file; each seed draws other rows. Prints
the test metric of

- `before`: README's `finetune` from the source tree TREE of an earlier version, if there is one,
- `ours`: README's `finetune`, which chooses epochs, batch size and learning rate by the rows,
- `trainer`: HuggingFace's Trainer with its defaults (3 epochs, batches of 8, 5e-5). It learns from
  all rows of the file; `finetune` holds a part of them out to select the epoch,

beside the accuracy of predicting the most frequent label. Nothing else should run at the same time
where the seconds matter. With `--results` every run is kept in that file and not repeated.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import subprocess
import tempfile
import time
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

from commands import bert_pipeline, timed
from finetuning_data import DataSet, data_sets

from bert_tf.base.processor import describe_processor

ROWS = {"SST-2": 60, "STS-B": 120, "MRPC": 200, "TREC": 265, "WNUT-17": 300}
TEST_ROWS = 500
COLUMNS = ("text", "text_pair", "label")
BEFORE, OURS, TRAINER = "before", "ours", "trainer"


class Files(NamedTuple):
    """A training and a test file, in the format of the task."""

    train: Path
    test: Path


def read_rows(data: DataSet, path: str) -> list[Any]:
    """Read rows of `COLUMNS` ("" for no second text); for tagging, the lines of each sentence."""
    if data.task == "tagging":
        return Path(path).read_text(encoding="utf-8").strip().split("\n\n")
    with Path(path).open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))
    names = (data.text_column, data.text_pair_column, data.label_column)
    return [["" if name is None else row[name] for name in names] for row in rows]


def write_rows(data: DataSet, stem: Path, rows: list[Any]) -> Path:
    """Write rows of `read_rows` as CSV or CoNLL columns; return the file."""
    if data.task == "tagging":
        path = stem.with_suffix(".conll")
        path.write_text("\n\n".join(rows) + "\n", encoding="utf-8")
        return path
    path = stem.with_suffix(".csv")
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([COLUMNS, *rows])
    return path


def draw_files(data: DataSet, folder: Path, seed: int) -> Files:
    """Draw the rows of a seed, and write them."""
    generator = random.Random(seed)
    train = generator.sample(read_rows(data, data.train), ROWS[data.name])
    test = read_rows(data, data.eval)
    test = generator.sample(test, min(TEST_ROWS, len(test)))
    return Files(write_rows(data, folder / "train", train), write_rows(data, folder / "test", test))


def run_ours(
    data: DataSet, files: Files, folder: Path, init: str, seed: int, tree: Path | None = None
) -> dict[str, Any]:
    """Fine-tune by README's command, and measure the best model on the test file.

    Args:
        tree: source tree whose commands run; None for this one's.
    """
    run, measured = folder / "run", folder / "test"
    pair = ("--text-pair-column", "text_pair") if data.text_pair_column else ()
    given = ("--train", files.train, "--init", init, "--output", run, "--seed", seed)
    seconds, _ = timed(bert_pipeline("finetune", data.task, *given, *pair), tree)
    evaluated = ("--model", run, "--data", files.test, "--output", measured)
    timed(bert_pipeline("evaluate", *evaluated), tree)
    metrics = json.loads((measured / "metrics.json").read_text())
    manifest = json.loads((run / "manifest.json").read_text())
    return {
        "metric": data.scale * metrics[data.metric],
        "seconds": seconds,
        "steps": manifest["counts"]["steps"],
        "next": manifest["next"].split()[1] if manifest.get("next") else "",
    }


def run_theirs(
    data: DataSet, files: Files, options: argparse.Namespace, seed: int
) -> dict[str, Any]:
    """Train HuggingFace's Trainer with its defaults, and measure the model on the test file."""
    settings = {
        "init": options.init,
        "task": data.task,
        "has_pairs": data.text_pair_column is not None,
        "train": str(files.train),
        "eval": str(files.test),
        "seed": seed,
    }
    script = Path(__file__).with_name("first_file_huggingface.py")
    command = [options.torch_python, str(script), json.dumps(settings)]
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr[-3000:])
    found = json.loads(done.stdout.splitlines()[-1])
    return {
        "metric": data.scale * found["metric"],
        "seconds": time.perf_counter() - start,
        "steps": found["steps"],
    }


def most_frequent(data: DataSet, files: Files) -> float | None:
    """Accuracy of the most frequent label of the training rows; None for other metrics."""
    if data.task != "classification":
        return None
    columns = []
    for path in files:
        with path.open(encoding="utf-8", newline="") as stream:
            columns.append([row["label"] for row in csv.DictReader(stream)])
    train, test = columns
    frequent = max(sorted(set(train)), key=train.count)
    return data.scale * test.count(frequent) / len(test)


def run_side(data: DataSet, side: str, seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """Draw the files of a seed and run one side on them."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        files = draw_files(data, folder, seed)
        if side == TRAINER:
            found = run_theirs(data, files, options, seed)
        else:
            tree = options.before if side == BEFORE else None
            found = run_ours(data, files, folder, options.init, seed, tree)
        return {**found, "most_frequent": most_frequent(data, files)}


def summarize(name: str, side: str, runs: list[dict[str, Any]]) -> None:
    values = [run["metric"] for run in runs]
    deviation = f" ± {stdev(values):.1f}" if values[1:] else ""
    print(
        f"{name}, {ROWS[name]} rows, {side}: {mean(values):.1f}{deviation} "
        f"({', '.join(f'{value:.1f}' for value in values)}), "
        f"{mean(run['seconds'] for run in runs):.0f} s",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--init", required=True)
    parser.add_argument("--torch-python", required=True)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--files", nargs="+", default=list(ROWS), choices=list(ROWS))
    parser.add_argument("--sides", nargs="+", default=[BEFORE, OURS, TRAINER])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--results", type=Path)
    options = parser.parse_args()
    processor = describe_processor()
    print(processor, flush=True)
    kept: dict[tuple[str, str, int], dict[str, Any]] = {}
    if options.results and options.results.is_file():
        for line in options.results.read_text().splitlines():
            entry = json.loads(line)
            kept[entry["file"], entry["side"], entry["seed"]] = entry["found"]
    known = data_sets(options.data)
    for name in options.files:
        for side in options.sides:
            runs = []
            for seed in options.seeds:
                key = (name, side, seed)
                if key not in kept and not (side == BEFORE and options.before is None):
                    kept[key] = run_side(known[name], side, seed, options)
                    if options.results:
                        entry = {"file": name, "side": side, "seed": seed, "found": kept[key]}
                        with options.results.open("a") as stream:
                            stream.write(json.dumps(entry) + "\n")
                if key in kept:
                    runs.append(kept[key])
            if runs:
                summarize(name, side, runs)


if __name__ == "__main__":
    main()
