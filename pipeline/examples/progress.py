"""How far a local run is, as the files it leaves on its way tell."""

from __future__ import annotations

from pathlib import Path

from bert_tf.config.console import Console
from bert_tf.config.wording import quantity


class ExamplesConsole(Console):
    """Passes everything on to another console, and adds to progress what has been written.

    Args:
        console: the one that shows.
        output: folder of the shards.
        work: folder of intermediate data.
        shards: number of shards in the end.
    """

    def __init__(self, console: Console, output: Path, work: Path, *, shards: int):
        super().__init__()
        self._console = console
        self._output = output
        self._work = work
        self._shards = shards
        self._all_shards = quantity(shards, "shard")

    def say(self, line: str) -> None:
        """Prints a line that stays."""
        self._console.say(line)

    def progress(self, line: str) -> None:
        """Shows how far the work is."""
        megabytes = sum(_size(path) for path in self._work.iterdir()) / 1e6
        finished = sum(1 for _ in self._output.glob("*-of-*.tfrecord*"))
        spilled = f"{megabytes:,.0f} MB of pieces and records, " if megabytes >= 1 else ""
        self._console.progress(f"{line}; {spilled}{finished} of {self._all_shards} finished")

    def end_progress(self, line: str) -> None:
        """Prints how far the work came: all shards are there once the pipeline has run."""
        self._console.end_progress(f"{line}; {self._shards} of {self._all_shards} finished")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # renamed since it was listed
        return 0
