"""The sections of `export` and `import-weights`."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from bert_tf.config.section import Section, option
from bert_tf.config.sections.embedding import POOLINGS
from bert_tf.export.formats.registry import DEFAULT_FORMAT, FORMATS
from bert_tf.tasks.pretrained import PRETRAINED_TASKS

MAX_POSITIONS = 65_536


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExportConfig(Section):
    """Turns a run into a model that others can load."""

    section_name: ClassVar[str] = "export"

    run: str = option("run directory of finetune or train")
    output: str = option("directory to write")
    format: str = option(
        "format to write: " + ", ".join(entry.title for entry in FORMATS.values()),
        default=DEFAULT_FORMAT,
        choices=FORMATS.keys(),
    )
    task: str | None = option(
        "task that a pretrained model does without fine-tuning; needs its pretraining head "
        "(default: the one it was fine-tuned for; a pretrained model gives vectors)",
        default=None,
        choices=PRETRAINED_TASKS.keys(),
    )
    pooling: str | None = option(
        "tokens to the vector of a text, for formats that state it (default: the model's, "
        "otherwise mean)",
        default=None,
        choices=POOLINGS,
    )
    normalize: bool | None = option(
        "whether such vectors are divided by their Euclidean norm (default: the model's, "
        "otherwise no)",
        default=None,
    )

    def faults(self) -> list[str]:
        """Refuses a pooling for a format without one."""
        faults = super().faults()
        for key in ("pooling", "normalize"):
            if getattr(self, key) is not None and not FORMATS[self.format].has_pooling:
                able = [name for name, entry in FORMATS.items() if entry.has_pooling]
                faults.append(
                    f"{key}: has no meaning for --format {self.format}; it is for {', '.join(able)}"
                )
        return faults


@dataclasses.dataclass(frozen=True, kw_only=True)
class ImportWeightsConfig(Section):
    """Turns other libraries' BERT weights into a model directory."""

    section_name: ClassVar[str] = "import_weights"

    source: str = option(
        "folder with HuggingFace, KerasHub, Google or TF Model Garden weights", positional=True
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
        "vocabulary that appends new tokens to the source's (default: the source's)",
        default=None,
        common=True,
    )
