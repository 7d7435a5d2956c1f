"""Blocks of documents written as lists."""

import numpy as np
import pyarrow as pa
import pytest

from pipeline.corpus.document_block import DocumentBlock


def make_block(*documents, source="x", index=0):
    """Documents of lines of sentences."""
    lines = [line for document in documents for line in document]
    line_offsets = np.cumsum([0, *map(len, lines)])
    return DocumentBlock(
        source=source,
        index=index,
        sentences=pa.array([sentence for line in lines for sentence in line], pa.string()),
        document_offsets=line_offsets[np.cumsum([0, *map(len, documents)])],
        line_offsets=line_offsets,
        document_lines=np.arange(len(documents)) + 1,
    )


@pytest.fixture(scope="session")
def block_of():
    """Make a block of documents, lists of lines, lists of sentences."""
    return make_block
