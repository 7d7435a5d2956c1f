"""Records of documents by which duplicates are found, stored by partition of their hashes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import apache_beam as beam
import numpy as np

from pipeline.beam.blobs import BlobWriter
from pipeline.beam.packing import pack
from pipeline.corpus.document_block import DocumentBlock
from pipeline.corpus.duplicates.folding import FoldedBlock
from pipeline.corpus.duplicates.near_duplicates import (
    BAND,
    NUM_HASHES,
    SIGNATURE,
    band_keys,
    signatures_of,
)
from pipeline.corpus.duplicates.occurrences import (
    OCCURRENCE,
    NamedRows,
    partition_rows,
    partitions_of,
)

# Names of outputs of Beam's steps.
OCCURRENCES = "occurrences"
SIGNATURES = "signatures"
BANDS = "bands"
SIGNED = "signed"
Output: TypeAlias = beam.pvalue.TaggedOutput
# A signature and the minima, from which the bands for any threshold follow.
SIGNED_DOCUMENT = np.dtype([*SIGNATURE.descr, ("minima", "u4", (NUM_HASHES,))])


def occurrences_of(block: DocumentBlock, folded: FoldedBlock, identities: np.ndarray) -> np.ndarray:
    """Return OCCURRENCE [documents] of a block, whose number is 0.

    Args:
        block: the documents.
        folded: their words.
        identities: uint64 [documents].
    """
    rows = np.zeros(block.num_documents, OCCURRENCE)
    rows["key"] = folded.document_keys
    rows["identity"] = identities
    rows["line"] = block.document_lines
    rows["document"] = np.arange(len(rows))
    return rows


def sign_documents(folded: FoldedBlock) -> np.ndarray:
    """Return SIGNED_DOCUMENT of the different documents that have words, by rising key."""
    keys, documents = np.unique(folded.document_keys, return_index=True)
    has_words = np.diff(folded.document_offsets)[documents] > 0
    documents = documents[has_words]
    minima, sketches = signatures_of(folded.words, folded.document_offsets, documents)
    signed = np.empty(len(documents), SIGNED_DOCUMENT)
    signed["key"] = keys[has_words]
    signed["minima"] = minima
    signed["sketch"] = sketches
    return signed


def store_occurrences(occurrences: NamedRows, writer: BlobWriter) -> Iterator[Output]:
    """Store OCCURRENCE records by partition of their keys."""
    rows = occurrences.rows
    partitions = partitions_of(rows["key"])
    for partition in np.unique(partitions):
        part = NamedRows(occurrences.names, rows[partitions == partition])
        yield Output(OCCURRENCES, (int(partition), writer.add(pack(part))))


def store_signatures(
    signed: np.ndarray, writer: BlobWriter, bands: tuple[int, int]
) -> Iterator[Output]:
    """Store signatures and bands of documents by partition.

    Args:
        signed: SIGNED_DOCUMENT [n].
        writer: of the store.
        bands: number of bands, and of minima in each.
    """
    keys = signed["key"]
    signatures = np.empty(len(signed), SIGNATURE)
    signatures["key"] = keys
    signatures["sketch"] = signed["sketch"]
    for part in partition_rows(signatures, keys, writer):
        yield Output(SIGNATURES, part)
    rows = np.empty(len(keys) * bands[0], BAND)
    rows["band"] = band_keys(signed["minima"], *bands).reshape(-1)
    rows["key"] = np.repeat(keys, bands[0])
    for part in partition_rows(rows, rows["band"], writer):
        yield Output(BANDS, part)
