"""The sections of `export` and `import-weights`."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from bert_tf.config.section import Section, option

MAX_POSITIONS = 65_536


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExportConfig(Section):
    """Turns a run into a model that others can load."""

    section_name: ClassVar[str] = "export"

    run: str = option("run directory of finetune or train")
    output: str = option("directory to write")
    format: str = option(
        "what is written: a SavedModel in a HuggingFace folder, that folder alone, a KerasHub "
        "preset, a checkpoint of google-research/bert (TensorFlow 1) or of TF Model Garden "
        "(TensorFlow 2)",
        default="savedmodel",
        choices=("savedmodel", "huggingface", "keras-hub", "google-tf1", "google-tf2"),
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ImportWeightsConfig(Section):
    """Turns other libraries' BERT weights into a model directory."""

    section_name: ClassVar[str] = "import_weights"

    source: str = option(
        "folder of HuggingFace, KerasHub, Google or TF Model Garden weights", positional=True
    )
    output: str = option("model directory to write")
    max_position_embeddings: int | None = option(
        "maximum sequence length of the new model; position embeddings are interpolated (default: "
        "the source's)",
        default=None,
        minimum=1,
        maximum=MAX_POSITIONS,
    )
    vocab: str | None = option(
        "vocabulary that adds tokens after those of the source (default: the source's)",
        default=None,
        common=True,
    )
