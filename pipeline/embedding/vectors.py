"""Reads vectors from outputs of `embed`, or from other files of the same form."""

from __future__ import annotations

import contextlib
import dataclasses
import warnings
from collections.abc import Iterator
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bert_tf.base.errors import InputError, UsageError
from bert_tf.base.wording import quantity
from bert_tf.data.tables.formats.parquet import DAMAGE
from bert_tf.embeddings.settings import EMBEDDING
from pipeline.beam.stored_path import path_of
from pipeline.outputs.manifest import check_files, read_manifest


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextVectors:
    """Vectors of texts from a file.

    Attributes:
        vectors: float32 [texts, dimensions].
        texts: string [texts]; None if the file has none.
        made_with: model and settings; None if the file has no manifest that names them.
        prompt: put before each text; None if not known.
    """

    source: str
    vectors: np.ndarray
    texts: pa.ChunkedArray | None
    made_with: dict[str, Any] | None
    prompt: str | None = None


def holds_vectors(path: str) -> bool:
    """Return whether a file is a NumPy array, or Parquet with a column `embedding`.

    Raises:
        UsageError: there is no such file.
        InputError: the Parquet file cannot be read.
    """
    if path.endswith(".npy"):
        return True
    if not path.endswith(".parquet"):
        return False
    if not path_of(path).is_file():
        raise UsageError(f"{path}: no such file; check the path")
    try:
        with _opened(path) as file:
            schema = pq.read_schema(file)
    except DAMAGE as error:
        raise _unreadable(path, error) from None
    return EMBEDDING in schema.names


def read_vectors(path: str, *, text_column: str | None) -> TextVectors:
    """Read the vectors of a .npy or .parquet file, and the texts that Parquet holds beside them.

    Args:
        path: of the file.
        text_column: None takes the column that the manifest names, otherwise `text`.

    Raises:
        UsageError: the file or column is missing.
        InputError: the file has no valid vectors.
    """
    if not path_of(path).is_file():
        raise UsageError(f"{path}: no such file; check the path")
    check_files(path)
    manifest = read_manifest(path) or {}
    texts = None
    if path.endswith(".npy"):
        vectors = _read_npy(path)
    else:
        named = text_column or manifest.get("columns", {}).get("text")
        vectors, texts = _read_parquet(path, named)
    if not len(vectors) or not vectors.shape[1]:
        raise InputError(f"{path}: holds no vectors")
    if not np.isfinite(vectors).all():
        raise InputError(f"{path}: holds vectors that are not numbers; make the file again")
    made_with: dict[str, Any] | None = None
    prompt: str | None = None
    models = [item["sha256"] for item in manifest.get("inputs", []) if item.get("key") == "model"]
    if manifest.get("command") == "embed" and len(models) == 1:
        settings = {key: value for key, value in manifest["embedding"].items() if key != "tokens"}
        made_with = {"model": models[0], "lowercase_texts": False, **settings}
        # Queries and documents may have other prompts, so these are not compared.
        prompt = made_with.pop("prompt", "")
    return TextVectors(
        source=path, vectors=vectors, texts=texts, made_with=made_with, prompt=prompt
    )


def check_comparable(queries: TextVectors, corpus: TextVectors) -> None:
    """Raise UsageError for vectors of other dimensions, models or settings."""
    size = queries.vectors.shape[1]
    other_size = corpus.vectors.shape[1]
    if size != other_size:
        raise UsageError(
            f"{queries.source}: has vectors of {quantity(size, 'dimension')}, {corpus.source} "
            f"of {other_size}; make both with one model"
        )
    if queries.made_with is None or corpus.made_with is None:
        return
    for key, value in queries.made_with.items():
        if corpus.made_with.get(key) != value:
            raise UsageError(
                f"{queries.source} and {corpus.source}: made with another {key}, so their vectors "
                "cannot be compared; make both with one model and the same settings"
            )


def _read_npy(path: str) -> np.ndarray:
    try:
        with _opened(path) as file, warnings.catch_warnings(action="ignore"):
            array = np.load(file, allow_pickle=False)
    except Exception as error:  # damaged headers also raise errors of Python's tokenizer and parser
        raise _unreadable(path, error) from None
    if not isinstance(array, np.ndarray) or array.ndim != 2 or array.dtype.kind != "f":
        raise InputError(f"{path}: expected an array of floating point [rows, dimensions]")
    return np.ascontiguousarray(array, np.float32)


def _read_parquet(path: str, text_column: str | None) -> tuple[np.ndarray, pa.ChunkedArray | None]:
    try:
        with _opened(path) as file:
            names = pq.read_schema(file).names
        if text_column is not None and text_column not in names:
            raise UsageError(f"{path}: no column {text_column!r}; it has {', '.join(names)}")
        if text_column is None and "text" in names:
            text_column = "text"
        columns = [EMBEDDING] if text_column is None else [EMBEDDING, text_column]
        with _opened(path) as file:
            table = pq.read_table(file, columns=columns)
        texts = None if text_column is None else table[text_column].cast(pa.string())
    except DAMAGE as error:
        raise _unreadable(path, error) from None
    column = table[EMBEDDING]
    if not pa.types.is_fixed_size_list(column.type) or column.null_count:
        raise InputError(f"{path}: expected {EMBEDDING} to be a list of fixed size in every row")
    flat = np.concatenate([chunk.flatten().to_numpy() for chunk in column.chunks])
    vectors = flat.astype(np.float32, copy=False).reshape(len(column), column.type.list_size)
    return vectors, texts


@contextlib.contextmanager
def _opened(path: str) -> Iterator[str | IO[bytes]]:
    """Open a file for a library; a local one by name, so that it may be mapped."""
    if "://" not in path:
        yield path
        return
    with path_of(path).open("rb") as stream:
        yield stream


def _unreadable(path: str, error: Exception) -> InputError:
    first_line = str(error).partition("\n")[0]
    return InputError(f"{path}: cannot be read ({first_line}); make the file again")
