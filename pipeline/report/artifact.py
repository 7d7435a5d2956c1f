"""The output of `bert-pipeline inspect`: the manifest in words, then samples of the content.

The kind of an artifact is the command in its manifest; `_KINDS` has a name for each kind and a
function that describes its content. A new command needs a line there.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf.base.checksums import file_sha256
from bert_tf.base.errors import InputError, UsageError
from bert_tf.base.json_files import read_json_object
from bert_tf.base.wording import quantity, shown_number, shown_setting, shown_size
from bert_tf.config.bert_file import CONFIG, TASK
from bert_tf.config.embedding_recipe import RAW_CLS
from bert_tf.config.section import Section
from bert_tf.config.sections import SECTIONS, FinetuneConfig
from bert_tf.data.tables.text_files import open_text
from bert_tf.data.text.vocab_file import read_vocab
from bert_tf.engines.registry import exported_folder
from bert_tf.export.registry import recognize_format
from bert_tf.tasks.registry import TASKS
from bert_tf.training.metrics_log import read_metrics
from pipeline.outputs.manifest import manifest_path, read_manifest, rejects_path

Fact = tuple[str, str]
_INPUTS_SHOWN = 3  # of each config key
_TABLES_SHOWN = 3
_NAMES_SHOWN = 10  # of artifacts to inspect instead
_FILES_SHOWN = 5  # that have changed
# Read in about a second, so that inspecting terabytes of records takes no longer.
LARGEST_BYTES_HASHED = 256_000_000
_LEAST_RANGE = 1e-12  # of losses that are all equal, to divide by


def loss_curve_lines(metrics_path: Path, *, width: int = 60, height: int = 10) -> list[str]:
    """Plot the loss by step as lines of text: `*` are train means of a column, `o` eval.

    Args:
        metrics_path: of `metrics.jsonl`, which may not exist yet.
        width: columns of the plot, without its labels.
        height: rows of the plot, without its axis.

    Returns:
        The lines, or none with fewer than two train losses.
    """
    lines_with_loss = [line for line in read_metrics(metrics_path) if "loss" in line]
    points = {}
    for split in ("train", "eval"):
        of_split = [line for line in lines_with_loss if line["split"] == split]
        pairs = [(line["step"], line["loss"]) for line in of_split]
        points[split] = np.array(pairs, dtype=float).reshape(-1, 2)
    if len(points["train"]) < 2:
        return []
    both = np.concatenate(list(points.values()))
    first, lowest = both.min(axis=0)
    last, highest = both.max(axis=0)
    grid = np.full((height, width), " ")
    for split, mark in (("train", "*"), ("eval", "o")):
        steps, values = points[split].T
        columns = np.rint((steps - first) / max(last - first, 1) * (width - 1)).astype(int)
        for column in np.unique(columns):
            value = values[columns == column].mean()
            depth = (highest - value) / max(highest - lowest, _LEAST_RANGE)
            grid[round(depth * (height - 1)), column] = mark
    labels = np.linspace(highest, lowest, height)
    lines = [f"{label:9.3f} |{''.join(row)}" for label, row in zip(labels, grid, strict=True)]
    last_step = f"{last:.0f}"
    axis = f"step {first:.0f}".ljust(width - len(last_step)) + last_step
    legend = "loss: * train" + ("  o eval" if len(points["eval"]) else "")
    return [legend, *lines, " " * 10 + "+" + "-" * width, " " * 11 + axis]


def leaves(mapping: dict[str, Any], *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the non-empty values of nested mappings, each with its path of keys."""
    for key, value in mapping.items():
        if isinstance(value, dict):
            yield from leaves(value, *path, key)
        elif value not in (None, [], ""):
            yield (*path, key), value


def setting_facts(mapping: dict[str, Any]) -> list[tuple[tuple[str, ...], str]]:
    """Return the path and the words of each setting in nested mappings."""
    return [(path, shown_setting(value)) for path, value in leaves(mapping)]


def changed_settings(manifest: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """Return the non-default config of a manifest, and the number of defaults left out."""
    config = manifest.get("config", {})
    section = section_of(manifest.get("command", ""), config)
    defaults = {} if section is None else section().as_dict()
    changed = {
        key: value for key, value in config.items() if key not in defaults or value != defaults[key]
    }
    unchanged = {key: value for key, value in config.items() if key not in changed}
    return changed, len(list(leaves(unchanged)))


def section_of(command: str, config: dict[str, Any]) -> type[Section] | None:
    """Return the section of a manifest's config, or None for an unknown command or task."""
    if command == FinetuneConfig.section_name:
        declaration = TASKS.get(config.get("task", ""))
        return None if declaration is None else declaration.options
    return SECTIONS.get(command.replace("-", "_"))


def measured_facts(mapping: dict[str, Any]) -> list[tuple[tuple[str, ...], str]]:
    """Return counts and measures in words, without `split: train` below the key `train`."""
    return [
        (path, shown_number(value))
        for path, value in leaves(mapping)
        if path[-2:] != (value, "split")
    ]


def input_facts(inputs: list[dict[str, Any]]) -> list[Fact]:
    """Return the first inputs of each config key, and the number of the others."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for item in inputs:
        groups.setdefault(str(item.get("key", "input")).partition("[")[0], []).append(item)
    facts = []
    for key, items in groups.items():
        name = "input" if key == "input" else f"input {key}"
        listed = items if len(items) <= _INPUTS_SHOWN + 1 else items[:_INPUTS_SHOWN]
        facts += [
            (name, f"{item['path']}  {shown_size(item['bytes'])}  sha256 {item['sha256'][:12]}")
            for item in listed
        ]
        more = len(items) - len(listed)
        if more:
            total = f"{len(items):,} in all, {shown_size(sum(item['bytes'] for item in items))}"
            facts.append((name, f"and {more:,} more; {total}"))
    return facts


def duration(timings: dict[str, float]) -> str:
    """Format the seconds of a job, and those of its last part if it was interrupted."""
    total = f"{timings['total']:,.1f} s"
    if "last_part" in timings:
        return f"{total}, of which {timings['last_part']:,.1f} s since it was resumed"
    return total


def require_manifest(path: str) -> dict[str, Any]:
    """Return the manifest of an artifact.

    Raises:
        UsageError: there is no artifact at `path`.
        InputError: the output is unfinished.
    """
    if not Path(path).exists():
        raise UsageError(f"{path}: no such file or folder; check the path")
    manifest = read_manifest(path)
    if manifest is not None:
        return manifest
    if (Path(path) / "config.yaml").is_file():
        raise InputError(
            f"{path}: unfinished, it has no manifest yet; run the command that began it again "
            f"(its config is in {path}/config.yaml)"
        )
    raise UsageError(
        f"{path}: not an output of bert-pipeline, it has no {manifest_path(path).name}{_hint(path)}"
    )


def _hint(path: str) -> str:
    """Name artifacts to inspect instead: the one around `path`, those inside, or the kinds."""
    place = Path(path).absolute()
    for folder in place.parents:
        if (folder / "manifest.json").is_file():
            return f"; it is a part of {folder}, inspect that"
    if place.is_dir():
        names = [child.name for child in sorted(place.iterdir()) if manifest_path(child).is_file()]
        if names:
            more = ", …" if len(names) > _NAMES_SHOWN else ""
            return f", but holds some: inspect {', '.join(names[:_NAMES_SHOWN])}{more} in it"
    kinds = "; give a vocabulary file, a data, run or model folder, or a scored file"
    if place.is_file():
        return (
            f"{kinds}; for a corpus, name its format: --set preprocess.format=text (jsonl, csv, …)"
        )
    return kinds


def describe_artifact(path: str, *, samples: int, all_settings: bool = False) -> Iterator[str]:
    """Yield lines on an artifact as they become known, so that a terminal shows the first at once.

    Args:
        path: of an output, or of a model directory that another project made.
        samples: most entries, lines or examples of the content.
        all_settings: whether to list settings with default values.

    Yields:
        Kind, config, inputs, counts, metrics, whether the files changed, samples, versions.

    Raises:
        UsageError: there is no artifact at `path`.
        InputError: it is unfinished, or a file of it is damaged.
    """
    if is_foreign_model(path):
        yield foreign_headline(path)
        yield from model_lines(Path(path))
        return
    manifest = require_manifest(path)
    yield headline(path, manifest)
    yield from _config_lines(manifest, all_settings=all_settings)
    yield from (f"{name}: {text}" for name, text in input_facts(manifest.get("inputs", [])))
    for key in ("counts", "metrics"):
        yield from _fact_lines(key, measured_facts(manifest.get(key, {})))
    yield from (f"note: {note}" for note in manifest.get("notes", []))
    yield f"made in {duration(manifest['timings'])}"
    if manifest.get("outputs"):
        yield files_line(Path(path), manifest["outputs"])
    if manifest.get("command") == "preprocess":
        # Readers, with Beam, and TensorFlow, which reads records
        from pipeline.report.corpus.evidence import rule_table, table_lines
        from pipeline.report.records import record_lines, summarize_records

        yield from table_lines(rule_table(manifest))
        yield from record_lines(summarize_records(path, samples=samples))
    else:
        yield from content_lines(manifest, Path(path), samples=samples)
    versions = ", ".join(f"{name} {version}" for name, version in manifest["versions"].items())
    yield f"made with {versions}"
    if manifest.get("next"):
        yield f"next: {manifest['next']}"


def file_differences(
    path: Path, outputs: list[dict[str, Any]], is_hashed: Callable[[int], bool]
) -> Iterator[str]:
    """Yield each file that differs from the manifest's `outputs`, and how, the smallest first.

    Args:
        path: the artifact. If it is a single file that was renamed, its lists beside it are
            expected under the new name, too.
        outputs: `path`, `bytes` and `sha256` of each file.
        is_hashed: whether to hash a file of this size; other files are compared only by size.

    Yields:
        A name, and the difference in brackets.
    """
    first = outputs[0]["path"]
    for output in sorted(outputs, key=lambda output: (output["bytes"], output["path"])):
        name = output["path"]
        if path.is_dir():
            file = path / name
        else:
            file = path.with_name(path.name + name.removeprefix(first))
        if not file.is_file():
            yield f"{name} (missing)"
            continue
        size = file.stat().st_size
        if size != output["bytes"]:
            yield f"{name} ({size:,} bytes instead of {output['bytes']:,})"
        elif is_hashed(size) and file_sha256(file) != output["sha256"]:
            yield f"{name} (another SHA-256)"


def files_line(path: Path, outputs: list[dict[str, Any]]) -> str:
    """Compare all sizes, and contents up to `LARGEST_BYTES_HASHED` in all; return the finding."""
    hashed = 0
    budget = LARGEST_BYTES_HASHED

    def is_within_budget(size: int) -> bool:
        nonlocal hashed, budget
        budget -= size
        if budget < 0:
            return False
        hashed += 1
        return True

    differences = list(file_differences(path, outputs, is_within_budget))
    if differences:
        named = ", ".join(differences[:_FILES_SHOWN])
        more = len(differences) - _FILES_SHOWN
        return (
            f"warning: {len(differences)} of {quantity(len(outputs), 'file')} changed or missing: "
            f"{named}{f' and {more:,} more' if more > 0 else ''}"
        )
    method = "by SHA-256" if hashed == len(outputs) else f"by size, {hashed:,} also by SHA-256"
    return f"outputs: {quantity(len(outputs), 'file')} unchanged (compared {method})"


def is_foreign_model(path: str) -> bool:
    """Return whether a folder is a model directory without a manifest of this project."""
    is_model = recognize_format(path) is not None or (Path(path) / CONFIG).is_file()
    return is_model and read_manifest(path) is None


def foreign_headline(path: str) -> str:
    """Return the first line on a model directory without a manifest."""
    model_format = recognize_format(path)
    title = "" if model_format is None else f" ({model_format.title})"
    return f"{path}: model directory{title} without a manifest"


def headline(path: str, manifest: dict[str, Any]) -> str:
    """Return the first line on an artifact: its path, its kind, and the command that made it."""
    command = manifest.get("command", "")
    return f"{path}: {meaning_of(command)}, made by bert-pipeline {command}"


def meaning_of(command: str) -> str:
    """Return the name of the kind of artifact that a command makes, for the reader of a page."""
    return _KINDS.get(command, _UNKNOWN).meaning


def _config_lines(manifest: dict[str, Any], *, all_settings: bool) -> list[str]:
    if all_settings:
        return _fact_lines("config", setting_facts(manifest.get("config", {})))
    changed, defaults = changed_settings(manifest)
    lines = _fact_lines("config", setting_facts(changed))
    if defaults:
        lines.append(
            f"config: {quantity(defaults, 'more key')} with default values (see --all-settings)"
        )
    return lines


def _fact_lines(title: str, facts: list[tuple[tuple[str, ...], str]]) -> list[str]:
    return [f"{' '.join((title, *groups))}: {key} = {text}" for (*groups, key), text in facts]


def content_lines(manifest: dict[str, Any], path: Path, *, samples: int) -> list[str]:
    """Describe the content of an artifact by its kind; no lines for kinds that have no samples."""
    return _KINDS.get(manifest.get("command", ""), _UNKNOWN).lines(path, samples)


def tables_of(folder: Path) -> list[Path]:
    """Return the first tables of a folder, without its manifest, rejects and hidden files."""
    own = (manifest_path(folder), rejects_path(folder), folder / "config.yaml")
    tables = (path for path in sorted(folder.iterdir()) if path.is_file() and path not in own)
    return [path for path in tables if not path.name.startswith(".")][:_TABLES_SHOWN]


def _first_lines(path: Path, number: int) -> list[str]:
    with open_text(path, newline="\n") as stream:
        return [f"{path.name}: {line.rstrip()}" for line in itertools.islice(stream, number)]


def _vocabulary_lines(path: Path, samples: int) -> list[str]:
    entries = read_vocab(path)
    continued = sum(entry.startswith("##") for entry in entries)
    longest = sorted(entries, key=len, reverse=True)[:samples]
    lines = [f"{quantity(len(entries), 'entry')}, {continued:,} of them continue a word"]
    return [*lines, f"the longest: {' '.join(longest)}"] if longest else lines


def model_lines(folder: Path) -> list[str]:
    """Describe the config, task and files of a model directory.

    Raises:
        InputError: a file is not a JSON object.
    """
    folder = exported_folder(folder)
    lines = []
    model_format = recognize_format(folder)
    for name in (CONFIG if model_format is None else model_format.config_file, TASK):
        if (folder / name).is_file():
            content = {**read_json_object(folder / name), "label2id": None}  # repeats id2label
            lines += _fact_lines(name, setting_facts(content))
    if (folder / "saved_model.pb").is_file() and not (folder / TASK).is_file():
        lines.append(f"note: {RAW_CLS}")  # one of its outputs
    sizes = (f"{path.name} {shown_size(path.stat().st_size)}" for path in own_files(folder))
    return [*lines, f"files: {', '.join(sizes)}"]


def own_files(folder: Path) -> list[Path]:
    """Return the files of a model in its folder, without those about the job that made it."""
    return [
        path
        for path in sorted(folder.iterdir())
        if path.is_file() and path.name not in ("manifest.json", "config.yaml", "job.log")
    ]


def _table_lines(path: Path, samples: int) -> list[str]:
    tables = [path] if path.is_file() else tables_of(path)
    return [line for table in tables for line in _first_lines(table, samples)]


@dataclasses.dataclass(frozen=True)
class _Kind:
    """A kind of artifact.

    Attributes:
        meaning: its name for the user.
        lines: describes the content of a path by a number of samples.
    """

    meaning: str
    lines: Callable[[Path, int], list[str]] = lambda path, samples: []


_UNKNOWN = _Kind("artifact")
_KINDS = {
    "vocab": _Kind("WordPiece vocabulary", _vocabulary_lines),
    "preprocess": _Kind("pretraining TFRecords"),
    "train": _Kind("pretraining run", lambda path, _: loss_curve_lines(path / "metrics.jsonl")),
    "finetune": _Kind("fine-tuning run", lambda path, _: loss_curve_lines(path / "metrics.jsonl")),
    "label-errors": _Kind(
        "rows with doubtful labels",
        lambda path, samples: _first_lines(path / "label_errors.csv", samples + 1),
    ),
    "evaluate": _Kind(
        "evaluation", lambda path, samples: _first_lines(path / "predictions.jsonl", samples)
    ),
    "export": _Kind("exported model", lambda path, _: model_lines(path)),
    "score": _Kind("scored rows", _table_lines),
    "embed": _Kind("vectors of texts"),
    "search": _Kind("search results", _table_lines),
    "summarize": _Kind("summarized rows"),
    "import-weights": _Kind("model directory", lambda path, _: model_lines(path)),
}
