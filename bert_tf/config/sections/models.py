"""The sections of `export` and `import-weights`."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from typing import Annotated

from bert_tf.base.errors import check_packages
from bert_tf.config.registries import FLOAT32, FOLDER, IDS, INT8, REGISTRIES, SERVING, TEXT, Format
from bert_tf.config.section import NonNegativeFloat, Section, option, optional
from bert_tf.config.sections.scoring import POOLINGS
from bert_tf.config.values import Bounds

_FORMATS = REGISTRIES.formats
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*|multilingual|code")  # BCP 47
_LAYERS = re.compile(r"[0-9]+(,[0-9]+)*")
# An id of https://hf.co/docs/hub/repositories-licenses.
HUB_LICENSE = re.compile(r"[a-z0-9][a-z0-9.+-]*")
_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")


class ExportConfig(Section, section_name="export"):
    """Exports a run as a SavedModel that takes raw text, or in the format of HuggingFace,
    sentence-transformers, KerasHub or google-research/bert. With --task, --help also shows the
    options of the task.
    """

    run: str = option("run directory of finetune or train", reads="model")
    output: str = option("output directory", writes="folder")
    format: str = option(
        "format to write: " + ", ".join(entry.title for entry in _FORMATS.values()),
        choices=_FORMATS.keys(),
    )
    task: str | None = optional(
        "task for a pretrained model without fine-tuning; requires its pretraining head "
        "(default: the task of fine-tuning; text vectors for a pretrained model)",
        choices=REGISTRIES.pretrained_tasks.keys(),
    )
    pooling: str | None = optional(
        "pooling of token states into a text vector, for formats that store it (default: the "
        "model's, otherwise mean)",
        choices=POOLINGS,
    )
    normalize: bool | None = optional(
        "divide such vectors by their Euclidean norm (default: the model's, otherwise no)"
    )
    layout: str = option(
        "folder: the model with its weights for HuggingFace; serving: OUTPUT/1 without them, "
        "the layout of TensorFlow Serving",
        choices=(FOLDER, SERVING),
    )
    inputs: str = option(
        "inputs of the graph: text (tokenized in the graph) or token ids, which do not require "
        "tensorflow_text",
        choices=(TEXT, IDS),
    )
    precision: str = option(
        "int8: also write a graph with 8-bit integer matrix products, which score uses by default",
        choices=(FLOAT32, INT8),
    )
    calibrate: str | None = optional(
        "labeled rows to calibrate and evaluate the int8 graph on",
        reads="table",
    )
    max_metric_drop: NonNegativeFloat = option(
        "maximum drop of the selection metric after quantization to int8; otherwise nothing is "
        "written",
        0.01,
    )
    license: str | None = optional(
        "license for the model card, as a Hugging Face Hub id: apache-2.0, mit, … (default: "
        "from the card of an exported folder)"
    )
    language: str | None = optional(
        "comma-separated codes of the text languages for the model card: en or en,de (default: "
        "from the card of an exported folder)"
    )
    base_model: str | None = optional(
        "Hub id of the pretrained weights for the model card (default: detected if they are in "
        "the cache of the Hub client)"
    )

    @property
    def more_inputs(self) -> dict[str, str | None]:
        """Files of a task's own keys, by key; None where none is given."""
        return {}

    @property
    def languages(self) -> list[str] | None:
        return None if self.language is None else self.language.replace(" ", "").split(",")

    def faults(self) -> Iterator[str]:
        for code in self.languages or []:
            if not _LANGUAGE.fullmatch(code):
                yield (
                    f"language: {code!r} is not a language code; expected en, de, zh-Hans, "
                    "multilingual, …, separated by commas"
                )
        if self.license is not None and not HUB_LICENSE.fullmatch(self.license):
            yield (
                f"license: {self.license!r} is not a license id; expected one of "
                "https://hf.co/docs/hub/repositories-licenses: apache-2.0, mit, cc-by-4.0, other, …"
            )
        if self.base_model is not None and not _HUB_ID.fullmatch(self.base_model):
            yield (
                f"base_model: {self.base_model!r} is not an id of the Hub; expected a name such "
                "as google-bert/bert-base-uncased"
            )
        if self.pooling is not None:
            yield from self._unable("pooling", lambda entry: entry.has_pooling)
        if self.normalize is not None:
            yield from self._unable("normalize", lambda entry: entry.has_pooling)
        if self.precision == INT8:
            yield from self._unable("precision", lambda entry: entry.quantizer is not None)
        if (self.precision == INT8) != (self.calibrate is not None):
            yield "calibrate: goes with --precision int8; give both or neither"
        if self.layout != FOLDER:
            yield from self._unable("layout", lambda entry: "layout" in entry.options)
        if self.inputs != TEXT:
            yield from self._unable("inputs", lambda entry: "inputs" in entry.options)

    def _unable(self, key: str, is_able: Callable[[Format], bool]) -> Iterator[str]:
        """Yield the fault of a key that only other formats use."""
        able = [name for name, entry in _FORMATS.items() if is_able(entry)]
        if self.format not in able:
            yield f"{key}: does not apply to --format {self.format}; it is for {', '.join(able)}"

    def check_installed(self) -> None:
        entry = _FORMATS[self.format]
        entry.check_installed()
        if self.precision == INT8 and entry.quantizer is not None:
            check_packages("--precision int8", [entry.quantizer], extra=entry.quantizer)


class ImportWeightsConfig(Section, section_name="import_weights"):
    """Converts BERT weights from HuggingFace, KerasHub, Google or TF Model Garden to a model
    directory.
    """

    source: str = option(
        "folder with HuggingFace, KerasHub, Google or TF Model Garden weights",
        positional=True,
        reads="model",
    )
    output: str = option("model directory to write", writes="folder")
    max_position_embeddings: Annotated[int, Bounds(1, 65_536)] | None = optional(
        "maximum sequence length of the new model; position embeddings are interpolated "
        "(default: the source's)"
    )
    vocab: str | None = optional(
        "vocabulary that appends new tokens to the source's (default: the source's)",
        common=True,
        reads="file",
    )
    layers: str | None = optional("source layers to keep, counted from 0: '0,2,4' (default: all)")

    def faults(self) -> Iterator[str]:
        if self.layers is not None and not _LAYERS.fullmatch(self.layers):
            yield f"layers: expected numbers such as 0,2,4, got {self.layers!r}"
        elif any(first >= second for first, second in itertools.pairwise(self.chosen_layers)):
            yield f"layers: {self.layers} must be in ascending order, each layer once"

    @property
    def chosen_layers(self) -> tuple[int, ...]:
        """The layers as numbers; () for all."""
        return () if self.layers is None else tuple(map(int, self.layers.split(",")))
