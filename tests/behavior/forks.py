"""Programs in processes of their own, in which nothing has to be imported again.

TensorFlow, Keras and Beam take five seconds to import, and no thread of TensorFlow survives a fork.
So a server is forked when all tests are collected and TensorFlow has not started, and forks once
more for each program.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from subprocess import CompletedProcess, TimeoutExpired
from typing import Any, NoReturn

_END_WITH_PARENT = 1  # PR_SET_PDEATHSIG of prctl(2)
_listener: Listener | None = None


class Fork:
    """A program that runs: a path, or code; its streams go to files.

    Args:
        program: the path of a script, or code.
        arguments: of the program.
        env: changes of the environment of the tests; PYTHONPATH is heeded.
    """

    def __init__(self, program: Path | str, *arguments: object, env: dict[str, str] | None = None):
        assert _listener is not None, "no server was started after the collection"
        self.returncode: int | None = None
        self._written = "", ""
        self._folder = Path(tempfile.mkdtemp())
        self._streams = [self._folder / name for name in ("stdout", "stderr")]
        self._connection = Client(_listener.address)
        self._connection.send(
            {
                "program": program,
                "arguments": [str(program), *map(str, arguments)],
                "environment": {**os.environ, **(env or {})},
                "folder": Path.cwd(),
                "streams": self._streams,
            }
        )
        self.pid: int = self._connection.recv()

    def communicate(self, timeout: float = 900.0) -> tuple[str, str]:
        """Wait for the end, and return stdout and stderr."""
        if self.returncode is None:
            if not self._connection.poll(timeout):
                raise TimeoutExpired(str(self.pid), timeout)
            self.returncode = self._connection.recv()
            out, err = (stream.read_text(errors="replace") for stream in self._streams)
            self._written = out, err
            shutil.rmtree(self._folder)
        return self._written

    def said(self) -> str:
        """Return stderr so far."""
        return self._streams[1].read_text(errors="replace") if self._streams[1].exists() else ""

    def is_running(self) -> bool:
        return self.returncode is None and not self._connection.poll()

    def kill(self) -> None:
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self.communicate()


def run_forked(program: Path | str, *arguments: object, **options: Any) -> CompletedProcess[str]:
    """Run a program to its end; see `Fork`."""
    fork = Fork(program, *arguments, **options)
    out, err = fork.communicate()
    assert fork.returncode is not None
    return CompletedProcess([str(program)], fork.returncode, out, err)


def printed_in_forks(*programs: str, **options: Any) -> list[str]:
    """Run each program; all must succeed.

    Returns:
        What each program printed, without blanks at its ends.
    """
    printed = []
    for program in programs:
        done = run_forked(program, **options)
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout.strip())
    return printed


def serve_forks() -> Callable[[], None]:
    """Serve forks of this process, as it is now, to itself and to its children.

    Returns:
        What ends the server, and all that it runs.
    """
    global _listener
    _listener = Listener(family="AF_UNIX")
    server = os.fork()
    if not server:
        _serve(_listener)

    def stop() -> None:
        os.killpg(server, signal.SIGKILL)
        os.waitpid(server, 0)

    return stop


def _serve(listener: Listener) -> NoReturn:
    os.setsid()
    ctypes.CDLL(None).prctl(_END_WITH_PARENT, signal.SIGKILL)
    signal.signal(signal.SIGCHLD, _reap)
    while True:
        connection = listener.accept()
        if not os.fork():
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _answer(connection)
        connection.close()


def _reap(*_: object) -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _answer(connection: Connection) -> NoReturn:
    request = connection.recv()
    child = os.fork()
    if not child:
        connection.close()
        _run(**request)
    connection.send(child)
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(BrokenPipeError):  # a test that did not wait
        connection.send(os.waitstatus_to_exitcode(status))
    os._exit(0)


def _run(
    *,
    program: Path | str,
    arguments: list[str],
    environment: dict[str, str],
    folder: Path,
    streams: list[Path],
) -> NoReturn:
    code = 1
    try:
        for target, path in enumerate(streams, 1):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), target)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
        warnings.resetwarnings()  # which are errors of tests
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = arguments
        sys.path[:0] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
        text = program.read_text() if isinstance(program, Path) else program
        try:
            exec(compile(text, arguments[0] if isinstance(program, Path) else "<program>", "exec"),
                 {"__name__": "__main__", "__file__": arguments[0]})  # fmt: skip
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
    sys.stderr.flush()
    os._exit(code)
