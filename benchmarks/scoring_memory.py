"""Memory and time of `score` around the model: the same rows, ten thousand and a million.

    python benchmarks/scoring_memory.py [--rows 10000 1000000] [--output scored.csv]

The engine answers at once, so this measures reading, blocks, Beam and writing. Each size runs
in a process of its own, whose peak memory is printed. Rows have 20 words, dates and quotes.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from bert_tf.base.console import Console
from bert_tf.config.section import build_section
from bert_tf.config.sections import RunnerConfig, ScoreConfig
from bert_tf.engines.engine import CallingEngine
from bert_tf.engines.registry import ENGINES, EngineEntry
from pipeline.jobs import scoring
from pipeline.outputs.job_spec import RunOptions

TEXT = 'the quick brown fox jumps over "lazy" dogs, while it rains in Łódź'
TASK = {"task": "classification", "labels": ["x"], "columns": {"text": "text", "label": "label"}}


class ImmediateEngine(CallingEngine):
    """Predicts the same label for every text."""

    path = Path("model")
    input_names = ("text",)

    def call(self, inputs, batch_tokens, on_tokens):
        """See `CallingEngine.call`."""
        rows = len(inputs["text"])
        return {
            "predicted_label": np.full(rows, "x", object),
            "predicted_score": np.full(rows, 0.5, np.float32),
        }


def load(folder, *, threads):
    """See `Engine`."""
    return ImmediateEngine()


def score(folder: Path, output: str) -> None:
    """Scores `in.csv` of a folder; prints memory and seconds as JSON."""
    name = "immediate"
    ENGINES[name] = EngineEntry(
        name=name, module=__name__, packages=("numpy",), model_file="task.json"
    )
    values = {
        "model": str(folder / "model"),
        "input": [str(folder / "in.csv")],
        "output": str(folder / output),
        "engine": name,
    }
    manifest = scoring.run(
        build_section(ScoreConfig, values),
        RunnerConfig(),
        RunOptions(overwrite=True, console=Console()),
    )
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(
        json.dumps(
            {
                "rows": manifest["counts"]["rows_out"],
                "peak_megabytes": round(used.ru_maxrss / 1024),
                "seconds": manifest["timings"]["total"],
                "processor_seconds": round(used.ru_utime + used.ru_stime, 1),
            }
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 1_000_000])
    parser.add_argument("--output", default="scored.csv")
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    if options.folder:
        score(options.folder, options.output)
        return
    for rows in options.rows:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            (place / "model").mkdir()
            (place / "model" / "task.json").write_text(json.dumps(TASK))
            words = TEXT.split()
            source = random.Random(0)
            with (place / "in.csv").open("w", encoding="utf-8", newline="") as stream:
                writer = csv.writer(stream)
                writer.writerow(["id", "text", "day"])
                for number in range(rows):
                    text = " ".join(source.choices(words, k=20))
                    writer.writerow([number, text, f"2024-01-{number % 28 + 1:02}"])
            command = [sys.executable, __file__, "--folder", folder, "--output", options.output]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
