"""Progress, information and warnings for the user, on stderr; results go to stdout elsewhere."""

from __future__ import annotations

import dataclasses
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Self, TextIO

from bert_tf.base.wording import printable, quantity

if TYPE_CHECKING:
    from bert_tf.base.terminal import Terminal


@dataclasses.dataclass(frozen=True)
class Advance:
    """How far some work is.

    Attributes:
        text: in words, as a log shows it.
        fraction: finished part of the work, 0 to 1; None if unknown.
        says_time_left: whether the text says how long the rest takes. If not, a terminal adds an
            estimate by recent speed.
    """

    text: str
    fraction: float | None = None
    says_time_left: bool = False

    @classmethod
    def counted(
        cls, label: str, done: int, total: int, noun: str = "row", plural: str | None = None
    ) -> Self:
        """Return progress that counts things, such as `label: 3 of 10 rows`."""
        return cls(f"{label}: {done:,} of {quantity(total, noun, plural)}", done / max(total, 1))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Closing:
    """Last message of a job.

    Attributes:
        command: name of the command.
        made: (path, meaning) of its outputs.
        counts: (name, number) of interesting counts.
        seconds: time that it took.
        next_command: command to run next; None for none.
    """

    command: str
    made: Sequence[tuple[str, str]]
    counts: Sequence[tuple[str, str]]
    seconds: float
    next_command: str | None


class Console:
    """Prints lines and shows progress: a bar on a terminal, a line every `log_seconds` in a log.

    Args:
        stream: stream for lines; None for stderr.
        log_seconds: least time between two lines of progress in a log.
        quiet: whether to show only warnings.
        journal: receives every line that a log would show, also with `quiet`; None for nothing.
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        log_seconds: float = 15.0,
        *,
        quiet: bool = False,
        journal: Callable[[str], None] | None = None,
    ):
        self.stream = stream if stream is not None else sys.stderr
        self._quiet = quiet
        self._log_seconds = log_seconds
        self._journal = journal
        is_terminal = self.stream.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")
        self._is_live = is_terminal and not quiet
        self._terminal: Terminal | None = None
        self._waiting_line = ""
        self._last_progress_time = -float("inf")  # of the monotonic clock, in seconds
        self._has_shown_progress = False
        self._last_noted_progress = ""

    def info(self, *lines: str) -> None:
        """Print lines."""
        for line in lines:
            self._note(line)
            if not self._quiet:
                self._print(line)

    def warn(self, *lines: str) -> None:
        """Print lines about something that looks wrong but does not stop the job."""
        for line in lines:
            self._note(f"warning: {line}")
            self._print(f"warning: {line}")

    def progress(self, advance: Advance) -> bool:
        """Show progress.

        Returns:
            Whether the line was written to a log (stderr or journal), not drawn on a terminal.
        """
        if self._is_live:
            self._live().show(advance)
        elif self._quiet and self._journal is None:
            return False
        now = time.monotonic()
        is_due = now - self._last_progress_time >= self._log_seconds
        if is_due:
            self._last_progress_time = now
            self._last_noted_progress = advance.text
            self._note(advance.text)
            if not self._is_live and not self._quiet:
                self._print(advance.text)
        self._has_shown_progress = self._has_shown_progress or is_due or self._is_live
        return is_due and not self._is_live

    def end_progress(self, advance: Advance | None) -> None:
        """Remove the bar, and print the final progress if progress was shown and this was not.

        Args:
            advance: the final progress; None if a log already has that line.
        """
        if self._terminal is not None:
            self._terminal.forget()
        if self._has_shown_progress and advance is not None:
            is_noted = self._last_noted_progress == advance.text
            if not is_noted:
                self._note(advance.text)
            if not self._quiet and (self._is_live or not is_noted):
                self._print(advance.text)
        self._has_shown_progress = False
        self._last_noted_progress = ""

    @contextmanager
    def counting(
        self, label: str, total: int, noun: str = "row", plural: str | None = None
    ) -> Iterator[Callable[[int], None]]:
        """Yield a function that adds a number of finished things, and shows the progress.

        The last count is printed at the end of the block if progress was shown, unless the block
        fails.

        Args:
            label: name of the work.
            total: number of things.
            noun, plural: see `quantity`.
        """
        done = 0

        def advance() -> Advance:
            return Advance.counted(label, done, total, noun, plural)

        def add(number: int) -> None:
            nonlocal done
            done += number
            self.progress(advance())

        yield add
        self.end_progress(advance())

    @contextmanager
    def waiting(self, line: str) -> Iterator[None]:
        """Show a line on a terminal during the block; loads no library for it."""
        if self._is_live:
            print(f"\r{line}", end="", file=self.stream, flush=True)
            self._waiting_line = line
        try:
            yield
        finally:
            self._clear_waiting_line()

    @contextmanager
    def working(self, label: str) -> Iterator[None]:
        """Show a label and the elapsed time on a terminal, until `progress` is called."""
        with self._live().working(label) if self._is_live else nullcontext():
            yield

    def close(self, closing: Closing) -> None:
        """Print the output of a job and the next command; as a table on a terminal."""
        made = [f"  {path}  {meaning}" for path, meaning in closing.made]
        if self._is_live:
            for line in made:
                self._note(line)
            self._live().close(closing)
        else:
            self.info(*made)
        if closing.next_command:
            self.info(f"next: {closing.next_command}")

    def _live(self) -> Terminal:
        """Return the terminal; its library is loaded on first use."""
        self._clear_waiting_line()
        if self._terminal is None:
            from bert_tf.base.terminal import Terminal

            self._terminal = Terminal(self.stream)
        return self._terminal

    def _note(self, line: str) -> None:
        if self._journal is not None:
            self._journal(printable(line))

    def _print(self, line: str) -> None:
        self._clear_waiting_line()
        line = printable(line)
        if self._terminal is not None:
            self._terminal.print(line)
        else:
            print(line, file=self.stream, flush=True)

    def _clear_waiting_line(self) -> None:
        if self._waiting_line:
            width = len(self._waiting_line)
            self._waiting_line = ""
            print(f"\r{' ' * width}\r", end="", file=self.stream, flush=True)
