"""Programs in processes of their own, for which Python and TensorFlow start only once."""

from __future__ import annotations

import subprocess
import sys

_FORKS = """
import os, sys, traceback
import tensorflow  # imported, which takes seconds, and not started

for program in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        try:
            exec(program, {})
            sys.stdout.flush()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        sys.exit(1)
    print(end="\\f", flush=True)
"""


def printed_in_forks(*programs: str, **options: object) -> list[str]:
    """Runs each program in a fork of a process that has imported TensorFlow; all must succeed.

    Args:
        options: for `subprocess.run`, such as `env`.

    Returns:
        What each program printed, without blanks at its ends.
    """
    done = subprocess.run(
        [sys.executable, "-c", _FORKS, *programs], capture_output=True, text=True, **options
    )
    assert done.returncode == 0, done.stderr
    return [each.strip() for each in done.stdout.split("\f")[:-1]]
