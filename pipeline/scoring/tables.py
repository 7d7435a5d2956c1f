"""The tables to score, with their outputs and formats."""

from __future__ import annotations

import dataclasses
import itertools
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from bert_tf.base.errors import UsageError
from bert_tf.data.tables.dialect import TABLE_FORMATS, compression_of, table_format_by_name
from bert_tf.data.tables.formats.conll import ENDINGS as CONLL_ENDINGS
from bert_tf.data.tables.formats.conll import is_conll
from bert_tf.data.tables.tables import table_format
from pipeline.beam.files import match_files
from pipeline.beam.stored_path import path_of
from pipeline.outputs.manifest import manifest_path, rejects_path
from pipeline.outputs.place import check_folder_name

CONLL = "conll"
_NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
_PARTITION = re.compile(r"[^=]+=")  # a folder of a Hive layout: `day=2024-01-05`


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScoredTable:
    """A table and its output.

    Attributes:
        number: place among the inputs, from 0.
        source, output: the files.
        name: of the output in its folder; empty if the output is one file.
        partitions: values by name of the folders of a Hive layout, which become columns; None for
            its null.
        source_format, output_format: `csv`, `tsv`, `jsonl`, `parquet` or `conll`. A source has one
            of the last two only if the output has the same; otherwise its rows become JSON lines.
    """

    number: int
    source: str
    output: str
    name: str = ""
    partitions: Mapping[str, str | None] = dataclasses.field(default_factory=dict)
    source_format: str
    output_format: str


def list_tables(
    patterns: tuple[str, ...],
    output: str,
    *,
    has_words: bool = False,
    named: Mapping[str, str] | None = None,
) -> tuple[list[ScoredTable], bool]:
    """Expand paths and globs and name their outputs, sorted by input path.

    `output` is a file for one input if it ends like a table's name. Otherwise it is a folder in
    which every table keeps its name and format. If names collide, or tables are in a Hive layout,
    they also keep the folders that they do not share.

    Args:
        patterns: paths and globs.
        output: a file or folder.
        has_words: whether the model takes CoNLL files.
        named: inputs of earlier runs by the names of their outputs in the folder; these inputs keep
            the names.

    Returns:
        The tables, and whether `output` is a folder.

    Raises:
        UsageError: nothing matches, a format is unsupported, or two files of the job would have the
            same path.
    """
    endings = (*TABLE_FORMATS, *CONLL_ENDINGS) if has_words else tuple(TABLE_FORMATS)
    is_table = table_format_by_name(output) is not None or (has_words and is_conll(output))
    is_folder = path_of(output).is_dir() or not is_table
    if is_folder:
        check_folder_name(output, f"end the name with {', '.join(endings)}, or with / for a folder")
    sources = [file.path for file in match_files(patterns, endings=endings, output=output)]
    if not is_folder:
        _check_file(sources, output)
    names = _names_in_folder(sources, output) if is_folder else [""]
    if is_folder and named:
        names = _kept_names(sources, names, named, output)
    place = path_of(output)
    notes = [manifest_path(place), rejects_path(place)]
    if is_folder:
        notes = [place / "manifest.json", place / "rejects.jsonl"]
    own = [path.resolve() for path in notes]
    tables = []
    for number, (source, name) in enumerate(zip(sources, names, strict=True)):
        target = str(place / name) if is_folder else output
        if path_of(source).resolve() in (path_of(target).resolve(), *own):
            raise UsageError(f"--output {output}: would replace the input {source}; name another")
        if path_of(target).resolve() in own:
            raise UsageError(
                f"{source}: the job writes a file of this name into --output {output}; "
                "score this input into a file"
            )
        output_format = _format(target, has_words=has_words)
        source_format = row_format(source, output_format, has_words=has_words)
        if output_format == CONLL != source_format:
            raise UsageError(f"--output {output}: only CoNLL inputs have CoNLL outputs; use .jsonl")
        tables.append(
            ScoredTable(
                number=number,
                source=source,
                output=target,
                name=name,
                source_format=source_format,
                output_format=output_format,
            )
        )
    return tables, is_folder


def partitions_of(sources: Sequence[str]) -> list[dict[str, str | None]]:
    """Return the partitions of each of several files: values by the names of their folders.

    Names and values are escaped like in URLs, and a null has a name of its own (Hive's
    `FileUtils.escapePathName`, `hive.exec.default.partition.name`).
    """
    partitions = []
    for source in sources:
        folders = [part for part in PurePosixPath(source).parts[:-1] if _PARTITION.match(part)]
        pairs = [folder.split("=", 1) for folder in folders]
        partitions.append({unquote(key): _partition_value(value) for key, value in pairs})
    return partitions if len(sources) > 1 else [{} for _ in sources]


def _partition_value(written: str) -> str | None:
    return None if written == _NULL_PARTITION else unquote(written)


def _check_file(sources: Sequence[str], output: str) -> None:
    """Raise UsageError if an output that is one file cannot hold the rows of the inputs."""
    if len(sources) > 1:
        raise UsageError(
            f"--output {output}: is one file, but {len(sources)} files are scored ({sources[0]}, "
            f"{sources[1]}, …); give a folder"
        )
    if table_format_by_name(output) == "parquet" and compression_of(output) is not None:
        raise UsageError(
            f"--output {output}: Parquet has its own compression; use the extension .parquet"
        )


def _names_in_folder(sources: Sequence[str], output: str) -> list[str]:
    """Name outputs, by relative path where names collide or folders are partitions."""
    paths = [PurePosixPath(_absolute(source)).parts for source in sources]
    levels = zip(*(path[:-1] for path in paths), strict=False)
    shared = sum(1 for _ in itertools.takewhile(lambda level: len(set(level)) == 1, levels))
    below = [path[shared:] for path in paths]
    has_partitions = any(_PARTITION.match(folder) for path in below for folder in path[:-1])
    if len({path[-1] for path in paths}) == len(paths) and not has_partitions:
        return [path[-1] for path in paths]
    if not shared:
        raise UsageError(
            f"--output {output}: inputs with the same name are on different storage; score them "
            "one at a time"
        )
    return [str(PurePosixPath(*path)) for path in below]


def _kept_names(
    sources: Sequence[str], names: Sequence[str], named: Mapping[str, str], output: str
) -> list[str]:
    """Keep the names of earlier runs for their inputs, and give new inputs names that are free.

    A new file may have the same name as an earlier one. The output of the earlier one keeps its
    name: it is not written again under a longer name, and the new file does not replace it.

    Args:
        sources: paths of the inputs.
        names: of their outputs in a new folder.
        named: see `list_tables`.
        output: the folder, for the message.
    """
    name_of = _earlier_names(sources, named)
    taken = {*named, *name_of.values()}
    for source, name in zip(sources, names, strict=True):
        if source in name_of:
            continue
        candidates = (name, *_longer_names(source))
        free = next((candidate for candidate in candidates if candidate not in taken), None)
        if free is None:
            raise UsageError(
                f"{source}: the output {name} in --output {output} is that of another input of an "
                "earlier run; rename one, or score this one into another folder"
            )
        name_of[source] = free
        taken.add(free)
    return [name_of[source] for source in sources]


def _earlier_names(sources: Sequence[str], named: Mapping[str, str]) -> dict[str, str]:
    """Return the names of the inputs that an earlier run had, by their paths now.

    Equal paths come first: `/archive/x/a.csv` ends like `x/a.csv`, which is another file if it is
    an input, too. Another path that ends like an earlier one is taken for the same file; if it ends
    like several, for the one with the most folders in common. It is not if other inputs end like
    that one as well, since the output of the wrong file would be replaced.

    Args:
        sources: paths of the inputs.
        named: see `list_tables`.
    """
    earlier = {_absolute(path): name for name, path in named.items()}
    names = {
        source: earlier[_absolute(source)] for source in sources if _absolute(source) in earlier
    }
    used = set(names.values())
    by_file: dict[str, list[tuple[str, str]]] = {}
    for name, path in named.items():
        if name not in used:
            by_file.setdefault(PurePosixPath(path).name, []).append((name, path))
    claims: dict[str, list[str]] = {}
    for source in sources:
        if source in names:
            continue
        similar = [
            (_common_parts(source, path), name)
            for name, path in by_file.get(PurePosixPath(source).name, [])
        ]
        count, name = max(similar, default=(0, ""))
        if count:
            claims.setdefault(name, []).append(source)
    return names | {claimed[0]: name for name, claimed in claims.items() if len(claimed) == 1}


def _absolute(path: str) -> str:
    return path if "://" in path else os.path.normpath(Path(path).absolute())


def _common_parts(one: str, other: str) -> int:
    """Return the number of common parts of two paths that may name the same file; 0 if they cannot.

    They may if one path ends like all of the other, such as a relative and an absolute path. A name
    without a folder is not enough.
    """
    shorter, longer = sorted((_named_parts(one), _named_parts(other)), key=len)
    is_end = longer[len(longer) - len(shorter) :] == shorter
    return len(shorter) if is_end and len(shorter) > 1 else 0


def _named_parts(path: str) -> list[str]:
    return [part for part in PurePosixPath(path).parts if part not in ("/", ".", "..")]


def _longer_names(source: str) -> Iterator[str]:
    """Yield names with one more folder each: `x/a.csv`, `new/x/a.csv`."""
    parts = _named_parts(source)
    for count in range(2, len(parts) + 1):
        yield str(PurePosixPath(*parts[-count:]))


def row_format(source: str, output_format: str, *, has_words: bool = False) -> str:
    """Return the format of rows in parts: JSON for Parquet and CoNLL, unless the output has it."""
    name = _format(source, has_words=has_words)
    return "jsonl" if name in ("parquet", CONLL) and name != output_format else name


def _format(path: str, *, has_words: bool) -> str:
    return CONLL if has_words and is_conll(path) else table_format(path)
