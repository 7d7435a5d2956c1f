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
import shlex
import socket
import sys
import time
from pathlib import Path

from bert_tf.base.console import Console
from pipeline.cli.main import main

STARTED = "command: "
OWN = "own: "


def marking(method):
    """A method of the console that marks the lines it writes."""

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
    """Runs one command and reports how it ended."""
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


if __name__ == "__main__":
    sys.addaudithook(note_hosts)
    for name in ("_print",):
        setattr(Console, name, marking(getattr(Console, name)))
    with Path(sys.argv[1]).open("w", encoding="utf-8") as report:
        for line in sys.stdin.read().splitlines():
            report.write(json.dumps(run(line)) + "\n")
