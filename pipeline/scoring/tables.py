"""Which tables are scored, where each goes, and in which format."""

from __future__ import annotations

import collections
import dataclasses
from pathlib import Path

from bert_tf.base.errors import UsageError
from bert_tf.data.tables.file_names import TABLE_FORMATS, compression_of, table_format_by_name
from bert_tf.data.tables.formats.conll import ENDINGS as CONLL_ENDINGS
from bert_tf.data.tables.formats.conll import is_conll
from bert_tf.data.tables.tables import table_format
from pipeline.beam.files import match_files
from pipeline.beam.stored_path import path_of
from pipeline.outputs.manifest import manifest_path, rejects_path

CONLL = "conll"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScoredTable:
    """One input and its output.

    Attributes:
        number: place among the inputs, from 0.
        source, output: the files.
        source_format, output_format: `csv`, `tsv`, `jsonl`, `parquet` or `conll`, of sources the
            last two only where the output is the same; otherwise their rows become JSON lines.
    """

    number: int
    source: str
    output: str
    source_format: str
    output_format: str


def list_tables(
    patterns: tuple[str, ...], output: str, *, has_words: bool = False
) -> tuple[list[ScoredTable], bool]:
    """Expands the inputs and names their outputs.

    One input goes to `output` if that ends like a table's name; otherwise `output` is a folder in
    which every table keeps its name and format.

    Args:
        patterns: paths and globs.
        output: file or folder.
        has_words: whether CoNLL files are tables as well.

    Returns:
        The tables, sorted by path, and whether `output` is a folder.

    Raises:
        UsageError: nothing matches, a format is not known or cannot be written, two outputs would
            have one name, an output would replace its input, or the manifest or rejects of the job
            would replace an output or an input.
    """
    endings = (*TABLE_FORMATS, *CONLL_ENDINGS) if has_words else tuple(TABLE_FORMATS)
    sources = [file.path for file in match_files(patterns, endings=endings, output=output)]
    is_table = table_format_by_name(output) is not None or (has_words and is_conll(output))
    is_folder = path_of(output).is_dir() or not is_table
    if len(sources) > 1 and not is_folder:
        raise UsageError(
            f"--output {output}: names one file, but {len(sources)} files are to be scored "
            f"({sources[0]}, {sources[1]}, …); name a folder"
        )
    names = collections.Counter(Path(source).name for source in sources)
    twice = [name for name, count in names.items() if count > 1]
    if twice and is_folder:
        raise UsageError(
            f"--output {output}: two inputs would become {twice[0]}; score them one at a time"
        )
    if not is_folder and _is_compressed_parquet(output):
        raise UsageError(
            f"--output {output}: Parquet is compressed inside; let the name end in .parquet"
        )
    tables = []
    own = _own_files(output, is_folder=is_folder)
    for number, source in enumerate(sources):
        target = str(path_of(output) / path_of(source).name) if is_folder else output
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
            raise UsageError(
                f"--output {output}: only CoNLL files become CoNLL files; name it .jsonl"
            )
        tables.append(
            ScoredTable(
                number=number,
                source=source,
                output=target,
                source_format=source_format,
                output_format=output_format,
            )
        )
    return tables, is_folder


def row_format(source: str, output_format: str, *, has_words: bool = False) -> str:
    """How rows travel to the output: those of Parquet and CoNLL as JSON, unless it is the same."""
    name = _format(source, has_words=has_words)
    return "jsonl" if name in ("parquet", CONLL) and name != output_format else name


def _format(path: str, *, has_words: bool) -> str:
    return CONLL if has_words and is_conll(path) else table_format(path)


def _is_compressed_parquet(output: str) -> bool:
    return table_format_by_name(output) == "parquet" and compression_of(output) is not None


def _own_files(output: str, *, is_folder: bool) -> list[Path]:
    """Where the job's manifest and rejects will be."""
    place = path_of(output)
    if is_folder:
        return [(place / name).resolve() for name in ("manifest.json", "rejects.jsonl")]
    return [manifest_path(place).resolve(), rejects_path(place).resolve()]
