"""The terminal view of a job: a progress bar, then a table."""

from __future__ import annotations

import atexit
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from rich import box
from rich.console import Console as RichConsole
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TaskProgressColumn,
    TextColumn,
)
from rich.table import Column, Table
from rich.text import Text

from bert_tf.base.wording import printable, shown_duration

if TYPE_CHECKING:
    from bert_tf.base.console import Advance, Closing

_FRAMES_PER_SECOND = 4
_LEAST_SECONDS = 2.0  # an estimate of the time left is too uncertain before


def _text(value: str) -> Text:
    """Return a text without markup and control characters, such as those of a file's name."""
    return Text(printable(value))


class _TimeColumn(ProgressColumn):
    def render(self, task: Task) -> Text:
        if task.total is None:
            return Text(shown_duration(task.elapsed or 0))
        left = task.time_remaining
        is_known = left is not None and (task.elapsed or 0) >= _LEAST_SECONDS
        if task.fields["says_time_left"] or not is_known:
            return Text("")
        return Text(f"{shown_duration(left or 0)} left")


class Terminal:
    """A bar at the bottom of a terminal, with lines above it.

    Args:
        stream: stream of the terminal.
        clock: returns seconds.
    """

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._rich = RichConsole(file=stream, highlight=False, markup=False, emoji=False)
        self._labels: list[str] = []
        self._bars: Progress | None = None
        self._task = TaskID(0)
        atexit.register(self._stop)  # the cursor is hidden while a bar is shown

    def print(self, line: str) -> None:
        """Print a line above the bar, unbroken, so that it can be copied."""
        self._rich.print(line, soft_wrap=True)

    def show(self, advance: Advance) -> None:
        """Show progress in the bar.

        A fraction that falls, or an end that becomes known or unknown, is other work: it begins a
        new bar, so that speeds are not mixed.
        """
        total = None if advance.fraction is None else 1.0
        completed = advance.fraction or 0.0
        now = None if self._bars is None else self._bars.tasks[-1]
        if now is None or now.total != total or now.completed > completed:
            self._begin(advance.text, total)
        assert self._bars is not None
        self._bars.update(
            self._task,
            description=printable(advance.text),
            completed=completed,
            says_time_left=advance.says_time_left,
        )

    def forget(self) -> None:
        """Remove the bar; while work continues, its label remains."""
        if self._labels:
            self._begin(self._labels[-1])
        else:
            self._stop()

    @contextmanager
    def working(self, label: str) -> Iterator[None]:
        """Show a label until the block reports progress."""
        self._labels.append(label)
        self._begin(label)
        try:
            yield
        finally:
            self._labels.pop()
            self.forget()

    def close(self, closing: Closing) -> None:
        """Print the table at the end of a job."""
        self._stop()
        table = Table(
            box=box.SIMPLE_HEAD,
            show_edge=False,
            pad_edge=False,
            title=f"{closing.command}: done in {shown_duration(closing.seconds)}",
            title_justify="left",
            title_style="bold",
        )
        table.add_column("made", overflow="fold")
        table.add_column("meaning", overflow="fold")
        for path, meaning in closing.made:
            table.add_row(_text(path), _text(meaning))
        self._rich.print(table)
        if closing.counts:
            counts = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
            counts.add_column(style="dim")
            counts.add_column(justify="right")
            for name, number in closing.counts:
                counts.add_row(_text(name), _text(number))
            self._rich.print(counts)

    def _begin(self, text: str, total: float | None = None) -> None:
        text = printable(text)
        if self._bars is None:
            self._bars = self._new_bars()
            self._task = self._bars.add_task(text, total=total, says_time_left=False)
            self._bars.start()
            return
        before = self._task
        self._task = self._bars.add_task(text, total=total, says_time_left=False)
        self._bars.remove_task(before)

    def _new_bars(self) -> Progress:
        return Progress(
            SpinnerColumn(),
            BarColumn(bar_width=20),
            TaskProgressColumn("{task.percentage:3.0f}%", style="none", markup=False),
            TextColumn(
                "{task.description}",
                markup=False,
                table_column=Column(no_wrap=True, overflow="ellipsis"),
            ),
            _TimeColumn(),
            console=self._rich,
            get_time=self._clock,
            refresh_per_second=_FRAMES_PER_SECOND,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def _stop(self) -> None:
        if self._bars is not None:
            self._bars.stop()
            self._bars = None
