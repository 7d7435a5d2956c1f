"""Scores a table again and again, killed at another rename each time, and once more to its end.

Run as `killed_scoring.py FOLDER`; prints a JSON line for each kill, see `main`. A process of its
own, which forks: Beam and its like are imported once, and no thread of theirs runs before a fork.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from unittest import mock

import constant_engine
from behavior.beam_construction import forget_threads
from constant_engine import CONSTANT

from bert_tf.base.console import Console
from bert_tf.base.json_files import read_if_sound
from bert_tf.config.section import build_section
from bert_tf.config.sections import RunnerConfig, ScoreConfig
from bert_tf.engines.registry import ENGINES
from pipeline.jobs import scoring
from pipeline.outputs.job_spec import RunOptions

ENGINES[CONSTANT.name] = CONSTANT
TASK = {"task": "classification", "labels": ["fine"], "columns": {"text": "text", "label": "l"}}
ROWS = ["a", "b", "c", "", "e"]


def score(folder: Path, output: Path, kill_at: int | None = None) -> None:
    """Run the job, and append the texts that the engine is given to `predicted.txt`."""
    replace, predict = Path.replace, constant_engine.ConstantEngine.predict
    renames = 0

    def killing(path: Path, target: Path) -> Path:
        nonlocal renames
        done = replace(path, target)
        renames += 1
        if renames == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    def logging(engine, columns, **options):
        with (folder / "predicted.txt").open("a") as log:
            log.write("".join(f"{text}\n" for text in columns["text"]))
        return predict(engine, columns, **options)

    values = {
        "model": str(folder / "model"),
        "input": [str(folder / "in.csv")],
        "output": str(output),
        "engine": CONSTANT.name,
        "block_rows": 3,
    }
    config = build_section(ScoreConfig, values)
    with (
        mock.patch.object(Path, "replace", killing),
        mock.patch.object(constant_engine.ConstantEngine, "predict", logging),
    ):
        scoring.run(config, RunnerConfig(), RunOptions(console=Console(io.StringIO())))


def in_a_fork(run: Callable[[], None]) -> int:
    """Return the exit code, negative for a signal."""
    child = os.fork()
    if not child:
        try:
            run()
        except BaseException as error:
            sys.stderr.write(f"{error!r}\n")
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def finished_rows(parts: Path) -> list[int]:
    """Rows of each block that a killed run had finished."""
    found = [read_if_sound(path) for path in sorted(parts.glob("*.done.json"))]
    return [done["rows_out"] for done in found if done is not None]


def main(folder: Path) -> None:
    """Print for each kill whether the job was `killed`, the exit `code` of the run after it, the
    files `left`, their content by name, rows `finished` by the first, and texts `predicted` by the
    second."""
    (folder / "model").mkdir()
    (folder / "model" / "constant.txt").write_text("fine 0.75")
    (folder / "model" / "task.json").write_text(json.dumps(TASK))
    rows = "".join(f"{n},{text}\n" for n, text in enumerate(ROWS))
    (folder / "in.csv").write_text(f"n,text\n{rows}")
    score(folder, folder / "first.csv")  # forks inherit what it has loaded
    forget_threads()
    kill_at, killed = 0, True
    while killed:
        kill_at += 1
        place = folder / "out"
        place.mkdir()
        output = place / "scored.csv"
        killed = in_a_fork(partial(score, folder, output, kill_at)) == -signal.SIGKILL
        finished = finished_rows(place / ".scored.csv.parts")
        (folder / "predicted.txt").write_text("")
        code = in_a_fork(partial(score, folder, output))
        report = {
            "killed": killed,
            "code": code,
            "left": {
                path.name: None if path.name.endswith("manifest.json") else path.read_text()
                for path in place.iterdir()
                if path.is_file()
            },
            "folders": [path.name for path in place.iterdir() if path.is_dir()],
            "finished": finished,
            "predicted": (folder / "predicted.txt").read_text().split(),
        }
        sys.stdout.write(f"{json.dumps(report)}\n")
        sys.stdout.flush()
        shutil.rmtree(place)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
