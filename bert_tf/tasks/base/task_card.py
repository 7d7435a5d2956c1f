"""What a model card says of the task: each task fills one in, so that no card knows the tasks."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

_KERAS_HUB_ENCODER = "BertBackbone"
PRETRAINING_METRIC_TYPES = dict.fromkeys(
    ("mlm_accuracy", "nsp_accuracy", "sop_accuracy"), "accuracy"
)
"""`TaskCard.metric_types` of what a pretraining run measures."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskCard:
    """The part of a model card that follows from what the model is for.

    Attributes:
        title: the card's heading.
        facts: what goes in and comes out, an item of a list each.
        example: a row for the exported model: a text, or a list of texts, by input name.
        signature_output: name of the output to look at first.
        transformers_class: the class of HuggingFace's library that loads the model.
        pipeline_tag: the Hub's name of what the model is for.
        metric_types: ids by which the Hub knows metrics that metrics.json has under other names.
        keras_hub_class: that of KerasHub.
        google_script: the script of google-research/bert that loads the model; None where none has
            its head.
        script_reads_text: whether that script needs the vocabulary.
        limits: what to do before relying on the model.
    """

    title: str
    facts: tuple[str, ...] = ()
    example: Mapping[str, Any]
    signature_output: str
    transformers_class: str
    pipeline_tag: str
    metric_types: Mapping[str, str] = dataclasses.field(default_factory=dict)
    keras_hub_class: str = _KERAS_HUB_ENCODER
    google_script: str | None = None
    script_reads_text: bool = True
    limits: str = (
        "The model is as good as its data: measure it on rows of your own with "
        "`bert-pipeline evaluate` before relying on it."
    )

    @property
    def signature_call(self) -> str:
        """The arguments that the exported model's signature takes the example by, in Python."""
        rows = {
            name: json.dumps([value], ensure_ascii=False) for name, value in self.example.items()
        }
        return ", ".join(f"{name}=tf.constant({row})" for name, row in rows.items())

    @property
    def is_keras_hub_task(self) -> bool:
        """Whether KerasHub has the task, head and preprocessing included, not the encoder alone."""
        return self.keras_hub_class != _KERAS_HUB_ENCODER
