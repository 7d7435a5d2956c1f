"""SIGTERM as an exception, so that a command that is told to go tidies up and says how to go on."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Terminated(BaseException):
    """SIGTERM came; like `KeyboardInterrupt` no error, so that nothing on the way handles it."""


@contextmanager
def raising_on_sigterm() -> Iterator[None]:
    """Raises `Terminated` in the main thread at the first SIGTERM inside the block.

    A second one ends the process at once, as if nothing had been set up. Outside the main thread,
    where Python takes no signals, nothing is done.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, before)
        raise Terminated

    before = signal.signal(signal.SIGTERM, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
