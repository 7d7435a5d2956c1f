"""Options, inputs and outputs of filling masks, without TensorFlow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from bert_tf.base.errors import Fault
from bert_tf.config.section import option, optional
from bert_tf.config.sections.models import ExportConfig
from bert_tf.config.values import Bounds
from bert_tf.tasks.base.declaration import PredictionField, PretrainedTaskDeclaration

MASK = "[MASK]"


class FillMaskConfig(ExportConfig):
    """Exports a pretrained model that fills masks."""

    top_k: Annotated[int, Bounds(1, 1000)] = option(
        "candidates per masked token, from the whole vocabulary or --candidates", 5
    )
    candidates: str | None = optional(
        "file of words to choose from, one per line, each of one or several tokens (default: the "
        "entries of the vocabulary)",
        reads="file",
    )

    @property
    def more_inputs(self) -> dict[str, str | None]:
        return {"candidates": self.candidates}


def mask_fault(values: Mapping[str, Any]) -> Fault | None:
    """Return reason and detail if a row's text has no mask; None if it has one."""
    return None if MASK in values["text"] else (f"text has no {MASK}", "")


def masked(name: str, text: str) -> str:
    """Return a text with a mask within it and one at its end, see `trial_value`."""
    half = len(text) // 2
    return f"{text[:half]}{MASK}{text[half:]} {MASK}"


FILL_MASK = PretrainedTaskDeclaration(
    name="fill-mask",
    summary=f"the most likely tokens for every {MASK} of a text",
    options=FillMaskConfig,
    example="bert-pipeline export --run bert --task fill-mask --output filler",
    inputs=("text",),
    predictions=(
        PredictionField("predicted_text", "text"),
        PredictionField("predicted_score", "probability"),
        PredictionField("predicted_tokens", "json"),
    ),
    implementation="bert_tf.tasks.fill_mask.task:FillMaskTask",
    host="bert_tf.tasks.fill_mask.host:FillMaskHost",
    row_fault=mask_fault,
    trial_value=masked,
)
