"""Ending a run whose evaluations get no better."""

from __future__ import annotations

from typing import Any

IMPROVED = "improved_at"
"""The note of the step of the last improvement, where that is not the step of the best model."""

_NOTE = "evaluations_since_best"


class EarlyStop:
    """Counts evaluations since the last that improved, in the notes that checkpoints keep.

    A model whose metric is perfect already and whose loss falls on is no improvement.

    Args:
        evaluations: so many without a better one end the run; 0 never does.
    """

    def __init__(self, evaluations: int):
        self._limit = evaluations

    def count(self, step: int, notes: dict[str, Any]) -> None:
        """Takes note of an evaluation after `step` steps; `notes["best"]` is up to date."""
        if self._limit:
            notes[_NOTE] = 0 if _improved_at(notes) == step else notes.get(_NOTE, 0) + 1

    def reason(self, notes: dict[str, Any]) -> str | None:
        """Why the run ends now; None if it does not."""
        if not self._limit or notes.get(_NOTE, 0) < self._limit:
            return None
        return f"no better evaluation in {self._limit} since step {_improved_at(notes)}"


def _improved_at(notes: dict[str, Any]) -> int:
    return int(notes.get(IMPROVED, notes["best"]["step"]))
