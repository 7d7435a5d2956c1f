"""How far a local run is, as the files it leaves on its way tell."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bert_tf.config.console import Console

_SECONDS_BETWEEN_LOOKS = 1.0


@contextmanager
def reporting_progress(
    console: Console, output: Path, spill: Path, *, shards: int
) -> Iterator[None]:
    """Shows, while the body runs, how much was spilled and how many shards are finished.

    Args:
        console: where to show it.
        output: folder of the shards.
        spill: folder of intermediate data; where it does not exist nothing is shown.
        shards: number of shards in the end.
    """
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(_SECONDS_BETWEEN_LOOKS):
            if not spill.is_dir():
                continue
            finished = sum(1 for _ in output.glob("*-of-*.tfrecord*"))
            megabytes = sum(_size(path) for path in spill.iterdir()) / 1e6
            console.progress(
                f"examples: {megabytes:,.0f} MB on the way, {finished} of {shards} shards"
            )

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        stop.set()
        watcher.join()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
