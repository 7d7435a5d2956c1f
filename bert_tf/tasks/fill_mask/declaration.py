"""What can be known of filling masks without TensorFlow: its inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bert_tf.tasks.base.declaration import Fault, PredictionField, ServedTaskDeclaration

MASK = "[MASK]"


def mask_fault(values: Mapping[str, Any]) -> Fault | None:
    """A text without a mask has nothing to fill."""
    return None if MASK in values["text"] else (f"text has no {MASK}", "")


def masked(name: str, text: str) -> str:
    """A text with a mask within it and one at its end."""
    half = len(text) // 2
    return f"{text[:half]}{MASK}{text[half:]} {MASK}"


FILL_MASK = ServedTaskDeclaration(
    name="fill-mask",
    summary=f"the likeliest tokens for every {MASK} of a text",
    inputs=("text",),
    predictions=(
        PredictionField("predicted_text", "text"),
        PredictionField("predicted_score", "probability"),
        PredictionField("predicted_tokens", "json"),
    ),
    implementation="bert_tf.tasks.fill_mask.task:FillMaskTask",
    row_fault=mask_fault,
    trial_value=masked,
)
