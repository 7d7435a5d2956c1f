"""What the Hugging Face Hub reads at the head of a model card: YAML between two lines of dashes.

The keys are those of https://github.com/huggingface/hub-docs/blob/main/modelcard.md.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from bert_tf.base.checksums import CARD
from bert_tf.data.tables.dialect import table_format_by_name
from bert_tf.export.formats.registry import FormatEntry
from bert_tf.tasks.base.task_card import TaskCard

# Of another card, what stays true when the same weights are written in another format.
_KEPT_KEYS = ("language", "license", "license_name", "license_link", "base_model", "datasets")
_KEYS = (
    *("language", "license", "license_name", "license_link", "library_name", "pipeline_tag"),
    *("base_model", "tags", "datasets", "model-index"),
)
_TAGS = ("bert", "bert-pipeline")
# By what the `datasets` library loads files of each format with.
_LOADERS = {"csv": "csv", "tsv": "csv", "jsonl": "json", "parquet": "parquet"}
_NOT_MEASURES = ("step", "loss")
_DIGITS = 6
_FRONT_MATTER = re.compile(r"---\r?\n(.*?)\r?\n---(\r?\n|$)", re.DOTALL)
# Where the Hub's client keeps what it downloads: https://hf.co/docs/huggingface_hub/guides/manage-cache
_CACHE_FOLDER = re.compile(r"models--(?:(.+?)--)?(.+)")


def front_matter(metadata: Mapping[str, Any]) -> str:
    """Metadata as the head of a card; keys whose value is empty are left out."""
    ordered = {key: metadata[key] for key in _KEYS if metadata.get(key)}
    text = yaml.safe_dump(ordered, sort_keys=False, allow_unicode=True, width=100)
    return f"---\n{text}---\n\n"


def read_front_matter(folder: Path) -> dict[str, Any]:
    """The metadata of a folder's card; {} where it has no card, or one that the Hub cannot read."""
    card = folder / CARD
    if not card.is_file():
        return {}
    found = _FRONT_MATTER.match(card.read_bytes().decode("utf-8-sig", errors="replace"))
    try:
        metadata = yaml.safe_load(found[1]) if found else None
    except yaml.YAMLError:
        return {}
    return metadata if isinstance(metadata, dict) else {}


def hub_metadata(
    card: TaskCard,
    entry: FormatEntry,
    *,
    name: str,
    manifest: Mapping[str, Any],
    source: Path,
    given: Mapping[str, Any],
) -> dict[str, Any]:
    """The metadata of a model that is exported.

    A run's model has no card yet, and a license and languages of its own; of a folder that is
    written in another format they are those of its card.

    Args:
        card: of the model's task.
        entry: the format that is written.
        name: of the model, for its results.
        manifest: the run's, empty if it has none.
        source: the folder that the weights were read from.
        given: `license`, `language` and `base_model`, None where the user gave none.
    """
    before = read_front_matter(source)
    known = {key: before[key] for key in _KEPT_KEYS if key in before}
    keeps_head = entry.keeps_head(card)
    encoder_tag = entry.encoder_pipeline_tag
    metadata = {
        **known,
        "library_name": entry.library_name,
        "pipeline_tag": card.pipeline_tag if keeps_head else encoder_tag,
        "base_model": known.get("base_model") or _base_model(manifest, source),
        "tags": [*_TAGS, *entry.tags],
        **{key: value for key, value in given.items() if value is not None},
    }
    if keeps_head:
        metadata["model-index"] = _model_index(card, name=name, manifest=manifest)
    return metadata


def _base_model(manifest: Mapping[str, Any], source: Path) -> str | None:
    """The Hub's id of the weights that a run started from, or that are exported as they are."""
    inputs = manifest.get("inputs", [])
    starts = [each["path"] for each in inputs if each.get("key") in ("init", "source")]
    for path in map(Path, starts or [source]):
        for part in path.parts:
            found = _CACHE_FOLDER.fullmatch(part)
            if found:
                return "/".join(filter(None, found.groups()))
    return None


def _model_index(
    card: TaskCard, *, name: str, manifest: Mapping[str, Any]
) -> list[dict[str, Any]] | None:
    metrics = manifest.get("metrics", {})
    best = metrics.get("best") or metrics.get("eval") or {}
    measured = [
        {
            "type": card.metric_types.get(metric, metric),
            "value": round(value, _DIGITS),
            "name": metric,
        }
        for metric, value in best.items()
        if metric not in _NOT_MEASURES and isinstance(value, int | float) and math.isfinite(value)
    ]
    dataset = next(_evaluation_data(manifest), None)
    if not measured or dataset is None:
        return None
    task = {"type": card.pipeline_tag, "name": card.title}
    return [{"name": name, "results": [{"task": task, "dataset": dataset, "metrics": measured}]}]


def _evaluation_data(manifest: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """The files that may hold the rows that a run was evaluated on, the likeliest first."""
    for key in ("eval", "train", "data"):
        for each in manifest.get("inputs", []):
            if each.get("key", "").partition("[")[0] == key:
                name = Path(each["path"]).name
                yield {
                    "type": _LOADERS.get(table_format_by_name(name) or "", "text"),
                    "name": name if key == "eval" else f"{name} (held out)",
                    "split": "validation",
                }
