"""Commands in forks of one process that has imported everything, with faults at system calls.

TensorFlow, Beam and Keras take seconds to import, a small job a tenth of that. So a server imports
them once, starts none of them, and forks a process group for each command. A shim (`_shim.c`),
preloaded, counts the calls that change files below a folder, and kills or fails the k-th.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).parents[2]
COMPILER = shutil.which("cc")  # nothing here runs without


@dataclasses.dataclass(frozen=True, kw_only=True)
class Fault:
    """The fault that befalls a command; none by default."""

    kill_after: float = 0.0  # seconds
    kill_at: int = 0  # number of the call that changes a file
    fail_at: int = 0  # calls that write or make files fail from this one on, with `errno`
    errno: int = 0
    clock: int = 0  # seed of jumps of the clock; 0 for none
    # Python code that runs in the process first
    patch: str = ""
    user: int = 0  # whose rights the process gets; 0 for those it has
    journal: str = ""  # folder for the journal of calls


@dataclasses.dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int  # negative: a signal
    stdout: str
    stderr: str
    seconds: float
    calls: int  # that changed files, of this process and its forks

    @property
    def is_killed(self) -> bool:
        return self.code == -9

    def says_one_line(self) -> str:
        """The error, which must be one line without a traceback, after any progress and notes."""
        errors = [line for line in self.stderr.splitlines() if line.startswith("error: ")]
        if self.code not in (1, 2) or len(errors) != 1 or "Traceback" in self.stderr:
            raise AssertionError(f"exit code {self.code}, stderr: {self.stderr}")
        if "unexpected" in errors[0]:
            raise AssertionError(errors[0])
        return errors[0].removeprefix("error: ")

    def succeeded(self) -> Self:
        if self.code:
            raise AssertionError(f"exit code {self.code}, stderr: {self.stderr[-3000:]}")
        return self


class JobForks:
    """A server of forks; a context manager.

    Args:
        folder: of the jobs; calls on files below `folder / "work"` are counted.
    """

    def __init__(self, folder: Path):
        self.work = folder / "work"
        self.work.mkdir(parents=True)
        shim = folder / "shim.so"
        source = str(Path(__file__).with_name("_shim.c"))
        assert COMPILER is not None
        subprocess.run(
            [COMPILER, "-O1", "-shared", "-fPIC", "-o", shim, source, "-ldl"], check=True
        )
        environment = {
            **os.environ,
            "LD_PRELOAD": str(shim),
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")]),
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "KERAS_BACKEND": "tensorflow",
            "GRPC_VERBOSITY": "ERROR",
        }
        self._server = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("_fork_server.py")), str(self.work)],
            env=environment,
            cwd=self.work,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stdin.close()
        self._server.stdout.close()
        self._server.wait()

    def run(self, *commands: str, fault: Fault | None = None, timeout: float = 240.0) -> Any:
        """Run commands side by side in the work folder; the fault befalls the first.

        Returns:
            The end of one command, or a list of those of several.
        """
        faults = [fault or Fault(), *(Fault() for _ in commands[1:])]
        request = {
            "commands": commands,
            "faults": [dataclasses.asdict(each) for each in faults],
            "timeout": timeout,
        }
        self._server.stdin.write(f"{json.dumps(request)}\n")
        self._server.stdin.flush()
        ends = [Ended(**each) for each in json.loads(self._server.stdout.readline())]
        return ends if len(ends) > 1 else ends[0]
