"""Every format of exported models by its name on the command line; imported when it is used."""

from __future__ import annotations

import dataclasses
import importlib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bert_tf.export.formats.model_format import ModelFormat


@dataclasses.dataclass(frozen=True, kw_only=True)
class FormatEntry:
    """A format that need not be imported to be known.

    Attributes:
        name: on the command line and in manifests.
        module: with a `ModelFormat` named `FORMAT`.
        title: what it writes, for help and for reports on a folder.
        config_file: name of the file with the model's shape.
        model_file: name of the file that, with `config_file`, makes a folder one of this format.
        has_pooling: whether it states how the vector of a text is made.
    """

    name: str
    module: str
    title: str
    config_file: str
    model_file: str
    has_pooling: bool = False

    def load(self) -> ModelFormat:
        """Imports the format."""
        model_format: ModelFormat = importlib.import_module(self.module).FORMAT
        return model_format


# The first is the default; a folder with the files of several is of the first.
FORMATS: dict[str, FormatEntry] = {
    entry.name: entry
    for entry in (
        FormatEntry(
            name="savedmodel",
            module="bert_tf.export.formats.saved_model",
            title="SavedModel in a HuggingFace folder",
            config_file="config.json",
            model_file="saved_model.pb",
        ),
        FormatEntry(
            name="sentence-transformers",
            module="bert_tf.export.formats.sentence_transformers",
            title="sentence-transformers folder",
            config_file="config.json",
            model_file="modules.json",
            has_pooling=True,
        ),
        FormatEntry(
            name="huggingface",
            module="bert_tf.export.formats.huggingface",
            title="HuggingFace folder",
            config_file="config.json",
            model_file="model.safetensors",
        ),
        FormatEntry(
            name="keras-hub",
            module="bert_tf.export.formats.keras_hub",
            title="KerasHub preset",
            config_file="config.json",
            model_file="model.weights.h5",
        ),
        FormatEntry(
            name="google-tf1",
            module="bert_tf.export.formats.google_tf1",
            title="checkpoint of google-research/bert (TensorFlow 1)",
            config_file="bert_config.json",
            model_file="bert_model.ckpt.index",
        ),
        FormatEntry(
            name="google-tf2",
            module="bert_tf.export.formats.google_tf2",
            title="checkpoint of TF Model Garden (TensorFlow 2)",
            config_file="bert_config.json",
            model_file="bert_model.ckpt-1.index",
        ),
    )
}
DEFAULT_FORMAT = next(iter(FORMATS))


def recognize_format(folder: str | Path) -> FormatEntry | None:
    """The format of a folder by its files' names, None if it is of none."""
    for entry in FORMATS.values():
        if all((Path(folder) / name).is_file() for name in (entry.config_file, entry.model_file)):
            return entry
    return None
