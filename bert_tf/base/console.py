"""Progress, information and warnings for the user, on stderr; results go to stdout elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO


class Console:
    """Prints lines and shows one live progress line.

    On a terminal the progress line is rewritten in place; in a log it is printed at most every
    `log_seconds`, and once more at the end.

    Args:
        stream: where lines go; stderr by default.
        log_seconds: between two lines of progress in a log.
        quiet: show warnings alone.
    """

    def __init__(
        self, stream: TextIO | None = None, log_seconds: float = 15.0, *, quiet: bool = False
    ):
        self._stream = stream if stream is not None else sys.stderr
        self._quiet = quiet
        self._log_seconds = log_seconds
        self._is_terminal = self._stream.isatty()
        self._live_width = 0
        self._last_progress = -float("inf")
        self._last_line: str | None = None

    def info(self, line: str) -> None:
        """Prints a line that stays."""
        if not self._quiet:
            self._print(line)

    def warn(self, line: str) -> None:
        """Prints a line about something that looks wrong but does not stop the job."""
        self._print(f"warning: {line}")

    def progress(self, line: str) -> None:
        """Shows how far the work is."""
        if self._quiet:
            return
        now = time.monotonic()
        if self._is_terminal:
            if now - self._last_progress < 0.1:
                return
            self._show_live_line(line)
        elif now - self._last_progress < self._log_seconds:
            return
        else:
            print(line, file=self._stream, flush=True)
        self._last_progress = now
        self._last_line = line

    @contextmanager
    def waiting(self, line: str) -> Iterator[None]:
        """Shows on a terminal what is being waited for, and takes it away at the end."""
        if self._is_terminal and not self._quiet:
            self._show_live_line(line)
        try:
            yield
        finally:
            self._clear_live_line()

    def end_progress(self, line: str) -> None:
        """Prints the final progress if it was not shown yet.

        Args:
            line: what `progress` would show now.
        """
        if self._last_line not in (None, line):
            self.info(line)
        self._last_line = None

    def _print(self, line: str) -> None:
        self._clear_live_line()
        print(line, file=self._stream, flush=True)

    def _show_live_line(self, line: str) -> None:
        padding = " " * max(0, self._live_width - len(line))
        print(f"\r{line}{padding}", end="", file=self._stream, flush=True)
        self._live_width = len(line)

    def _clear_live_line(self) -> None:
        if self._live_width:
            print(f"\r{' ' * self._live_width}\r", end="", file=self._stream, flush=True)
            self._live_width = 0
