"""Signals as exceptions, so that a command tidies up and reports how to resume."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Terminated(BaseException):
    """SIGTERM came; like `KeyboardInterrupt` no error, so that nothing on the way handles it."""


@contextmanager
def raising_on_signals() -> Iterator[None]:
    """Raises `Terminated` at the first SIGTERM inside the block, `KeyboardInterrupt` at Ctrl-C.

    A second signal acts as if nothing had been set up: SIGTERM ends the process at once. Outside
    the main thread, where Python takes no signals, nothing is done.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def handle(number: int, frame: FrameType | None) -> None:
        restore()
        # With an argument: Beam names its step there, and replaces exceptions that have none.
        raise (Terminated if number == signal.SIGTERM else KeyboardInterrupt)("stopped")

    for number in before:
        signal.signal(number, handle)
    try:
        yield
    finally:
        restore()
