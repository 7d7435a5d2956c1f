"""Which model of a run `best/` holds, and why."""

from __future__ import annotations

import dataclasses
from typing import Any, Self


@dataclasses.dataclass(frozen=True, kw_only=True)
class BestModel:
    """The model in `best/`.

    Attributes:
        step: updates it was made by.
        epoch: passes over the training rows it was made by, None where nobody counts in epochs.
        phase: of a run of several, from 1; the metric is compared within it.
        metric: the name of what chose it; None where nothing is evaluated and it is the last model.
        value: of the metric.
    """

    step: int
    epoch: float | None = None
    phase: int | None = None
    metric: str | None = None
    value: float | None = None

    @classmethod
    def of_notes(
        cls, best: dict[str, Any], *, metric: str, updates_per_epoch: int | None = None
    ) -> Self:
        """Reads the notes of a training loop.

        Args:
            best: `notes["best"]`.
            metric: what models are chosen by where it is known.
            updates_per_epoch: None leaves epochs out.
        """
        return cls(
            step=best["step"],
            epoch=round(best["step"] / updates_per_epoch, 4) if updates_per_epoch else None,
            phase=best.get("phase"),
            metric=metric if metric in best else None,
            value=best.get(metric),
        )

    def __str__(self) -> str:
        of_phase = f" of phase {self.phase}" if self.phase else ""
        if self.metric is None:
            last = f"epoch (step {self.step})" if self.epoch else f"step ({self.step})"
            return (
                f"the model of the last {last}{of_phase}; nothing was evaluated to choose another"
            )
        place = f"step {self.step}"
        if self.epoch:
            place = f"epoch {self.epoch:g} ({place})"
        extreme = "lowest" if self.metric.endswith("loss") else "highest"
        return f"the model of {place}{of_phase}, with the {extreme} {self.metric}: {self.value:.4f}"
