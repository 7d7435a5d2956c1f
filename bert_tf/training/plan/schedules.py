"""Learning-rate schedules as pure functions of the progress of a run."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Schedule = Callable[[np.ndarray], np.ndarray]

POLYNOMIAL_POWER = 0.5


def make_schedule(
    name: str, *, peak: float, warmup_fraction: float, cooldown_fraction: float = 0.0
) -> Schedule:
    """Linear warm-up to `peak`, then a decay.

    The schedules are HuggingFace's (`transformers/optimization.py`, `get_linear_schedule_with_
    warmup` and its neighbors) written over progress = step / total steps, so that one function
    serves runs limited by steps and by time. Step 0 has rate 0 where there is a warm-up.

    Args:
        name: "linear" to 0; "constant"; "cosine", half a period, to 0; "polynomial" to 0 with
            power 0.5, as NVIDIA's LAMB recipe for BERT; "trapezoidal", constant and then linear to
            0 (warm-up, stable, decay).
        peak: the rate at the end of the warm-up.
        warmup_fraction: fraction of the run spent on warm-up, 0 to 1.
        cooldown_fraction: fraction of the run of the trapezoidal schedule's decay, 0 to 1; no more
            than what the warm-up leaves is used.

    Returns:
        A function from progress, float [n] from 0 to 1, to learning rates, float64 [n].
    """
    rest = max(1.0 - warmup_fraction, 1e-12)
    decay = _trapezoid(cooldown_fraction / rest) if name == "trapezoidal" else _DECAYS[name]

    def schedule(progress: np.ndarray) -> np.ndarray:
        progress = np.clip(np.asarray(progress, dtype=np.float64), 0.0, 1.0)
        decayed = decay((progress - warmup_fraction) / rest)
        if warmup_fraction == 0.0:
            return peak * decayed
        return peak * np.where(progress < warmup_fraction, progress / warmup_fraction, decayed)

    return schedule


def _trapezoid(cooldown: float) -> Schedule:
    """1, then linear to 0 over the last `cooldown`, of which 1 is all there is."""
    if cooldown == 0.0:
        return _DECAYS["constant"]
    return lambda done: np.clip((1.0 - done) / min(cooldown, 1.0), 0.0, 1.0)


_DECAYS: dict[str, Schedule] = {
    "linear": lambda done: np.clip(1.0 - done, 0.0, 1.0),
    "constant": lambda done: np.ones_like(done),
    "cosine": lambda done: 0.5 * (1.0 + np.cos(np.pi * np.clip(done, 0.0, 1.0))),
    "polynomial": lambda done: np.clip(1.0 - done, 0.0, 1.0) ** POLYNOMIAL_POWER,
}
