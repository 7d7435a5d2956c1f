"""What the options of a fine-tuning ask for of a teacher."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True)
class Teaching:
    """A model whose predictions are learned, and how (Hinton et al. 2015).

    Attributes:
        teacher: its run or model directory.
        unlabeled: rows that are learned from it alone; None without any.
        weight: fraction of the loss that is the distance to its predictions.
        temperature: what the logits of both are divided by; 1 where they are no log odds.
    """

    teacher: str
    unlabeled: str | None
    weight: float
    temperature: float
