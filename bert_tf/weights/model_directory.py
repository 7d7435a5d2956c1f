"""The model directory: a HuggingFace folder that this package, HuggingFace and KerasHub can load.

Reading is lazy: names and shapes of tensors are read and compared with the config first, tensors on
access. Writing is atomic: the folder appears or is replaced as a whole, and `SHA256SUMS` is written
last.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from keras import ops

from bert_tf.base.checksums import SUMS, check_sums, write_sums, write_text_and_sum
from bert_tf.base.errors import UsageError, missing_folder_error
from bert_tf.base.files import replacing_directory, write_text_atomically
from bert_tf.base.json_files import JsonFolder, read_json_object
from bert_tf.config.bert import BertConfig
from bert_tf.config.bert_file import CONFIG, GOOGLE_CONFIG, TASK, bert_document, model_folder
from bert_tf.config.embedding_recipe import EmbeddingRecipe
from bert_tf.data.text.casing import Lowercase
from bert_tf.data.text.tokenizer_json import TOKENIZER_CONFIG
from bert_tf.data.text.vocabulary_files import VOCAB, folder_vocabulary, write_vocabulary_files
from bert_tf.weights.sentence_transformers import (
    RECIPE_FILES,
    read_recipe,
    recipe_notes,
    transformer_folder,
    write_recipe,
)
from bert_tf.weights.tensor_files import (
    SAFETENSORS,
    FolderTensors,
    describe_folder,
    leave_out_own_decoder,
    write_tensors,
)
from bert_tf.weights.tensor_names import ENCODER_PREFIX, model_bindings

_FILES = {CONFIG, TASK, VOCAB, TOKENIZER_CONFIG, SAFETENSORS}

# float32 arrays by HuggingFace's names.
Tensors = Mapping[str, np.ndarray]
# Maps the config and tensors of a built model to those that are written.
Restore = Callable[[BertConfig, Tensors], tuple[BertConfig, dict[str, np.ndarray]]]
# A config whose encoder is larger than the weights by this factor belongs to another model.
_MOST_TIMES_LARGER = 2
_NAMED = 3  # missing tensors that a message names


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelDirectory:
    """An opened model directory.

    Attributes:
        path: the folder.
        config: shape of the encoder.
        vocab: entries in the order of their ids.
        lowercase: whether texts are lower-cased before tokenization, and how.
        task: content of `task.json`; None if there is none.
        tensors: float32 by HuggingFace's names (`bert.…`), read on access.
        notes: parts that were left out, and guesses, a sentence each.

    Raises:
        UsageError: vocabulary and config disagree on the number of entries.
    """

    path: Path
    config: BertConfig
    vocab: list[str]
    lowercase: Lowercase
    task: dict[str, Any] | None
    tensors: Tensors
    notes: tuple[str, ...] = ()

    @functools.cached_property
    def recipe(self) -> EmbeddingRecipe | None:
        """Recipe of embeddings; None if the folder has none."""
        return read_recipe(self.path, max_positions=self.config.max_position_embeddings)

    @functools.cached_property
    def document(self) -> dict[str, Any]:
        """HuggingFace's `config.json`; {} if the folder has none."""
        path = transformer_folder(self.path) / CONFIG
        return read_json_object(path) if path.is_file() else {}

    def __post_init__(self):
        if len(self.vocab) != self.config.vocab_size:
            raise UsageError(
                f"{self.path}: the vocabulary has {len(self.vocab)} entries, but vocab_size in the "
                f"config is {self.config.vocab_size}; they must be of the same model"
            )


def read_model_directory(path: str | Path) -> ModelDirectory:
    """Open a model directory, a run directory (its `best/`), or a folder of HuggingFace or
    sentence-transformers.

    Raises:
        UsageError: files are missing or disagree, or the model is not a BERT.
        InputError: a file is damaged, or its SHA-256 is not the one in `SHA256SUMS`.
    """
    folder = model_folder(path)
    if not folder.is_dir():
        raise missing_folder_error(folder, "model directory")
    inner = transformer_folder(folder)
    if not (inner / CONFIG).is_file():
        raise UsageError(f"{folder}: {_why_no_model(folder)}")
    check_sums(inner, _FILES.__contains__)
    outer = JsonFolder(folder)
    files = JsonFolder(inner)
    document = bert_document(inner / CONFIG, files[CONFIG])
    vocabulary = folder_vocabulary(files, vocab_size=document.config.vocab_size)
    tensors = FolderTensors(inner)
    check_parameter_count(folder, document.config, tensors.count_numbers())
    notes = document.notes + vocabulary.notes + recipe_notes(outer)
    if document.has_own_decoder:
        notes += leave_out_own_decoder(folder, tensors)
    return ModelDirectory(
        path=folder,
        config=document.config,
        vocab=vocabulary.vocab,
        lowercase=vocabulary.lowercase,
        task=outer.get(TASK),
        tensors=tensors,
        notes=notes,
    )


def check_parameter_count(path: Path, config: BertConfig, numbers: int) -> None:
    """Check, before a model is built, that its size fits the weights in its files.

    Args:
        path: path of the model, for messages.
        config: shape of the encoder.
        numbers: size of all tensors together.

    Raises:
        UsageError: the encoder is more than twice as large.
    """
    if config.encoder_parameters > _MOST_TIMES_LARGER * numbers:
        raise UsageError(
            f"{path}: the config describes an encoder of {config.encoder_parameters:,} numbers, "
            f"but the weights hold {numbers:,}; they must be of the same model"
        )


def _why_no_model(folder: Path) -> str:
    """Describe a folder without HuggingFace's config, and the next step."""
    if (folder / "config.yaml").is_file():
        return "the run has not saved a model yet; wait for its first evaluation"
    if (folder / GOOGLE_CONFIG).is_file():
        return (
            "a checkpoint of google-research/bert or TF Model Garden; bert-pipeline import-weights "
            "turns it into a model directory"
        )
    return describe_folder(folder)


def load_weights(model: Any, directory: ModelDirectory) -> list[str]:
    """Load weights into a built model.

    Heads (and the pooler) that the directory lacks, or has for another number of labels, keep their
    initial values.

    Returns:
        Paths of the variables that kept their initial values.

    Raises:
        UsageError: weights of the encoder are missing or have another shape.
    """
    fresh: list[str] = []
    missing: list[str] = []
    for binding in model_bindings(model):
        absent = [name for name in binding.names if name not in directory.tensors]
        if absent:
            if binding.is_required:
                missing += absent
            fresh.append(binding.variable.path)
            continue
        value = binding.join([directory.tensors[name] for name in binding.names])
        if value.shape == tuple(binding.variable.shape):
            binding.variable.assign(value)
        elif binding.is_required:
            raise UsageError(
                f"{directory.path}: {binding.names[0]} has shape {list(value.shape)}, but the "
                f"model's config asks for {list(binding.variable.shape)}"
            )
        else:
            fresh.append(binding.variable.path)
    if missing:
        more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
        raise UsageError(
            f"{directory.path}: weights are missing: {', '.join(missing[:_NAMED])}{more}; "
            f"{_found_instead(directory.tensors, missing)}"
        )
    return fresh


def _found_instead(tensors: Tensors, missing: list[str]) -> str:
    """Describe the tensors that are there in place of missing ones, for a message."""
    ending = missing[0].removeprefix(ENCODER_PREFIX)
    renamed = next((name for name in tensors if name.endswith(f".{ending}")), None)
    if renamed is not None:
        prefix = renamed.removesuffix(missing[0]) or renamed.removesuffix(ending)
        return (
            f"found {renamed} and others whose names begin with {prefix!r}; save the state dict "
            "without it"
        )
    named = ", ".join(itertools.islice(tensors, _NAMED)) or "no tensor"
    return f"found {named}; expected a BERT encoder of the shape in its config"


def load_all_weights(model: Any, directory: ModelDirectory) -> None:
    """Build a model and load all its weights.

    Raises:
        UsageError: weights are missing or have another shape, also those of heads.
    """
    model.build_weights()
    missing = load_weights(model, directory)
    if missing:
        raise UsageError(
            f"{directory.path}: weights of {', '.join(missing)} are missing or of another shape; "
            "train the model before using it"
        )


def write_model_directory(
    path: str | Path,
    model: Any,
    *,
    vocab: list[str],
    lowercase: Lowercase,
    task: dict[str, Any] | None,
    recipe: EmbeddingRecipe | None = None,
    restore: Restore | None = None,
    with_weights: bool = True,
) -> None:
    """Write a built model of `bert_tf.models` in HuggingFace's format.

    The folder appears or is replaced as a whole. One that contains other files (a job's output
    directory with its `config.yaml`) is filled instead, file by file, the weights last except for
    `SHA256SUMS`.

    Args:
        path: the folder.
        model: a built model.
        vocab: entries in the order of their ids.
        lowercase: whether texts are lower-cased before tokenization, and how.
        task: content of `task.json`; its `labels`, if any, are also written to `config.json`.
        recipe: recipe of embeddings, which makes the folder one of sentence-transformers; None for
            that of the model, if it has one.
        restore: adds back the parts that the model was built without; None if it has all.
        with_weights: False writes all other files, for a folder whose weights are elsewhere.

    Raises:
        UsageError: the vocabulary has another size than the model.
    """
    labels = label_names(task, getattr(model, "num_labels", 0))
    config = model.config
    tensors = model_tensors(model)
    if restore is not None:
        config, tensors = restore(config, tensors)
    write_directory(
        path,
        config=config,
        architecture=model.huggingface_class,
        problem_type=getattr(model, "problem_type", None),
        labels=labels,
        vocab=vocab,
        lowercase=lowercase,
        task=task,
        recipe=recipe or getattr(model, "recipe", None),
        tensors=tensors if with_weights else None,
    )


def write_task(folder: Path, task: dict[str, Any]) -> None:
    """Replace the `task.json` of a model directory, and its checksum."""
    write_text_and_sum(folder, TASK, _as_json(task))


def model_tensors(model: Any) -> dict[str, np.ndarray]:
    """Return the weights of a built model, float32 by HuggingFace's names."""
    tensors: dict[str, np.ndarray] = {}
    for binding in model_bindings(model):
        tensors.update(binding.split(ops.convert_to_numpy(ops.copy(binding.variable.value))))
    return tensors


def label_names(task: dict[str, Any] | None, number: int) -> list[str]:
    """Return the labels of a task, or HuggingFace's `LABEL_0`, … if it names none."""
    labels = (task or {}).get("labels")
    return list(labels) if labels else [f"LABEL_{index}" for index in range(number)]


def write_directory(
    path: str | Path,
    *,
    config: BertConfig,
    architecture: str,
    problem_type: str | None,
    labels: list[str],
    vocab: list[str],
    lowercase: Lowercase,
    task: dict[str, Any] | None,
    tensors: Tensors | None,
    recipe: EmbeddingRecipe | None = None,
) -> None:
    """Write the files of a model directory; see `write_model_directory`.

    Args:
        path, config, vocab, lowercase, task, recipe: see `write_model_directory`.
        architecture: HuggingFace's class, which its automatic loading uses.
        problem_type: HuggingFace's name for the purpose of a classifier; None for its default.
        labels: names of the classifier's logits; [] without one.
        tensors: float32 by HuggingFace's names; None leaves out the file of the weights.

    Raises:
        UsageError: the vocabulary has another size than the model.
    """
    path = Path(path)
    if len(vocab) != config.vocab_size:
        raise UsageError(
            f"{path}: the vocabulary has {len(vocab)} entries, but the model's vocab_size is "
            f"{config.vocab_size}; they must be of the same model"
        )
    document = {
        "architectures": [architecture],
        **config.as_dict(),
        "pad_token_id": vocab.index("[PAD]"),
        **({"problem_type": problem_type} if problem_type is not None else {}),
    }
    if labels:
        document["id2label"] = {str(index): label for index, label in enumerate(labels)}
        document["label2id"] = {label: index for index, label in enumerate(labels)}

    def fill(folder: Path) -> None:
        (folder / SUMS).unlink(missing_ok=True)  # the old sums are void once files change
        write_text_atomically(folder / CONFIG, _as_json(document))
        write_vocabulary_files(
            folder, vocab, lowercase=lowercase, max_length=config.max_position_embeddings
        )
        if task is None:
            (folder / TASK).unlink(missing_ok=True)
        else:
            write_text_atomically(folder / TASK, _as_json(task))
        written = set(_FILES)
        if recipe is not None:
            write_recipe(folder, recipe, hidden_size=config.hidden_size)
            written |= RECIPE_FILES
        if tensors is None:
            (folder / SAFETENSORS).unlink(missing_ok=True)
        else:
            write_tensors(folder / SAFETENSORS, tensors)
        write_sums(folder, [name for name in sorted(written) if (folder / name).is_file()])

    own = {*_FILES, *(Path(name).parts[0] for name in RECIPE_FILES), SUMS}
    if path.is_dir() and any(child.name not in own for child in path.iterdir()):
        fill(path)
    else:
        with replacing_directory(path) as aside:
            fill(aside)


def _as_json(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
