"""A side of a benchmark: a process of its own that works when it is its turn.

Protocol: the process prints "ready" after compiling; then each line on stdin is a turn, which may
name the work, and it answers with a line of JSON. Everything else it prints is skipped.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from statistics import median

import numpy as np


def take_turns(score: Callable[[list[str]], np.ndarray], texts: list[str]) -> None:
    """Score texts as a process of a side: compile with some of them, then score all in each turn.

    Args:
        score: texts to probabilities [texts, labels].
        texts: the same in every turn.
    """
    score(texts[:256])
    print("ready", flush=True)
    for _ in sys.stdin:
        wall, processor = time.perf_counter(), time.process_time()
        found = score(texts)
        answer = {
            "seconds": time.perf_counter() - wall,
            "processor_seconds": time.process_time() - processor,
            "probabilities": np.asarray(found, np.float64).round(6).tolist(),
        }
        print(json.dumps(answer), flush=True)


class Side:
    """A process that takes turns with others.

    Args:
        name: for messages.
        command: that starts it.
        environment: of the process; None for this one's.
    """

    def __init__(self, name: str, command: list[str], environment: dict[str, str] | None = None):
        self.name = name
        self.answers: dict[str, list[dict[str, float]]] = defaultdict(list)
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        assert process.stdin is not None and process.stdout is not None
        self._process, self._requests, self._lines = process, process.stdin, process.stdout

    def wait_until_ready(self) -> None:
        if self._read() != "ready":
            raise SystemExit(f"{self.name}: did not start; its message is above")

    def take_turn(self, request: str = "") -> None:
        """Lets the process work and keeps its answer under the request."""
        self._requests.write(f"{request}\n")
        self._requests.flush()
        self.answers[request].append(json.loads(self._read()))

    def close(self) -> None:
        self._requests.close()
        self._process.wait()

    def stop(self) -> None:
        """End the process at once, also in the middle of a turn."""
        self._process.kill()
        self._process.wait()

    def median(self, key: str, request: str = "") -> float:
        return median(answer[key] for answer in self.answers[request])

    def _read(self) -> str:
        while line := self._lines.readline():
            if line == "ready\n" or line.startswith("{"):
                return line.strip()
        raise SystemExit(f"{self.name}: ended early; its message is above")
