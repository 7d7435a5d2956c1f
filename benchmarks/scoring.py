"""Rows per second of scoring texts: our engines and other libraries, in turns.

    python benchmarks/scoring.py --input rows.csv --run RUN [--int8 MODEL] [--peers-python PYTHON]

RUN is a classifier of `finetune classification`, MODEL the same exported with `--precision int8`.
Every side is a process of its own; they take turns on the same rows, so that other load on the
machine falls on all of them. Peers run in the interpreter that `--peers-python` names, with
transformers, torch, onnxruntime, openvino and ctranslate2, and are left out without one. What is
printed of each are its best round, and the largest difference of a probability to the first side.
On a machine with other work, compare rows per processor second.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import numpy as np
from side import Side

from bert_tf.base.console import Console
from bert_tf.base.processor import describe_processor, has_bfloat16
from bert_tf.config.bert_file import read_task
from bert_tf.config.registries import AUTO, BFLOAT16
from bert_tf.config.sections import ScoreConfig
from bert_tf.engines.choice import possible_engines
from bert_tf.engines.registry import ENGINES
from bert_tf.export.loading import load_trained_model
from bert_tf.export.registry import FORMATS
from bert_tf.weights.model_directory import read_model_directory

_HERE = Path(__file__).parent
_PEERS = (
    *("OpenVINO float32", "OpenVINO bfloat16", "onnxruntime"),
    *("PyTorch float32", "PyTorch bfloat16"),
    *("CTranslate2 float32", "CTranslate2 int8", "pipeline"),
)


def read_texts(path: Path, column: str, rows: int) -> list[str]:
    with path.open(encoding="utf-8-sig", newline="") as stream:
        return [row[column] for row in csv.DictReader(stream)][:rows]


def our_sides(model: Path, int8: Path | None) -> Iterator[tuple[str, Path]]:
    """Engines and precisions, with the folder that each runs."""
    for entry in ENGINES.values():
        if not entry.is_installed():
            continue
        for precision in entry.precisions_of(model):
            if precision != BFLOAT16 or has_bfloat16():
                yield f"{entry.name} {precision}", model
        if int8 is not None and "int8" in entry.precisions_of(int8):
            yield f"{entry.name} int8", int8
    yield "KerasHub", model


def start_sides(given: argparse.Namespace, folder: Path, texts: Path) -> dict[str, Side]:
    task = read_task(folder)
    assert task is not None
    sides = {}
    for name, model in our_sides(folder, given.int8):
        shown = name if name == "KerasHub" else f"ours, {name}"
        command = [sys.executable, str(_HERE / "scoring_side.py"), name, str(model), str(texts)]
        sides[shown] = command
    for name in _PEERS if given.peers_python else ():
        if "bfloat16" in name and not has_bfloat16():
            continue
        arguments = [name, str(folder), str(texts), str(task["max_seq_length"])]
        sides[name] = [given.peers_python, str(_HERE / "scoring_peer.py"), *arguments]
    chosen = [name for name in sides if not given.sides or name in given.sides]
    started = {}
    for name in chosen:
        started[name] = Side(name, sides[name])
        started[name].wait_until_ready()
    return started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--input", type=Path, required=True, help="CSV with texts")
    parser.add_argument("--text-column", default="text")
    parser.add_argument("--run", required=True, help="run of finetune classification")
    parser.add_argument("--int8", type=Path, help="the same, exported with --precision int8")
    parser.add_argument("--peers-python", help="interpreter with transformers and the peers")
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sides", nargs="+", help="only these, as they are printed")
    given = parser.parse_args()
    texts = read_texts(given.input, given.text_column, given.rows)
    with tempfile.TemporaryDirectory() as scratch:
        folder, texts_file = Path(scratch) / "model", Path(scratch) / "texts.json"
        texts_file.write_text(json.dumps(texts))
        trained = load_trained_model(read_model_directory(given.run))
        folder.mkdir()
        for name in ("savedmodel", "onnx"):
            FORMATS[name].load().write(trained, folder, Console())
        auto = possible_engines(AUTO, ScoreConfig.precision, given.int8 or folder)[0].name
        sides = start_sides(given, folder, texts_file)
        for _ in range(given.rounds):
            for side in sides.values():
                side.take_turn()
        for side in sides.values():
            side.close()
    report({name: side.answers[""] for name, side in sides.items()}, len(texts), auto)


def report(answers: dict[str, list[dict[str, Any]]], rows: int, auto: str) -> None:
    first = next(iter(answers))
    print(describe_processor())
    print(f"{rows:,} rows, best of {len(answers[first])} rounds; auto is {auto}")
    print(
        f"{'':<26}{'rows/s':>8}{'ratio':>7}{'rows/processor s':>18}{'ratio':>7}{'difference':>12}"
    )
    expected = np.array(answers[first][0]["probabilities"])
    best = {
        name: [min(turn[key] for turn in turns) for key in ("seconds", "processor_seconds")]
        for name, turns in answers.items()
    }
    for name, (wall, work) in best.items():
        difference = np.abs(np.array(answers[name][0]["probabilities"]) - expected).max()
        print(
            f"{name:<26}{rows / wall:8.0f}{best[first][0] / wall:7.2f}{rows / work:18.0f}"
            f"{best[first][1] / work:7.2f}{difference:12.5f}"
        )


if __name__ == "__main__":
    main()
