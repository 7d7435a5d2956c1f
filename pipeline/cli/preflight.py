"""Finds wrong paths, packages and columns without loading TensorFlow and Beam.

Libraries take seconds to load and data minutes to read. A misspelled path should not cost that
time. The job itself finds faults that are missed here.
"""

from __future__ import annotations

import dataclasses
import glob
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf.base.errors import BertPipelineError, ConfigError
from bert_tf.base.wording import nearest
from bert_tf.config.bert_file import model_folder, read_task
from bert_tf.config.registries import AUTO
from bert_tf.config.section import Reads, Section, fields_of, flag_text, former_defaults
from bert_tf.config.sections import EvaluateConfig, ScoreConfig
from bert_tf.config.sections.data import CorpusSection
from bert_tf.config.sections.scoring import ColumnsSection, TextVectorsSection
from bert_tf.config.sections.tables import COLUMN, RowSection
from bert_tf.data.tables.dialect import TABLE_FORMATS, table_format_by_name
from bert_tf.engines.registry import check_is_exported, exported_folder
from bert_tf.tasks.registry import declared_task
from pipeline.beam.globs import (
    FORMAT_OF_ENDING,
    GLOB_MARK,
    READ_AGAIN,
    instead_of_folder,
    list_local,
    why_no_file,
)
from pipeline.beam.own_files import own_files
from pipeline.outputs.choices import with_kept_choices
from pipeline.outputs.inputs import fingerprint
from pipeline.outputs.job_folder import JobFolder
from pipeline.outputs.job_spec import JobSpec, check_made_by, check_no_differences, config_key
from pipeline.outputs.manifest import INPUTS, read_manifest
from pipeline.outputs.place import OutputPlace, check_folder_name, check_place

_HUB_ID = re.compile(r"[\w-][\w.-]*(/[\w.-]+)?")
_CHOSEN_BY_JOB = {"engine": AUTO, "precision": AUTO, "lowercase": None, "keep_accents": False}
_EXTENDABLE = {"steps", "epochs", "seeds"}
_OPENED_FILES = 3  # of a pattern, whose columns are checked here; the job checks all
_MOST_NEIGHBORS = 10_000  # of a missing file, for "did you mean"
_OF_ANY_COLUMN = ("unlabeled", "exclude")  # keys of files that may have any columns


def check_request(
    command: str, sections: Sequence[Section], *, overwrite: bool
) -> dict[str, Any] | None:
    """Check a request as far as possible without slow imports; the job checks all of it again.

    Args:
        command: its name.
        sections: in the order of the command.
        overwrite: whether an output may be replaced.

    Returns:
        The manifest of a finished output that matches the request, else None.

    Raises:
        ConfigError: with all wrong paths.
        UsageError: a package or column is missing, or the output was made with another config.
        InputError: a file is damaged.
    """
    config = sections[0]
    may_be_none = isinstance(config, ScoreConfig) and config.update
    faults = []
    for spelling, reads, path in itertools.chain.from_iterable(map(_inputs, sections)):
        if may_be_none and GLOB_MARK.search(path) and not list_local(path):
            continue
        fault = path_fault(reads, spelling, path)
        if fault is not None:
            faults.append(fault)
    if faults:
        raise ConfigError(faults)
    for section in sections:
        section.check_installed()
    if isinstance(config, ScoreConfig) and "://" not in config.model:
        check_is_exported(exported_folder(config.model))
    if isinstance(config, CorpusSection) and (
        config.curation or config.languages or config.personal_data
    ):
        from pipeline.corpus.documents import DocumentRules  # Numba, which takes a second

        DocumentRules.from_config(config)
    if isinstance(config, RowSection):
        _check_columns(config)
    _check_output(config, overwrite=overwrite)
    return None if overwrite else _finished(command, config)


def path_fault(reads: Reads, spelling: str, path: str) -> str | None:
    """Return the fault of a local input path.

    Args:
        reads: the kind of path that is needed.
        spelling: of the option or argument, for the message.
        path: as the user wrote it.

    Returns:
        A line with the cure; None if the path is fine or remote.
    """
    if "://" in path:
        return None
    if reads in ("any", "files", "tables"):
        files = list_local(path)
        if reads != "any" and path in files and Path(path).is_dir():
            endings = FORMAT_OF_ENDING if reads == "files" else TABLE_FORMATS
            hint = instead_of_folder(path.rstrip("/"), endings)
            return f"{spelling} {path}: is a folder; {hint}"
        return None if files else f"{spelling} {path}: {why_no_file(path)}{_did_you_mean(path)}"
    place = Path(path)
    if not place.exists():
        if reads in ("file", "table") and (path == "-" or GLOB_MARK.search(path)):
            cure = READ_AGAIN if path == "-" else "no such file; globs are not expanded here"
            return f"{spelling} {path}: {cure}"
        download = _hub_hint(spelling, path) if reads == "model" else None
        if download is not None:
            return download
        near = _did_you_mean(path) or "; check the path"
        return f"{spelling} {path}: no such file or folder{near}"
    if reads in ("file", "table") and place.is_dir():
        return f"{spelling} {path}: is a folder; name a file"
    if reads in ("file", "table") and not place.is_file():
        return f"{spelling} {path}: {READ_AGAIN}"
    if reads in ("folder", "model") and not place.is_dir():
        return f"{spelling} {path}: is a file; give a folder"
    return None


def _inputs(section: Section) -> Iterator[tuple[str, Reads, str]]:
    """Yield spelling on the command line, kind and path of each input."""
    for field in dataclasses.fields(section):
        value = getattr(section, field.name)
        reads = field.metadata["reads"]
        values = value if isinstance(value, tuple) else (value,)
        for number, item in enumerate(values):
            if isinstance(item, Section):
                for _, inner_reads, path in _inputs(item):
                    yield f"{section.section_name}.{field.name}[{number}]", inner_reads, path
            elif reads is not None and item is not None:
                spelling = field.name.upper() if field.metadata["positional"] else flag_text(field)
                yield spelling, reads, item


def _did_you_mean(path: str) -> str:
    """Return the name most like a missing one, as the end of a message."""
    place = Path(path)
    if place.is_symlink():
        return f"; it is a broken link to {place.readlink()}"
    if GLOB_MARK.search(path) or not place.parent.is_dir():
        return ""
    neighbors = itertools.islice(place.parent.iterdir(), _MOST_NEIGHBORS)
    names = [neighbor.name for neighbor in neighbors]
    near = nearest(place.name, names, cutoff=0.7)
    return f"; did you mean '{place.with_name(near)}'?" if near else ""


def _hub_hint(spelling: str, path: str) -> str | None:
    """Return advice to download a model of the Hugging Face Hub; None if the name is none there."""
    is_local = len(Path(path).parts) > 1 and Path(path).parent.is_dir()
    if is_local or not _HUB_ID.fullmatch(path):
        return None
    folder = Path(path).name
    near = _did_you_mean(path) or "; check the path."
    return (
        f"{spelling} {path}: no such folder{near} A model of the Hugging Face Hub is downloaded "
        f"first: hf download {path} --include '*.[bjst]*' --local-dir "
        f"{folder} (of pip install huggingface_hub), then {spelling} {folder}"
    )


def _check_output(config: Section, *, overwrite: bool) -> None:
    """Refuse an output that is an input, has another kind of name, or is not of this command."""
    field = fields_of(config)["output"]
    output = str(config.as_dict()["output"])
    if isinstance(config, EvaluateConfig):
        check_folder_name(output, "it makes a folder: leave out the extension, or end it with /")
    if isinstance(config, ScoreConfig) and table_format_by_name(output) is None:
        from bert_tf.data.tables.formats.conll import is_conll

        if not is_conll(output):
            endings = ", ".join(TABLE_FORMATS)
            check_folder_name(output, f"end the name with {endings}, or with / for a folder")
    if field.metadata["writes"] is None or "://" in output:
        return
    place = OutputPlace(output=output, is_directory=field.metadata["writes"] == "folder")
    folder = JobFolder(place, config.section_name)
    inputs = [
        str(model_folder(path)) if reads == "model" else path
        for _, reads, path in _inputs(config)
        if reads in ("file", "table", "model") and "://" not in path
    ]
    check_place(place, inputs)
    # A run that was killed immediately leaves only hidden files, which the job removes.
    has_only_hidden = place.path.is_dir() and all(
        child.name.startswith(".") for child in place.path.iterdir()
    )
    if not has_only_hidden and folder.manifest is None:
        folder.check_is_ours(overwrite=overwrite)


def _check_columns(config: RowSection) -> None:
    """Check that the first files of each table have the columns that a job needs."""
    needed = config.needed_columns
    if isinstance(config, ColumnsSection | TextVectorsSection):
        needed = {**_columns_of_model(config), **needed}
    if isinstance(config, ColumnsSection):
        needed.update((entry.partition("=")[2], "columns") for entry in config.columns)
    of_evaluation = {field.name for field in dataclasses.fields(EvaluateConfig)}
    for field in dataclasses.fields(config):
        has_rows = field.metadata["reads"] in ("table", "tables", "files")
        if not has_rows or field.name in _OF_ANY_COLUMN:
            continue
        is_eval = field.name in ("eval", "calibrate")
        columns = [name for name, key in needed.items() if not is_eval or key in of_evaluation]
        value = getattr(config, field.name)
        patterns = value if isinstance(value, tuple) else [value]
        for pattern in patterns:
            for path in _first_tables(pattern, config):
                _check_table(path, columns, config)


def _first_tables(pattern: str | None, config: RowSection) -> list[str]:
    """Return the first local tables that match a pattern."""
    if pattern is None or "://" in pattern:
        return []
    paths = _matched(pattern, config)[:_OPENED_FILES]
    chosen = config.format if isinstance(config, CorpusSection) else AUTO
    tables = []
    for path in paths:
        kind = table_format_by_name(path)
        # A pipe can be read once, by the job.
        if kind is not None and chosen in (AUTO, kind) and Path(path).is_file():
            tables.append(path)
    return tables


def _matched(pattern: str, config: Section) -> list[str]:
    """Return the files that match a pattern, without those that the job itself has written."""
    paths = sorted(list_local(pattern))
    own = own_files(paths, pattern, getattr(config, "output", None))
    return [path for path in paths if path not in own]


def _check_table(path: str, columns: Sequence[str], config: RowSection) -> None:
    """Raise if a table lacks columns."""
    from bert_tf.data.tables.cells import check_columns
    from bert_tf.data.tables.dialect import TableDialect
    from bert_tf.data.tables.tables import fixed_columns, read_table_blocks
    from bert_tf.embeddings.settings import EMBEDDING

    if fixed_columns(path):
        return
    try:
        table = read_table_blocks(path, dialect=TableDialect.of(config), max_rows=1)
        block = next(table)
    except BertPipelineError:  # the job reports it
        return
    has_vectors = isinstance(config, TextVectorsSection) and EMBEDDING in block.columns
    if block.columns and not has_vectors:
        check_columns(path, block.header, block.columns, columns)


def _columns_of_model(config: ColumnsSection | TextVectorsSection) -> dict[str, str]:
    """Return the columns that a model reads by default, with the key that overrides each."""
    model: str | None = getattr(config, "model", None)
    if model is None or "://" in model:
        return {}
    settings = read_task(exported_folder(model_folder(model))) or {}
    columns = settings.get("columns", {})
    if isinstance(config, TextVectorsSection):
        if config.text_column:
            return {}
        return {columns.get("text") or "text": "text_column"}
    if not settings:  # the job reports it
        return {}
    declared = declared_task(settings, model)
    if declared.words is not None:  # rows may be lists of words in another column
        return {}
    renamed = {entry.partition("=")[0] for entry in config.columns}
    renamed.update(declared.optional_inputs(settings))
    keys: dict[str, str] = {}
    for name in declared.inputs:
        key = f"{name}{COLUMN}"
        if name in renamed or getattr(config, key, None) is not None:
            continue
        named = columns.get(name)
        names = [named] if isinstance(named, str) else named or []
        keys.update(dict.fromkeys(names, key))
    return keys


def _finished(command: str, config: Section) -> dict[str, Any] | None:
    """Return the manifest of an output that is surely finished, and made from the same inputs."""
    output = str(getattr(config, "output", ""))
    if not output or "://" in output or getattr(config, "dry_run", False):
        return None
    if getattr(config, "update", False):  # the job checks each output
        return None
    manifest = read_manifest(output) if Path(output).exists() else None
    if manifest is None:
        return None
    check_made_by(output, manifest, command)
    if former_defaults(config):
        config = with_kept_choices(config)
    read = {field.name: "" for field in dataclasses.fields(config) if field.metadata["reads"]}
    spec = JobSpec(config=config, inputs=read)
    saved = manifest.get("config", {})
    now = spec.kept_config

    def is_left_to_job(key: str) -> bool:
        if key not in _CHOSEN_BY_JOB or now[key] != _CHOSEN_BY_JOB[key]:
            return False
        return key != "keep_accents" or now["lowercase"] is None

    # The manifest has the job's choice for a key that is left to it, which is no difference.
    keys = [key for key in spec.different_keys(saved) if not is_left_to_job(key)]
    extendable = _EXTENDABLE.intersection(keys)
    if any(dataclasses.replace(spec, extendable_key=key).is_extended(saved) for key in extendable):
        return None  # the job decides whether it can continue
    check_no_differences(output, spec.differences(saved, keys))
    return manifest if _are_inputs_same(config, manifest) and _is_tidy(output) else None


def _are_inputs_same(config: Section, manifest: Mapping[str, Any]) -> bool:
    """Return whether the inputs are those of the manifest, by path and content."""
    recorded: dict[str, list[str]] = {}
    for item in manifest.get("inputs", []):
        recorded.setdefault(config_key(item.get("key", "")), []).append(item["path"])
    for field in dataclasses.fields(config):
        reads = field.metadata["reads"]
        value = getattr(config, field.name)
        if reads is None or value in (None, ()):
            continue
        paths = recorded.pop(field.name, [])
        if reads in ("files", "tables"):
            matched = {path for pattern in value for path in _matched(pattern, config)}
            are_same = matched == set(paths)
        elif reads == "model":
            are_same = len(paths) == 1 and Path(paths[0]).is_relative_to(value)
        else:
            are_same = paths == [value]
        if not are_same:
            return False
    return not recorded and all(
        Path(item["path"]).exists() and fingerprint(item["path"])["sha256"] == item["sha256"]
        for item in manifest["inputs"]
    )


def _is_tidy(output: str) -> bool:
    """Return whether an output has no leftovers that a job would remove."""
    place = Path(output)
    if place.is_dir():
        return not (place / INPUTS).exists()
    return not any(place.parent.glob(f".{glob.escape(place.name)}.*"))
