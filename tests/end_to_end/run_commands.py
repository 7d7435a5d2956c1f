"""Runs command lines one after the other in one process, as the command line's `main` does.

    python run_commands.py REPORT < COMMANDS 2> LINES

REPORT gets a JSON object per command: its exit code, when it started, in seconds since 1970, what
it wrote to stdout, and which other hosts it asked for. On stderr, each command's lines follow one
of STARTED, and lines of our own console begin with OWN, so that every other line is somebody
else's.
"""

import contextlib
import io
import json
import os
import shlex
import socket
import subprocess
import sys
import time
from pathlib import Path

from bert_tf.base.console import Console
from pipeline.cli.main import main

ROOT = Path(__file__).parents[2]
STARTED = "command: "
OWN = "own: "


def marking(method):
    """Return a method of the console that marks the lines it writes."""

    def marked(self, line, *rest):
        method(self, "\n".join(OWN + part for part in line.split("\n")), *rest)

    return marked


asked: list[str] = []


def note_hosts(event: str, arguments: tuple) -> None:
    """An audit hook that notes all hosts that are looked up or connected to, but for this one."""
    if event in ("socket.connect", "socket.sendto"):
        address = arguments[1]
        host = address[0] if isinstance(address, tuple) else None  # a path is of this machine
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        host = arguments[0]
    else:
        return
    if host not in (None, "", "localhost", "127.0.0.1", "::1", socket.gethostname()):
        asked.append(f"{event} {host}")


def run(command: str) -> dict:
    """Run one command and reports how it ended."""
    started, code = time.time(), None
    asked.clear()
    sys.stderr.write(f"{STARTED}{command}\n")
    with contextlib.redirect_stdout(io.StringIO()) as stdout:
        try:
            main(shlex.split(command))
        except SystemExit as end:
            code = end.code
    return {
        "command": command,
        "code": code,
        "started": started,
        "stdout": stdout.getvalue(),
        "asked": list(asked),
    }


def without_network() -> list[str]:
    """Return a prefix that runs a command where no other host can be reached.

    Nothing where that is not allowed.
    """
    wrapped = ["unshare", "-rn", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    try:
        is_allowed = subprocess.run([*wrapped, "true"], capture_output=True).returncode == 0
    except FileNotFoundError:
        is_allowed = False
    return wrapped if is_allowed else []


def run_commands(folder: Path, commands: list[str]) -> tuple[list[dict], list[list[str]]]:
    """Run commands in one process without the settings of the tests' environment.

    Returns:
        What `run_commands.py` reports of each, and the lines that each wrote to stderr.
    """
    report = folder / "report.jsonl"
    environment = {name: os.environ[name] for name in os.environ if name != "TF_CPP_MIN_LOG_LEVEL"}
    done = subprocess.run(
        [*without_network(), sys.executable, __file__, str(report)],
        input="\n".join(commands),
        cwd=folder,
        env={**environment, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    before, *written = f"\n{done.stderr}".split(f"\n{STARTED}")
    assert before == ""
    reports = [json.loads(line) for line in report.read_text().splitlines()]
    assert [each["command"] for each in reports] == commands
    return reports, [lines.splitlines()[1:] for lines in written]


if __name__ == "__main__":
    sys.addaudithook(note_hosts)
    for name in ("_print",):
        setattr(Console, name, marking(getattr(Console, name)))
    with Path(sys.argv[1]).open("w", encoding="utf-8") as report:
        for line in sys.stdin.read().splitlines():
            report.write(json.dumps(run(line)) + "\n")
