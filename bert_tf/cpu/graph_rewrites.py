"""A training step without the rewrites of its graph, which take more time than they save."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import tensorflow as tf

_OFF = "disable_meta_optimizer"


@contextmanager
def without_graph_rewrites() -> Iterator[None]:
    """Functions called inside the block run as they were traced, on processors.

    Grappler searches the thousands of operations of a training step for a second or two. It finds
    nothing there that pays: steps on long rows take as long without it, those on short rows are
    a fifth faster (benchmarks/NOTES.md). What XLA compiles is left to XLA either way.
    """
    options = tf.config.optimizer
    before = bool(options.get_experimental_options().get(_OFF, False))
    if before or tf.config.list_physical_devices("GPU"):
        yield
        return
    options.set_experimental_options({_OFF: True})
    try:
        yield
    finally:
        options.set_experimental_options({_OFF: before})
