"""Asking a running loop to stop: SIGTERM (machines being taken away) and Ctrl-C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


@contextmanager
def on_stop_signal(stop: Callable[[signal.Signals], None]) -> Iterator[None]:
    """Calls `stop` with the signal at the first SIGTERM or SIGINT inside the block.

    A second SIGTERM ends the process at once, a second SIGINT acts as if nothing had been set up.
    Outside the main thread, where Python takes no signals, nothing is done.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: dict[signal.Signals, Any] = {}

    def handle(number: int, frame: FrameType | None) -> None:
        for signal_number, handler in before.items():
            signal.signal(signal_number, handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        stop(signal.Signals(number))

    for signal_number in (signal.SIGTERM, signal.SIGINT):
        before[signal_number] = signal.signal(signal_number, handle)
    try:
        yield
    finally:
        for signal_number, handler in before.items():
            signal.signal(signal_number, handler)
