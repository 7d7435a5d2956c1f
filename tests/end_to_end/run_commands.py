"""Runs command lines one after the other in one process, as the command line's `main` does.

    python run_commands.py REPORT < COMMANDS 2> LINES

REPORT gets a JSON object per command: its exit code, when it started, in seconds since 1970, and
what it wrote to stdout. On stderr, each command's lines follow one of STARTED, and lines of our own
console begin with OWN, so that every other line is somebody else's.
"""

import contextlib
import io
import json
import shlex
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


def run(command: str) -> dict:
    """Runs one command and reports how it ended."""
    started, code = time.time(), None
    sys.stderr.write(f"{STARTED}{command}\n")
    with contextlib.redirect_stdout(io.StringIO()) as stdout:
        try:
            main(shlex.split(command))
        except SystemExit as end:
            code = end.code
    return {"command": command, "code": code, "started": started, "stdout": stdout.getvalue()}


if __name__ == "__main__":
    for name in ("_print",):
        setattr(Console, name, marking(getattr(Console, name)))
    with Path(sys.argv[1]).open("w", encoding="utf-8") as report:
        for line in sys.stdin.read().splitlines():
            report.write(json.dumps(run(line)) + "\n")
