"""Presets of KerasHub's BERT (formerly KerasNLP), in and out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from keras import ops

from bert_tf.base.errors import InputError, UsageError
from bert_tf.base.files import check_free_space, check_lfs_pointer, write_text_atomically
from bert_tf.base.json_files import read_json_object
from bert_tf.base.libraries import import_keras_hub
from bert_tf.config.bert import BertConfig
from bert_tf.config.bert_file import CONFIG, TASK
from bert_tf.data.text.casing import Lowercase, lowercase_of
from bert_tf.data.text.vocab_file import read_vocab
from bert_tf.weights.model_directory import ModelDirectory, check_parameter_count
from bert_tf.weights.object_checkpoint import POOLER, departures, huggingface_array
from bert_tf.weights.tensor_files import HDF5_ERRORS, count_hdf5_numbers, hdf5_shapes
from bert_tf.weights.tensor_names import ENCODER_PREFIX

keras_hub = import_keras_hub()

_CLASSIFIER = "classifier"
_LAYOUT_BYTES = 4096  # most that HDF5 takes for an array besides its numbers
_SETTINGS_BYTES = 65536  # most that the files of settings take
_TASK_WEIGHTS = "task.weights.h5"
_WEIGHTS = "model.weights.h5"
_METADATA = "metadata.json"
# KerasHub's names of the fields of `BertConfig`.
_CONFIG_KEYS = {
    "vocab_size": "vocabulary_size",
    "hidden_size": "hidden_dim",
    "num_hidden_layers": "num_layers",
    "num_attention_heads": "num_heads",
    "intermediate_size": "intermediate_dim",
    "hidden_dropout_prob": "dropout",
    "max_position_embeddings": "max_sequence_length",
    "type_vocab_size": "num_segments",
}
_VOCABULARY = Path("assets") / "tokenizer" / "vocabulary.txt"


def read_keras_hub_preset(folder: Path) -> ModelDirectory:
    """Open a preset: encoder, vocabulary, and the head of a `BertTextClassifier`.

    KerasHub's BERT always has the tanh approximation of GELU and LayerNorm epsilon 1e-12. Heads of
    other tasks are not read, which a note says.

    Raises:
        UsageError: the preset is of another model, or lacks weights or vocabulary.
        InputError: a file is damaged.
    """
    document = read_json_object(folder / CONFIG)
    registered = document["registered_name"]
    if str(registered).split(">")[-1] != "BertBackbone":
        raise UsageError(f"{folder}: a preset of {registered}; only BertBackbone can be read")
    if not (folder / _WEIGHTS).is_file():
        raise UsageError(f"{folder}: a KerasHub preset without {_WEIGHTS}")
    config = _read_config(folder, document)
    vocab = read_vocab(folder / _VOCABULARY)
    check_lfs_pointer(folder / _WEIGHTS)
    check_parameter_count(folder, config, count_numbers(folder / _WEIGHTS))
    task = _task_of_preset(folder)
    is_classifier = task == "BertTextClassifier"
    notes = [] if task is None or is_classifier else [f"{folder}: the head of {task} is not read"]
    models = keras_hub.models
    try:
        if is_classifier:
            classifier = models.BertTextClassifier.from_preset(str(folder))
            backbone = classifier.backbone
            head = _dense(_CLASSIFIER, classifier.output_dense)
        else:
            backbone = models.BertBackbone.from_preset(str(folder))
            head = iter(())
    except HDF5_ERRORS as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{folder}: KerasHub cannot read it ({reason})") from None
    return ModelDirectory(
        path=folder,
        config=config,
        vocab=vocab,
        lowercase=_read_lowercase(folder),
        task=None,
        tensors={
            name: huggingface_array(name, ops.convert_to_numpy(ops.copy(variable.value)))
            for name, variable in (*_backbone_variables(backbone), *head)
        },
        notes=tuple(notes),
    )


def _task_of_preset(folder: Path) -> str | None:
    """Return the class of a task preset; None if there is only a backbone."""
    if not (folder / TASK).is_file() or not (folder / _TASK_WEIGHTS).is_file():
        return None
    count_numbers(folder / _TASK_WEIGHTS)
    return str(read_json_object(folder / TASK).get("registered_name")).split(">")[-1]


def _read_config(folder: Path, document: dict[str, Any]) -> BertConfig:
    shape = document.get("config")
    if not isinstance(shape, dict):
        raise InputError(f"{folder / CONFIG}: damaged; expected the config of a BertBackbone")
    fields = {name: shape[key] for name, key in _CONFIG_KEYS.items() if key in shape}
    if "vocab_size" not in fields:
        raise UsageError(f"{folder / CONFIG}: lacks vocabulary_size; expected a BertBackbone")
    try:
        return BertConfig(
            **fields,
            attention_probs_dropout_prob=fields.get("hidden_dropout_prob", 0.1),
            hidden_act="gelu_new",
        )
    except UsageError as error:
        raise UsageError(f"{folder / CONFIG}: {error}") from None


def count_numbers(path: Path) -> int:
    """Return the size of all arrays in an HDF5 file, without reading them.

    Raises:
        InputError: the file is damaged, or smaller than its arrays, like compressed ones are.
    """
    try:
        return count_hdf5_numbers(path, (shape for shape, _ in hdf5_shapes(path).values()))
    except HDF5_ERRORS as error:
        raise InputError(
            f"{path}: damaged or not an HDF5 file ({error}); save the preset again with KerasHub"
        ) from None


def _read_lowercase(folder: Path) -> Lowercase:
    """Read the casing; KerasHub keeps accents unless the preset says that it strips them."""
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise UsageError(f"{folder}: a KerasHub preset without tokenizer.json")
    try:
        settings = read_json_object(path)["config"]
        is_lowercase = bool(settings["lowercase"])
        return lowercase_of(is_lowercase, is_lowercase and not settings.get("strip_accents"))
    except (KeyError, TypeError) as error:
        raise InputError(f"{path}: damaged tokenizer config ({error!r})") from None


def write_keras_hub_preset(
    folder: str | Path,
    *,
    config: BertConfig,
    vocab: list[str],
    lowercase: Lowercase,
    tensors: Mapping[str, np.ndarray],
    max_seq_length: int,
) -> list[str]:
    """Write a preset in the layout of KerasHub's own `save_to_preset`.

    A classifier of whole texts becomes a `BertTextClassifier`. Other heads are left out: KerasHub's
    `BertMaskedLM` has the exact GELU and a larger LayerNorm epsilon.

    Args:
        folder: path of the preset; created if missing.
        config, vocab, lowercase, tensors: see `write_google_checkpoint`.
        max_seq_length: length to which the preprocessor of a classifier cuts rows.

    Returns:
        Differences between the preset and the model, a sentence each.

    Raises:
        UsageError: the activation is not GELU, which KerasHub's BERT always has.
    """
    if config.hidden_act == "relu":
        raise UsageError("the model's hidden_act is 'relu'; KerasHub's BERT only has GELU")
    sizes = {key: getattr(config, name) for name, key in _CONFIG_KEYS.items()}
    backbone = keras_hub.models.BertBackbone(**sizes, dtype="float32")
    has_pooler = f"{POOLER}.weight" in tensors
    values = {**({} if has_pooler else _fresh_pooler(config)), **tensors}
    for name, variable in _backbone_variables(backbone):
        _assign(variable, name, values[name])
    # BERT strips accents when it lower-cases; KerasHub's tokenizer has an option for that.
    tokenizer = keras_hub.models.BertTokenizer(
        vocabulary=vocab, lowercase=bool(lowercase), strip_accents=lowercase is True
    )
    is_classifier = has_pooler and f"{_CLASSIFIER}.weight" in tensors
    Path(folder).mkdir(parents=True, exist_ok=True)
    size = sum(value.nbytes + _LAYOUT_BYTES for value in values.values()) + _SETTINGS_BYTES
    check_free_space(folder, size + sum(len(piece.encode()) + 1 for piece in vocab))
    if is_classifier:
        classifier = keras_hub.models.BertTextClassifier(
            backbone,
            num_classes=len(tensors[f"{_CLASSIFIER}.weight"]),
            preprocessor=keras_hub.models.BertTextClassifierPreprocessor(
                tokenizer, sequence_length=max_seq_length
            ),
            dropout=config.hidden_dropout_prob,
        )
        for name, variable in _dense(_CLASSIFIER, classifier.output_dense):
            _assign(variable, name, tensors[name])
        classifier.save_to_preset(str(folder))
    else:
        backbone.save_to_preset(str(folder))
        tokenizer.save_to_preset(str(folder))
    _drop_time(Path(folder) / _METADATA)
    return _differences(config, tensors, is_classifier=is_classifier)


def _differences(
    config: BertConfig, tensors: Mapping[str, np.ndarray], *, is_classifier: bool
) -> list[str]:
    notes = departures(config, "KerasHub's BERT")
    if config.attention_probs_dropout_prob != config.hidden_dropout_prob:
        notes.append(
            f"KerasHub's BERT has a single dropout rate, here {config.hidden_dropout_prob:g}; the "
            f"model's attention has {config.attention_probs_dropout_prob:g}"
        )
    if f"{POOLER}.weight" not in tensors:
        notes.append("the model has no pooler; the preset's is random, as in a new model")
    if not is_classifier and any(not name.startswith(ENCODER_PREFIX) for name in tensors):
        notes.append("the model's heads are left out; KerasHub has no equivalent")
    return notes


def _fresh_pooler(config: BertConfig) -> dict[str, np.ndarray]:
    """Return the pooler of a new model, the same for equal configs."""
    width = config.hidden_size
    kernel = np.random.default_rng(0).standard_normal((width, width), np.float32)
    return {
        f"{POOLER}.weight": config.initializer_range * kernel,
        f"{POOLER}.bias": np.zeros(width, np.float32),
    }


def _drop_time(metadata: Path) -> None:
    """Remove the time of saving, so that equal models have equal files."""
    document = json.loads(metadata.read_text(encoding="utf-8"))
    del document["date_saved"]
    write_text_atomically(metadata, json.dumps(document, indent=4))


def _backbone_variables(backbone: Any) -> Iterator[tuple[str, Any]]:
    """Yield HuggingFace's name and the variable of each weight of the encoder."""
    layer = backbone.get_layer
    for name, variable in (
        ("word_embeddings", layer("token_embedding").embeddings),
        ("position_embeddings", layer("position_embedding").position_embeddings),
        ("token_type_embeddings", layer("segment_embedding").embeddings),
    ):
        yield f"bert.embeddings.{name}.weight", variable
    yield from _layer_norm("bert.embeddings.LayerNorm", layer("embeddings_layer_norm"))
    for index in range(backbone.num_layers):
        block = layer(f"transformer_layer_{index}")
        attention = block._self_attention_layer
        prefix = f"bert.encoder.layer.{index}"
        for name, dense in (
            ("attention.self.query", attention.query_dense),
            ("attention.self.key", attention.key_dense),
            ("attention.self.value", attention.value_dense),
            ("attention.output.dense", attention.output_dense),
            ("intermediate.dense", block._feedforward_intermediate_dense),
            ("output.dense", block._feedforward_output_dense),
        ):
            yield from _dense(f"{prefix}.{name}", dense)
        for name, norm in (
            ("attention.output.LayerNorm", block._self_attention_layer_norm),
            ("output.LayerNorm", block._feedforward_layer_norm),
        ):
            yield from _layer_norm(f"{prefix}.{name}", norm)
    yield from _dense(POOLER, layer("pooled_dense"))


def _dense(name: str, layer: Any) -> Iterator[tuple[str, Any]]:
    yield f"{name}.weight", layer.kernel
    yield f"{name}.bias", layer.bias


def _layer_norm(name: str, layer: Any) -> Iterator[tuple[str, Any]]:
    yield f"{name}.weight", layer.gamma
    yield f"{name}.bias", layer.beta


def _assign(variable: Any, name: str, tensor: np.ndarray) -> None:
    """Assign a tensor in HuggingFace's layout to a variable of KerasHub."""
    # Attention kernels are [hidden, heads, head] or [heads, head, hidden], biases [heads, head].
    is_kernel = tensor.ndim == 2 and "embeddings" not in name
    variable.assign((tensor.T if is_kernel else tensor).reshape(variable.shape))
