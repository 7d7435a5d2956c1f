"""Lines as small records, and which of them occur again."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pipeline.corpus.blocks.document_block import DocumentBlock
from pipeline.corpus.duplicates.occurrences import BlockId, first_of_runs

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
