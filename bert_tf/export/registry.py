"""Formats of exported models by their names on the command line; imported when used."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from bert_tf.config.registries import Format, by_name

if TYPE_CHECKING:
    from bert_tf.export.loading import ModelFormat
    from bert_tf.tasks.base.declaration import TaskCard


@dataclasses.dataclass(frozen=True, kw_only=True)
class FormatEntry(Format):
    """A format, which is imported when it is used.

    Attributes:
        implementation: `module:class` of its `ModelFormat`.
        model_file: a folder with this file and `config_file` has this format.
        config_file: see `model_file`.
        library_name: the Hub's name of the library; None if it knows none.
        tags: tags of the model card.
        keeps_head: returns whether the format keeps the head of a task.
        encoder_pipeline_tag: the Hub's task of a model without its head.
    """

    request: ClassVar[str] = "--format {}"

    implementation: str
    model_file: str
    config_file: str = "config.json"
    library_name: str | None = None
    tags: tuple[str, ...] = ()
    keeps_head: Callable[[TaskCard], bool] = lambda card: True
    encoder_pipeline_tag: str = "feature-extraction"

    @property
    def extra(self) -> str:
        return self.packages[0] if self.packages else ""

    def load(self, **options: Any) -> ModelFormat:
        """Import the format.

        Args:
            **options: fields of the format.

        Raises:
            UsageError: a package is missing.
        """
        self.check_installed()
        module, _, name = self.implementation.partition(":")
        model_format: ModelFormat = getattr(importlib.import_module(module), name)(**options)
        return model_format


# The first is the default. A folder that has the files of several formats is of the first of them.
FORMATS: dict[str, FormatEntry] = by_name(
    FormatEntry(
        name="savedmodel",
        implementation="bert_tf.export.saved_model:SavedModelFormat",
        title="SavedModel in a HuggingFace folder",
        model_file="saved_model.pb",
        options=("layout", "inputs"),
        library_name="transformers",
        tags=("tensorflow", "saved-model"),
    ),
    FormatEntry(
        name="onnx",
        implementation="bert_tf.export.graphs:OnnxFormat",
        title="ONNX graph in a HuggingFace folder",
        model_file="model.onnx",
        packages=("onnx",),
        quantizer="onnxruntime",
        library_name="transformers",
        tags=("onnx",),
    ),
    FormatEntry(
        name="openvino",
        implementation="bert_tf.export.graphs:OpenVinoFormat",
        title="OpenVINO model in a HuggingFace folder",
        model_file="openvino_model.xml",
        packages=("openvino", "onnx"),
        quantizer="nncf",
        library_name="transformers",
        tags=("openvino",),
    ),
    FormatEntry(
        name="keras-hub",
        implementation="bert_tf.export.libraries:KerasHubFormat",
        title="KerasHub preset",
        model_file="model.weights.h5",
        library_name="keras-hub",
        tags=("keras",),
        keeps_head=lambda card: card.is_keras_hub_task,
    ),
    FormatEntry(
        name="sentence-transformers",
        implementation="bert_tf.export.libraries:SentenceTransformersFormat",
        title="sentence-transformers folder",
        model_file="modules.json",
        has_pooling=True,
        library_name="sentence-transformers",
        tags=("sentence-transformers", "feature-extraction", "sentence-similarity"),
        keeps_head=lambda card: False,
        encoder_pipeline_tag="sentence-similarity",
    ),
    FormatEntry(
        name="huggingface",
        implementation="bert_tf.export.libraries:HuggingFaceFormat",
        title="HuggingFace folder",
        model_file="model.safetensors",
        library_name="transformers",
    ),
    FormatEntry(
        name="google-tf1",
        implementation="bert_tf.export.libraries:GoogleFormat",
        title="checkpoint of google-research/bert (TensorFlow 1)",
        config_file="bert_config.json",
        model_file="bert_model.ckpt.index",
        tags=("tensorflow",),
    ),
)


def recognize_format(folder: str | Path) -> FormatEntry | None:
    """Return the format of a folder, by the names of its files; None if it has none."""
    for entry in FORMATS.values():
        if all((Path(folder) / name).is_file() for name in (entry.config_file, entry.model_file)):
            return entry
    return None
