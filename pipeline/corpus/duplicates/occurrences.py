"""Documents as small records, and which of them are copies: no text, only hashes and places."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Iterable

import numpy as np

from pipeline.corpus.document_block import DocumentBlock

# The key (see `FoldedBlock`), the identity (`document_hashes`), the line of the file where the
# document begins, its number in its block, and its block's number among the sources.
OCCURRENCE = np.dtype(
    [("key", "u8"), ("identity", "u8"), ("line", "i8"), ("document", "u4"), ("block", "u4")]
)
EXACT_COPY, NEAR_DUPLICATE = "exact copy", "near duplicate"
# A block: its file and its number in it.
BlockId = tuple[str, int]


@dataclasses.dataclass(frozen=True)
class Occurrences:
    """Documents of several blocks.

    Attributes:
        blocks: where they are from.
        rows: OCCURRENCE [documents]; `block` is a number in `blocks`.
    """

    blocks: list[BlockId]
    rows: np.ndarray

    def to_bytes(self) -> bytes:
        """For `merge_occurrences`."""
        return pickle.dumps((self.blocks, self.rows))

    def is_first(self) -> np.ndarray:
        """bool [documents], of sorted ones: which is the first of its key."""
        return first_of_runs(self.rows["key"])


def merge_occurrences(parts: Iterable[bytes]) -> Occurrences:
    """All occurrences of some parts in an order that does not depend on that of the parts: by key,
    identity, file and place in it."""
    loaded = [pickle.loads(part) for part in parts]
    blocks = sorted({block for names, _ in loaded for block in names})
    numbers = {block: number for number, block in enumerate(blocks)}
    merged = []
    for names, rows in loaded:
        renumbered = np.array([numbers[block] for block in names], np.uint32)
        rows = rows.copy()
        rows["block"] = renumbered[rows["block"]]
        merged.append(rows)
    rows = np.concatenate(merged) if merged else np.empty(0, OCCURRENCE)
    order = np.lexsort((rows["document"], rows["block"], rows["identity"], rows["key"]))
    return Occurrences(blocks, rows[order])


def first_of_runs(values: np.ndarray) -> np.ndarray:
    """bool [n]: which values differ from the one before."""
    is_first = np.ones(len(values), np.bool_)
    is_first[1:] = values[1:] != values[:-1]
    return is_first


@dataclasses.dataclass(frozen=True)
class Kept:
    """The document kept in place of each near duplicate, by the key of the one dropped.

    Attributes:
        keys: uint64 [n], rising: the keys of the documents that go.
        identities: uint64 [n], the documents that stay.
        sources: int64 [n], their files, as numbers in `files`.
        lines: int64 [n], where they begin.
        similarities: float64 [n], how alike both are.
        files: paths.
    """

    keys: np.ndarray
    identities: np.ndarray
    sources: np.ndarray
    lines: np.ndarray
    similarities: np.ndarray
    files: list[str]

    def select(self, mask: np.ndarray) -> Kept:
        """Some of the documents, bool [n]."""
        return Kept(
            keys=self.keys[mask],
            identities=self.identities[mask],
            sources=self.sources[mask],
            lines=self.lines[mask],
            similarities=self.similarities[mask],
            files=self.files,
        )

    def to_bytes(self) -> bytes:
        """For `merge_kept`."""
        return pickle.dumps(dataclasses.astuple(self))


def merge_kept(parts: Iterable[bytes]) -> Kept | None:
    """The only part; None without near duplicates."""
    loaded = [Kept(*pickle.loads(part)) for part in parts]
    assert len(loaded) <= 1, "near duplicates are found in one place"
    return loaded[0] if loaded else None


@dataclasses.dataclass(frozen=True)
class Dropped:
    """Documents to drop, in the order of the occurrences.

    Attributes:
        rows: OCCURRENCE [n].
        is_near: bool [n]: whether no equal document was there before, only a similar one.
        kept_identities, kept_lines, similarities: as of `Kept`, [n].
        kept_files: a path each.
    """

    rows: np.ndarray
    is_near: np.ndarray
    kept_identities: np.ndarray
    kept_lines: np.ndarray
    similarities: np.ndarray
    kept_files: list[str]


def choose_dropped(occurrences: Occurrences, kept: Kept | None) -> Dropped:
    """Of equal documents the first is kept, unless a similar one is kept in its place.

    Args:
        occurrences: sorted, all of the keys in question.
        kept: what stays for keys that go as near duplicates.
    """
    rows = occurrences.rows
    is_first = occurrences.is_first()
    firsts = np.flatnonzero(is_first)[np.cumsum(is_first) - 1]
    stays = rows[firsts]
    files = np.array([source for source, _ in occurrences.blocks], object)
    identities, lines = stays["identity"].copy(), stays["line"].copy()
    similarities = np.ones(len(rows))
    kept_files = files[stays["block"]] if len(rows) else files[:0]
    goes_as_near = np.zeros(len(rows), np.bool_)
    if kept is not None and len(kept.keys):
        places = np.minimum(np.searchsorted(kept.keys, rows["key"]), len(kept.keys) - 1)
        goes_as_near = kept.keys[places] == rows["key"]
        of_kept = places[goes_as_near]
        identities[goes_as_near] = kept.identities[of_kept]
        lines[goes_as_near] = kept.lines[of_kept]
        similarities[goes_as_near] = kept.similarities[of_kept]
        kept_files[goes_as_near] = np.array(kept.files, object)[kept.sources[of_kept]]
    goes = ~is_first | goes_as_near
    return Dropped(
        rows=rows[goes],
        is_near=(is_first & goes_as_near)[goes],
        kept_identities=identities[goes],
        kept_lines=lines[goes],
        similarities=similarities[goes],
        kept_files=kept_files[goes].tolist(),
    )


REPEATED_LINE, ONLY_REPEATED_LINES = "repeated line", "only repeated lines"
# The key (see `FoldedBlock`), its document's identity and number in the block, the line's number in
# its document and in its block, and the block's number in a list.
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


def lines_of_block(
    block: DocumentBlock, line_keys: np.ndarray, identities: np.ndarray
) -> np.ndarray:
    """LINE [lines] of a block, whose number is 0."""
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
    """All lines but the first of each key, which is that of the lowest document identity and the
    lowest number in it; of copies of a document, the first by file and place.

    Args:
        parts: blocks and their LINEs' bytes, all that have the keys in question.

    Returns:
        Numbers of lines, uint32, by block.
    """
    ordered = sorted(parts, key=lambda part: part[0])
    rows = np.concatenate([np.empty(0, LINE), *(np.frombuffer(data, LINE) for _, data in ordered)])
    rows["block"] = np.repeat(
        np.arange(len(ordered)), [len(data) // LINE.itemsize for _, data in ordered]
    )
    rows = rows[
        np.lexsort((rows["line"], rows["block"], rows["number"], rows["identity"], rows["key"]))
    ]
    repeated = rows[~first_of_runs(rows["key"])]
    repeated = repeated[np.argsort(repeated["block"], kind="stable")]
    borders = np.searchsorted(repeated["block"], np.arange(len(ordered) + 1))
    return [
        (block, repeated["line"][borders[number] : borders[number + 1]])
        for number, (block, _) in enumerate(ordered)
        if borders[number] < borders[number + 1]
    ]
