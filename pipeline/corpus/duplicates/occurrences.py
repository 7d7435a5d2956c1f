"""Documents and lines as small records of hashes and places, and which of them are copies."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from pipeline.beam.blobs import BlobReference, BlobStore, BlobWriter
from pipeline.beam.packing import unpack
from pipeline.corpus.document_block import DocumentBlock

_NUM_PARTITIONS = 64  # of all keys; each is the work of one step on one worker
_SLICE_BYTES = 128 * 1024 * 1024  # of rows in memory at a time
# Partitions take other bits of a key than its remainder, by which `read_slices` cuts them.
_PARTITION_SHIFT = np.uint64(40)
KEY = np.dtype("u8")  # see `FoldedBlock`
# The key, the identity (`document_hashes`), the line of the file where the
# document begins, its number in its block, and its block's number among the sources.
OCCURRENCE = np.dtype(
    [("key", "u8"), ("identity", "u8"), ("line", "i8"), ("document", "u4"), ("block", "u4")]
)
# The key of a dropped document; identity, file and line of the one that stays; their similarity.
KEPT = np.dtype(
    [("key", "u8"), ("identity", "u8"), ("source", "i8"), ("line", "i8"), ("similarity", "f8")]
)
EXACT_COPY = "exact copy"
NEAR_DUPLICATE = "near duplicate"
ELSEWHERE = "duplicate elsewhere"
# Reasons to drop a document; arrays hold their places here. The last is for `duplicates_against`.
REASONS = (EXACT_COPY, NEAR_DUPLICATE, ELSEWHERE)
# A block: its file and its number in it.
BlockId = tuple[str, int]
REPEATED_LINE = "repeated line"
ONLY_REPEATED_LINES = "only repeated lines"
# The key, its document's identity and number in the block, the line's number in its document and in
# its block, and the block's number in a list.
LINE = np.dtype(
    [
        ("key", "u8"),
        ("identity", "u8"),
        ("number", "u4"),
        ("line", "u4"),
        ("document", "u4"),
        ("block", "u4"),
    ]
)


def partitions_of(keys: np.ndarray) -> np.ndarray:
    """Return the partition of each key, a 64-bit hash: uint64 of the same shape."""
    return (keys >> _PARTITION_SHIFT) % np.uint64(_NUM_PARTITIONS)


def partition_rows(
    rows: np.ndarray, keys: np.ndarray, writer: BlobWriter
) -> list[tuple[int, BlobReference]]:
    """Store rows by the partition of their keys.

    Args:
        rows: records [n].
        keys: uint64 [n].
        writer: gets a blob for each partition that has rows.

    Returns:
        Partitions and references.
    """
    partitions = partitions_of(keys)
    order = np.argsort(partitions, kind="stable")
    rows = rows[order]
    borders = np.searchsorted(partitions[order], np.arange(_NUM_PARTITIONS + 1, dtype=np.uint64))
    return [
        (partition, writer.add([rows[borders[partition] : borders[partition + 1]].tobytes()]))
        for partition in range(_NUM_PARTITIONS)
        if borders[partition] < borders[partition + 1]
    ]


def read_rows(store: BlobStore, references: Iterable[BlobReference], kind: np.dtype) -> np.ndarray:
    """Read the rows of all blobs, each of which is in memory only until it is copied.

    Args:
        store: that has them.
        references: of the blobs.
        kind: dtype of a row.
    """
    references = list(references)
    num_bytes = sum(reference.length for reference in references)
    rows = np.empty(num_bytes // kind.itemsize, kind)
    begin = 0
    for reference in references:
        end = begin + reference.length // kind.itemsize
        rows[begin:end] = np.frombuffer(store.read(reference), kind)
        begin = end
    return rows


def count_slices(references: Iterable[BlobReference]) -> int:
    """Return the number of parts into which `read_slices` cuts blobs."""
    num_bytes = sum(reference.length for reference in references)
    return 1 + num_bytes // _SLICE_BYTES


def read_slices(
    store: BlobStore,
    references: Iterable[BlobReference],
    kind: np.dtype,
    field: str,
    count: int | None = None,
) -> Iterator[np.ndarray]:
    """Yield the rows of all blobs in parts of bounded size, those of equal hashes in one part.

    Args:
        store: that has them.
        references: of the blobs, read anew for each part.
        kind: dtype of a row.
        field: of the hash, uint64.
        count: of the parts, `count_slices` by default; two sets of blobs with the same count have
            equal hashes in parts of the same number.
    """
    references = list(references)
    count = count or count_slices(references)
    for number in range(count):
        parts = (np.frombuffer(store.read(reference), kind) for reference in references)
        chosen = [rows[rows[field] % np.uint64(count) == number] for rows in parts]
        yield np.concatenate([np.empty(0, kind), *chosen])


@dataclasses.dataclass(frozen=True)
class NamedRows:
    """Rows, one of whose fields is a number in the names: files or `BlockId`s."""

    names: list[Any]
    rows: np.ndarray


def merge_occurrences(parts: Iterable[bytes]) -> NamedRows:
    """Merge OCCURRENCE records by key, identity, file and place; parts may come in any order."""
    merged = _merge(parts, "block", OCCURRENCE)
    rows = merged.rows
    order = np.lexsort((rows["document"], rows["block"], rows["identity"], rows["key"]))
    return NamedRows(merged.names, rows[order])


def merge_kept(parts: Iterable[bytes]) -> NamedRows:
    """Merge KEPT records by rising key: documents that stay in place of near duplicates.

    Of several for one key, the most similar stays; ties are broken by identity, file and line.
    """
    merged = _merge(parts, "source", KEPT)
    rows = merged.rows
    order = np.lexsort(
        (rows["line"], rows["source"], rows["identity"], -rows["similarity"], rows["key"])
    )
    rows = rows[order]
    return NamedRows(merged.names, rows[first_of_runs(rows["key"])])


def _merge(parts: Iterable[bytes], field: str, kind: np.dtype) -> NamedRows:
    """Sort the names of all parts, and number them anew."""
    loaded: list[NamedRows] = [unpack(part, NamedRows) for part in parts]
    names = sorted({name for part in loaded for name in part.names})
    numbers = {name: number for number, name in enumerate(names)}
    merged = [np.empty(0, kind)]
    for part in loaded:
        rows = part.rows.copy()
        rows[field] = np.array([numbers[name] for name in part.names], np.int64)[rows[field]]
        merged.append(rows)
    return NamedRows(names, np.concatenate(merged))


def find_keys(keys: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Find values among rising keys.

    Args:
        keys: [n], rising; at least one.
        wanted: [m].

    Returns:
        Whether each value is a key, bool [m], and its place, int64 [m], which means nothing if it
        is none.
    """
    places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return keys[places] == wanted, places


def first_of_runs(values: np.ndarray) -> np.ndarray:
    """Return whether each value differs from the one before, bool [n]."""
    is_first = np.ones(len(values), np.bool_)
    is_first[1:] = values[1:] != values[:-1]
    return is_first


@dataclasses.dataclass(frozen=True)
class Dropped:
    """Documents to drop, in the order of the occurrences.

    Attributes:
        rows: OCCURRENCE [n].
        reasons: uint8 [n], numbers of REASONS. A near duplicate has no equal document before it,
            only a similar one.
        kept: KEPT [n], whose `source` is not used.
        kept_files: a path each.
    """

    rows: np.ndarray
    reasons: np.ndarray
    kept: np.ndarray
    kept_files: list[str]


def choose_dropped(
    occurrences: NamedRows, kept: NamedRows, elsewhere: NamedRows, *, copies: bool
) -> Dropped:
    """Drop all but the first of equal documents, and near duplicates of kept ones.

    Args:
        occurrences: sorted by key, identity, file and place.
        kept: sorted by key.
        elsewhere: the same of documents of another corpus; other keys than those of `kept`.
        copies: whether equal documents of this corpus are dropped.
    """
    rows = occurrences.rows
    is_first = first_of_runs(rows["key"])
    # For each row, the first one with its key.
    firsts = np.flatnonzero(is_first)[np.cumsum(is_first) - 1]
    stays = rows[firsts]
    files = np.array([source for source, _ in occurrences.names], object)
    stand_ins = np.zeros(len(rows), KEPT)
    stand_ins["identity"] = stays["identity"]
    stand_ins["line"] = stays["line"]
    stand_ins["similarity"] = 1.0
    kept_files = files[stays["block"]] if len(rows) else files[:0]
    is_near_copy = _stand_in(rows["key"], kept, stand_ins, kept_files)
    is_elsewhere = _stand_in(rows["key"], elsewhere, stand_ins, kept_files)
    reasons = np.full(len(rows), REASONS.index(EXACT_COPY), np.uint8)
    reasons[is_first & is_near_copy] = REASONS.index(NEAR_DUPLICATE)
    reasons[is_elsewhere] = REASONS.index(ELSEWHERE)
    is_dropped = is_near_copy | is_elsewhere
    if copies:
        is_dropped |= ~is_first
    return Dropped(
        rows=rows[is_dropped],
        reasons=reasons[is_dropped],
        kept=stand_ins[is_dropped],
        kept_files=kept_files[is_dropped].tolist(),
    )


def _stand_in(
    row_keys: np.ndarray, kept: NamedRows, stand_ins: np.ndarray, kept_files: np.ndarray
) -> np.ndarray:
    """Set the documents that stay in place of rows, for rows whose key is among `kept`.

    Args:
        row_keys: uint64 [n].
        kept: KEPT by rising key.
        stand_ins: KEPT [n], changed in place.
        kept_files: object [n], paths, changed in place.

    Returns:
        The rows that were set, bool [n].
    """
    if not len(kept.rows):
        return np.zeros(len(row_keys), np.bool_)
    is_found, places = find_keys(kept.rows["key"], row_keys)
    stand_ins[is_found] = kept.rows[places[is_found]]
    kept_files[is_found] = np.array(kept.names, object)[stand_ins["source"][is_found]]
    return is_found


def lines_of_block(
    block: DocumentBlock, line_keys: np.ndarray, identities: np.ndarray
) -> np.ndarray:
    """Return LINE [lines] of a block, whose number is 0.

    Args:
        block: the documents.
        line_keys: uint64 [lines].
        identities: uint64 [documents].
    """
    bounds = block.lines_of_documents
    documents = np.repeat(np.arange(block.num_documents), np.diff(bounds))
    rows = np.zeros(block.num_lines, LINE)
    rows["key"] = line_keys
    rows["identity"] = identities[documents]
    rows["line"] = np.arange(block.num_lines)
    rows["number"] = rows["line"] - bounds[documents]
    rows["document"] = documents
    return rows


def find_repeated(parts: Iterable[tuple[BlockId, bytes]]) -> list[tuple[BlockId, np.ndarray]]:
    """Find lines to drop: all but the first of each key.

    The first is the one with the lowest identity of its document, then the lowest number in its
    document. Ties between copies of a document are broken by file and place.

    Args:
        parts: blocks, and LINE with all their keys.

    Returns:
        Blocks, and uint32 numbers of their lines.
    """
    ordered = sorted(parts, key=lambda part: part[0])
    of_blocks = [np.frombuffer(data, LINE) for _, data in ordered]
    rows = np.concatenate([np.empty(0, LINE), *of_blocks])
    rows["block"] = np.repeat(np.arange(len(ordered)), list(map(len, of_blocks)))
    order = np.lexsort((rows["line"], rows["block"], rows["number"], rows["identity"], rows["key"]))
    rows = rows[order]
    repeated = rows[~first_of_runs(rows["key"])]
    repeated = repeated[np.argsort(repeated["block"], kind="stable")]
    borders = np.searchsorted(repeated["block"], np.arange(len(ordered) + 1))
    return [
        (block, repeated["line"][borders[number] : borders[number + 1]])
        for number, (block, _) in enumerate(ordered)
        if borders[number] < borders[number + 1]
    ]
