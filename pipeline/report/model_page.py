"""The page of a model: its shape, the parameters of its parts, its inputs and labels."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from bert_tf.base.json_files import read_json_object
from bert_tf.base.wording import quantity, shown_size
from bert_tf.config.bert_file import CONFIG, TASK
from bert_tf.engines.registry import exported_folder
from bert_tf.export.registry import recognize_format
from bert_tf.tasks.base.report_sections import MOST_ROWS, Section, TableSection
from bert_tf.training.best_model import BestModel
from bert_tf.weights.tensor_files import SAFETENSORS
from pipeline.report.artifact import model_lines, own_files
from pipeline.report.document import folded, preformatted, sentence_case, tiles_html

_LAYER = re.compile(r"(?:^|\.)encoder\.layer\.(\d+)\.")
_EMBEDDINGS = {
    "word_embeddings": "word embeddings",
    "position_embeddings": "position embeddings",
}
_MOST_FILES = 30
# Values that mean that a setting has no effect.
_OFF: tuple[Any, ...] = (None, [], "", "none", False, 0.0)


def model_sections(folder: Path, manifest: Mapping[str, Any]) -> list[Section | str]:
    """Lay out a model directory or exported model; raise InputError for bad JSON.

    Args:
        folder: the model, exported or not.
        manifest: of the job that made it; empty for a foreign model.
    """
    inside = exported_folder(folder)
    model_format = recognize_format(inside)
    config_file = inside / (CONFIG if model_format is None else model_format.config_file)
    config = read_json_object(config_file) if config_file.is_file() else {}
    task = read_json_object(inside / TASK) if (inside / TASK).is_file() else {}
    shapes = tensor_shapes(inside)
    content: list[Section | str] = []
    best = BestModel.of_manifest(dict(manifest))
    if best is not None:
        content.append(f"<p>{escape(sentence_case(str(best)))}.</p>")
    content.append(tiles_html(_tiles(config, shapes, task, manifest)))
    if task:
        content.append(_task_table(task))
    if task.get("labels"):
        content.append(_label_table(task, config))
    if shapes:
        content.append(_part_table(shapes))
    content.append(_file_table(inside))
    keys = preformatted(model_lines(folder))
    content.append(folded("Every key of the config and the task", keys))
    return content


def tensor_shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a safetensors file by name, from its header.

    They are {} without such a file, and for a damaged one, which `verify` reports.
    """
    path = folder / SAFETENSORS
    if not path.is_file():
        return {}
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as stream:
            return {name: tuple(stream.get_slice(name).get_shape()) for name in stream.keys()}  # noqa: SIM118
    except (SafetensorError, OSError):
        return {}


def part_of(name: str) -> str:
    """Return the part of a model that a tensor belongs to, by HuggingFace's name for it."""
    layer = _LAYER.search(name)
    if layer is not None:
        return f"layer {int(layer[1]) + 1}"
    if "embeddings" in name:
        return next((part for key, part in _EMBEDDINGS.items() if key in name), "other embeddings")
    return "pooler" if "pooler" in name else "head"


def _tiles(
    config: Mapping[str, Any],
    shapes: Mapping[str, tuple[int, ...]],
    task: Mapping[str, Any],
    manifest: Mapping[str, Any],
) -> dict[str, str]:
    """Return the main figures; a key that a config lacks has no tile."""
    tiles = {}
    if task.get("task"):
        tiles["task"] = str(task["task"])
    if manifest.get("format"):
        tiles["format"] = str(manifest["format"])
    if shapes:
        tiles["parameters"] = f"{sum(map(math.prod, shapes.values())):,}"
    for name, key in (
        ("layers", "num_hidden_layers"), ("width", "hidden_size"),
        ("attention heads", "num_attention_heads"), ("vocabulary", "vocab_size"),
    ):  # fmt: skip
        if isinstance(config.get(key), int):
            tiles[name] = f"{config[key]:,}"
    longest = task.get("max_seq_length", config.get("max_position_embeddings"))
    if isinstance(longest, int):
        tiles["longest text"] = quantity(longest, "token")
    return tiles


def _task_table(task: Mapping[str, Any]) -> TableSection:
    """List the inputs of the model and its settings of prediction, without labels."""
    rows = [
        [f"column of the {name.replace('_', ' ')}", _shown(column)]
        for name, column in (task.get("columns") or {}).items()
        if column
    ]
    for key, value in task.items():
        is_elsewhere = key in ("task", "columns", "labels", "max_seq_length")
        has_effect = value not in _OFF and (key, value) != ("temperature", 1.0)
        if not is_elsewhere and has_effect:
            rows.append([key.replace("_", " "), _shown(value)])
    return TableSection(
        title="What it reads", columns=(("setting", "text"), ("value", "text")), rows=rows
    )


def _label_table(task: Mapping[str, Any], config: Mapping[str, Any]) -> TableSection:
    labels = [str(label) for label in task["labels"]]
    more = len(labels) - MOST_ROWS
    return TableSection(
        title="Labels",
        columns=(("number", "count"), ("label", "text")),
        rows=[[number, label] for number, label in enumerate(labels[:MOST_ROWS])],
        note=f"{more:,} more are in {TASK}." if more > 0 else "",
    )


def _part_table(shapes: Mapping[str, tuple[int, ...]]) -> TableSection:
    parts: dict[str, int] = {}
    for name, shape in shapes.items():
        part = part_of(name)
        parts[part] = parts.get(part, 0) + math.prod(shape)
    total = max(sum(parts.values()), 1)

    def order(part: str) -> tuple[int, int]:
        kinds = (*_EMBEDDINGS.values(), "other embeddings")
        if part in kinds:
            return 0, kinds.index(part)
        if part.startswith("layer "):
            return 1, int(part.removeprefix("layer "))
        return 2, part != "pooler"

    return TableSection(
        title="Parameters",
        columns=(("part", "text"), ("numbers", "count"), ("of all", "share")),
        rows=[[part, parts[part], parts[part] / total] for part in sorted(parts, key=order)],
    )


def _file_table(folder: Path) -> TableSection:
    files = sorted(own_files(folder), key=lambda path: -path.stat().st_size)
    total = max(sum(path.stat().st_size for path in files), 1)
    more = len(files) - _MOST_FILES
    rows = []
    for path in files[:_MOST_FILES]:
        size = path.stat().st_size
        rows.append([path.relative_to(folder).as_posix(), shown_size(size), size / total])
    return TableSection(
        title="Files",
        columns=(("file", "text"), ("size", "text"), ("of all", "share")),
        rows=rows,
        note=f"{shown_size(total)} in all" + (f"; {more:,} more files." if more > 0 else "."),
    )


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
