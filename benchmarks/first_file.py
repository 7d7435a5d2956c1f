"""The first file of a new user: small tables, and commands without hyperparameters.

    python benchmarks/first_file.py DATA --init FOLDER --torch-python PATH [--files SST-2 TREC …]

DATA is a folder with the data sets of `finetuning_data.py`. Of each, some dozens to hundreds of
training rows become a CSV, and up to 300 others a test file. Prints the test metric of

- `fixed`: `finetune` with 3 epochs, batches of 32 and a learning rate of 5e-5,
- `chosen`: `finetune` without these, which chooses them by the number of rows,
- `Trainer`: HuggingFace's Trainer with its defaults (3 epochs, batches of 8, 5e-5), on the rows
  that `finetune` does not hold out,

beside what always predicting the most frequent label reaches. Nothing else runs at the same time.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from commands import bert_pipeline, timed
from finetuning_data import DataSet, data_sets

from bert_tf.base.processor import describe_processor
from bert_tf.base.wording import shown_measure

ROWS = {"SST-2": 60, "STS-B": 120, "MRPC": 200, "TREC": 265, "RTE": 490}
TEST_ROWS = 300
FIXED = ("--epochs", "3", "--batch-size", "32", "--learning-rate", "5e-5")
COLUMNS = ("text", "text_pair", "label")


def read_rows(data: DataSet, path: str) -> list[list[str]]:
    """Read texts and label of all rows, in the order of `COLUMNS`; "" for no second text."""
    with Path(path).open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))
    names = (data.text_column, data.text_pair_column, data.label_column)
    return [["" if name is None else row[name] for name in names] for row in rows]


def write_rows(path: Path, rows: list[list[str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([COLUMNS, *rows])


def run_ours(data: DataSet, folder: Path, name: str, init: str, *flags: str) -> dict[str, Any]:
    """Fine-tune by one command, and measure the best model on the test file."""
    pair = ("--text-pair-column", "text_pair") if data.text_pair_column else ()
    run, measured = folder / name, folder / f"{name}-test"
    files = ("--train", folder / "train.csv", "--init", init, "--output", run)
    seconds, _ = timed(bert_pipeline("finetune", data.task, *files, *pair, *flags))
    evaluated = ("--model", run, "--data", folder / "test.csv", "--output", measured)
    timed(bert_pipeline("evaluate", *evaluated))
    metrics = json.loads((measured / "metrics.json").read_text())
    manifest = json.loads((run / "manifest.json").read_text())
    return {
        "value": metrics[data.metric],
        "error": metrics.get("standard_errors", {}).get(data.metric),
        "seconds": seconds,
        "steps": manifest["counts"]["steps"],
        "next": manifest["next"].split()[1],
    }


def held_out_lines(run: Path) -> set[int]:
    """Lines of the training file that `finetune` held out for evaluation."""
    lines = (run / "predictions.jsonl").read_text(encoding="utf-8").splitlines()
    return {json.loads(line)["line"] for line in lines}


def run_theirs(data: DataSet, folder: Path, options: argparse.Namespace) -> float:
    """Train HuggingFace's Trainer with its defaults; return the test metric."""
    held_out = held_out_lines(folder / "chosen")
    with (folder / "train.csv").open(encoding="utf-8", newline="") as stream:
        reader = csv.reader(stream)
        next(reader)
        starts, rows = [], []
        start = reader.line_num + 1
        for row in reader:
            starts.append(start)
            rows.append(row)
            start = reader.line_num + 1
    kept = [row for start, row in zip(starts, rows, strict=True) if start not in held_out]
    write_rows(folder / "kept.csv", kept)
    settings = {
        "init": options.init,
        "is_regression": data.task == "regression",
        "has_pairs": data.text_pair_column is not None,
        "train": str(folder / "kept.csv"),
        "test": str(folder / "test.csv"),
        "seed": options.seed,
    }
    script = Path(__file__).with_name("first_file_huggingface.py")
    done = subprocess.run(
        [options.torch_python, str(script), json.dumps(settings)], capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(done.stderr[-3000:])
    return float(done.stdout.splitlines()[-1])


def most_frequent(data: DataSet, train: list[list[str]], test: list[list[str]]) -> float:
    """Accuracy of the most frequent label of the training rows; 0 for correlations."""
    if data.task == "regression":
        return 0.0
    labels = [row[-1] for row in train]
    frequent = max(sorted(set(labels)), key=labels.count)
    return sum(row[-1] == frequent for row in test) / len(test)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data")
    parser.add_argument("--init", required=True)
    parser.add_argument("--torch-python", required=True)
    parser.add_argument("--files", nargs="+", default=list(ROWS), choices=list(ROWS))
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(describe_processor(), flush=True)
    known = data_sets(Path(options.data))
    for name in options.files:
        data = known[name]
        generator = random.Random(options.seed)
        train = generator.sample(read_rows(data, data.train), ROWS[name])
        test = read_rows(data, data.eval)
        test = generator.sample(test, min(TEST_ROWS, len(test)))
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            write_rows(folder / "train.csv", train)
            write_rows(folder / "test.csv", test)
            seed = ("--seed", str(options.seed))
            found = {
                "fixed": run_ours(data, folder, "fixed", options.init, *seed, *FIXED),
                "chosen": run_ours(data, folder, "chosen", options.init, *seed),
            }
            theirs = run_theirs(data, folder, options)
        ours = "  ".join(
            f"{side} {shown_measure(each['value'], each['error'])} ({each['steps']} steps, "
            f"{each['seconds']:.0f} s, next: {each['next']})"
            for side, each in found.items()
        )
        print(
            f"{name}, {len(train)} rows, {data.metric} on {len(test)}: most frequent label "
            f"{most_frequent(data, train, test):.3f}  {ours}  Trainer {theirs:.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
