"""Run by test_loop_killed.py in its own process, which it kills: no handler, no `finally`.

    python killed_run.py FOLDER

Pretrains on packed rows in run directory FOLDER/run, with dropout, averaged weights, evaluations,
and a checkpoint every 4 steps. The process dies when half of the tensors of step 8 are written.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

from behavior.packed_task import make_packed_loop

from bert_tf.training import run_files
from bert_tf.training.loop import TrainingLoop


def make_loop(folder: Path) -> TrainingLoop:
    """Return the loop; steps 4 and 8 lie between two lines, and evaluations count themselves."""

    def evaluate(step: int, notes: dict[str, Any]) -> dict[str, float]:
        notes["evaluations"] = notes.get("evaluations", 0) + 1
        return {"evaluations": notes["evaluations"]}

    return make_packed_loop(
        folder,
        run_directory=folder / "run",
        dropout=0.1,
        evaluate=evaluate,
        ema_decay=0.9,
        log_every=3,
        eval_every=3,
        checkpoint_every=4,
    )


def main(folder: str) -> None:
    write_tensors = run_files.save_file

    def write_half_of_the_second(tensors: dict[str, Any], path: Path) -> None:
        write_tensors(tensors, path)
        if "step-00000008" in path.parent.name:
            os.truncate(path, path.stat().st_size // 2)
            os.kill(os.getpid(), signal.SIGKILL)

    run_files.save_file = write_half_of_the_second
    make_loop(Path(folder)).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
