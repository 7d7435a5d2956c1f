"""Writes `tests/golden/artifacts`: outputs of each job by this version, which later ones must read.

Run as `python tests/faults/_make_artifacts.py` from the root of the repository, with a new folder
name for a new version of a format; older folders stay.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:] = [*(path for path in sys.path if path != str(ROOT / "tests" / "faults")), str(ROOT)]
sys.path.append(str(ROOT / "tests"))

from faults.job_chain import JOBS, shared_chain  # noqa: E402

LEFT_OUT = ("*.lock", "job.log", "model", "tensorboard")


def main(name: str = "0.1") -> None:
    chain = shared_chain(JOBS)
    target = ROOT / "tests" / "golden" / "artifacts" / name
    shutil.copytree(chain.work, target, ignore=shutil.ignore_patterns(*LEFT_OUT))
    shutil.rmtree(target / "labels" / "checkpoints")
    for older in sorted((target / "run" / "checkpoints").iterdir())[:-1]:
        shutil.rmtree(older)


if __name__ == "__main__":
    main(*sys.argv[1:])
