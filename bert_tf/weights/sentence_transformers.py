"""The recipe of embeddings in a folder of sentence-transformers.

Releases 2 to 5 name the pooling by one boolean key per mode, release 6 by a single key. Both are
read. The former is written, since all releases load it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bert_tf.base.checksums import check_sums
from bert_tf.base.errors import InputError, UsageError
from bert_tf.base.files import write_text_atomically
from bert_tf.base.json_files import JsonFolder, read_json, read_json_object
from bert_tf.config.embedding_recipe import EmbeddingRecipe
from bert_tf.data.text.tokenizer_json import TOKENIZER_CONFIG

MODULES = "modules.json"
_LENGTH = "sentence_bert_config.json"
_SETTINGS = "config_sentence_transformers.json"
_SIMILARITY = "similarity_fn_name"
_IS_TRAINED = "bert_pipeline_is_trained"  # a key that the library ignores
_DIMENSIONS = "truncate_dim"
_SETFIT_FILES = ("model_head.pkl", "config_setfit.json")
_POOLING_FOLDER = "1_Pooling"
_POOLING = f"{_POOLING_FOLDER}/config.json"
_PREFIX = "pooling_mode_"
# Modes of pooling, and the ends of their keys, after the prefix.
_MODES = {"mean": "mean_tokens", "cls": "cls_token", "max": "max_tokens"}
_TYPES = "sentence_transformers.models"
RECIPE_FILES = frozenset((MODULES, _LENGTH, _SETTINGS, _POOLING))
# Classes of the modules, without and with normalization.
_STEPS = ["Transformer", "Pooling"]
_NORMALIZED_STEPS = ["Transformer", "Pooling", "Normalize"]


def transformer_folder(folder: Path) -> Path:
    """Return the folder of the encoder: the folder itself, or that of its first module."""
    if not (folder / MODULES).is_file():
        return folder
    inside = _folder_of(_read_modules(folder)[0], folder)
    return inside if inside.is_dir() else folder


def _folder_of(module: dict[str, Any], folder: Path) -> Path:
    path = str(module.get("path", ""))
    if ".." in Path(path).parts or Path(path).is_absolute():
        raise InputError(f"{folder / MODULES}: the path {path!r} leads out of the folder")
    return folder / path


def read_recipe(folder: Path, *, max_positions: int) -> EmbeddingRecipe | None:
    """Read the recipe of a folder of sentence-transformers; return None for any other folder.

    Args:
        folder: the folder, which may contain `modules.json`.
        max_positions: length of the longest sequence of the encoder.

    Raises:
        UsageError: modules or settings are not supported by `embed`.
        InputError: a file is damaged, or its SHA-256 is not the one in `SHA256SUMS`.
    """
    if not (folder / MODULES).is_file():
        return None
    check_sums(folder, RECIPE_FILES.__contains__)
    modules = _read_modules(folder)
    kinds = [str(module.get("type", "")).rpartition(".")[2] for module in modules]
    if kinds not in (_STEPS, _NORMALIZED_STEPS):
        raise UsageError(
            f"{folder / MODULES}: lists {', '.join(kinds) or 'nothing'}; expected Transformer, "
            "Pooling and at most Normalize, other modules are not supported"
        )
    settings = _read_if_there(folder / _SETTINGS)
    prompts, default_prompt = _read_prompts(folder / _SETTINGS, settings)
    pooling = _folder_of(modules[1], folder) / "config.json"
    if any(prompts.values()) and read_json_object(pooling).get("include_prompt") is False:
        raise UsageError(
            f"{pooling}: include_prompt is false; excluding the prompt's tokens from the pooling "
            "is not supported"
        )
    return EmbeddingRecipe(
        pooling=_read_pooling(pooling),
        normalize=kinds[-1] == "Normalize",
        max_seq_length=min(max_positions, _read_length(folder) or max_positions),
        is_trained=settings.get(_IS_TRAINED) is not False,
        lowercase_texts=_setting(folder, "do_lower_case") is True,
        prompts=prompts,
        default_prompt=default_prompt,
        similarity=str(settings.get(_SIMILARITY) or "cosine"),
    )


def recipe_notes(files: JsonFolder) -> tuple[str, ...]:
    """Return the steps of a folder's library beyond the recipe, a sentence each."""
    folder = files.path
    if MODULES not in files:
        return ()
    notes = []
    dimensions = (files.get(_SETTINGS) or {}).get(_DIMENSIONS)
    if dimensions is not None:
        notes.append(
            f"{folder / _SETTINGS}: {_DIMENSIONS} {dimensions!r}, to which sentence-transformers "
            "cuts vectors; they are whole here, and the first of their numbers are the same"
        )
    heads = [name for name in _SETFIT_FILES if (folder / name).is_file()]
    if heads:
        notes.append(
            f"{folder}: SetFit's classifier ({', '.join(heads)}) is left out, so the model makes "
            "vectors and predicts no labels; fine-tuning with --init on the folder trains another"
        )
    return tuple(notes)


def write_recipe(folder: Path, recipe: EmbeddingRecipe, *, hidden_size: int) -> None:
    """Write the files that make a HuggingFace folder one of sentence-transformers."""
    names = _NORMALIZED_STEPS if recipe.normalize else _STEPS
    paths = ("", _POOLING_FOLDER, "2_Normalize")
    modules = [
        {"idx": index, "name": str(index), "path": path, "type": f"{_TYPES}.{name}"}
        for index, (name, path) in enumerate(zip(names, paths, strict=False))
    ]
    contents: dict[str, Any] = {
        _POOLING: {
            "word_embedding_dimension": hidden_size,
            **{_PREFIX + key: recipe.pooling == mode for mode, key in _MODES.items()},
        },
        _LENGTH: {"max_seq_length": recipe.max_seq_length, "do_lower_case": recipe.lowercase_texts},
        _SETTINGS: {
            "prompts": dict(recipe.prompts),
            "default_prompt_name": recipe.default_prompt,
            _SIMILARITY: recipe.similarity,
            _IS_TRAINED: recipe.is_trained,
        },
        MODULES: modules,
    }
    (folder / _POOLING_FOLDER).mkdir(exist_ok=True)
    for name, content in contents.items():
        write_text_atomically(folder / name, json.dumps(content, indent=2) + "\n")


def _read_modules(folder: Path) -> list[dict[str, Any]]:
    path = folder / MODULES
    modules = read_json(path)
    if not isinstance(modules, list) or not all(isinstance(module, dict) for module in modules):
        raise InputError(f"{path}: damaged; expected a JSON list of modules")
    if not modules:
        raise InputError(f"{path}: lists no module; expected Transformer and Pooling")
    return modules


def _read_pooling(path: Path) -> str:
    """Return the mode of pooling, a key of `_MODES`."""
    content = read_json_object(path)
    mode = content.get("pooling_mode")
    if mode is None:
        modes = [key.removeprefix(_PREFIX) for key in content if key.startswith(_PREFIX)]
        chosen = [mode for mode in modes if content[_PREFIX + mode] is True]
    else:
        chosen = mode if isinstance(mode, list) else [mode]
    # Release 6 names a mode directly; older ones by the end of its key.
    known = {mode: mode for mode in _MODES} | {key: mode for mode, key in _MODES.items()}
    if len(chosen) != 1 or chosen[0] not in known:
        raise UsageError(
            f"{path}: pools by {', '.join(map(str, chosen)) or 'nothing'}; expected one of "
            f"{', '.join(_MODES)}, others are not supported"
        )
    return known[chosen[0]]


def _read_length(folder: Path) -> int | None:
    """Return the most tokens of a text; None if no file says it."""
    tokenizer = _read_if_there(transformer_folder(folder) / TOKENIZER_CONFIG)
    for value in (_setting(folder, "max_seq_length"), tokenizer.get("model_max_length")):
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None


def _setting(folder: Path, key: str) -> Any:
    """Read a setting of the Transformer module, which older releases keep beside it."""
    files = (transformer_folder(folder) / _LENGTH, folder / _LENGTH)
    values = (_read_if_there(path).get(key) for path in files)
    return next((value for value in values if value is not None), None)


def _read_if_there(path: Path) -> dict[str, Any]:
    return read_json_object(path) if path.is_file() else {}


def _read_prompts(path: Path, settings: dict[str, Any]) -> tuple[dict[str, str], str | None]:
    """Return the prompts by name, and the name of the default one, or None."""
    prompts = settings.get("prompts") or {}
    default = settings.get("default_prompt_name")
    if not isinstance(prompts, dict) or not all(isinstance(text, str) for text in prompts.values()):
        raise InputError(f"{path}: damaged; expected prompts to be texts by name")
    if default is not None and default not in prompts:
        raise UsageError(
            f"{path}: default_prompt_name is {default!r}, but prompts has no such name; add it or "
            "set default_prompt_name to null"
        )
    return prompts, default
