"""Tokenized blocks: their sentences and documents, and the way through bytes."""

import numpy as np
import pyarrow as pa
import pytest

from bert_tf.data.text.vocab_file import SPECIAL_TOKENS
from bert_tf.data.text.wordpiece import WordPieceTokenizer
from pipeline.corpus.document_block import DocumentBlock
from pipeline.examples import tokenized as tokenized_module
from pipeline.examples.tokenized import (
    concatenate,
    from_bytes,
    partition_documents,
    to_bytes,
    tokenize_block,
)

VOCAB = [*SPECIAL_TOKENS, "a", "b", "c", "d", "e"]


@pytest.fixture(scope="module")
def tokenizer():
    return WordPieceTokenizer(VOCAB, lowercase=True)


def block_of(documents: list[list[str]]) -> DocumentBlock:
    return DocumentBlock(
        source="a.txt",
        index=0,
        sentences=pa.array([text for document in documents for text in document], pa.string()),
        document_offsets=np.cumsum([0, *map(len, documents)]),
        line_offsets=np.arange(sum(map(len, documents)) + 1),
        document_lines=np.ones(len(documents), np.int64),
    )


def as_lists(tokenized) -> list[list[list[int]]]:
    documents = tokenized.documents
    sentences = np.split(documents.tokens, documents.sentence_offsets[1:-1])
    borders = documents.document_offsets
    return [
        [sentence.tolist() for sentence in sentences[borders[d] : borders[d + 1]]]
        for d in range(len(documents))
    ]


@pytest.mark.parametrize("batch_sentences", [1, 2, 100])
def test_sentences_and_documents_without_tokens_go(tokenizer, monkeypatch, batch_sentences):
    monkeypatch.setattr(tokenized_module, "_BATCH_SENTENCES", batch_sentences)
    block = block_of([["A b", "\u200b", "c"], ["\u00ad"], ["d d", "e"]])
    tokenized, without_tokens = tokenize_block(block, tokenizer)
    assert as_lists(tokenized) == [[[5, 6], [7]], [[8, 8], [9]]]
    assert without_tokens == 1 and len(tokenized.hashes) == 2


def test_an_empty_block_is_no_trouble(tokenizer):
    tokenized, without_tokens = tokenize_block(block_of([]), tokenizer)
    assert len(tokenized) == without_tokens == 0
    assert partition_documents(tokenized, np.empty(0, np.int64)) == []


@pytest.mark.parametrize("shift", [0, 70_000])
def test_dealing_and_bytes_keep_every_document(tokenizer, shift):
    texts = [["a b"], ["c", "d"], ["e e e"], ["a"]]
    tokenized, _ = tokenize_block(block_of(texts), tokenizer)
    tokenized.documents.tokens[:] += shift
    partitions = partition_documents(tokenized, np.array([4, 1, 4, 0]))
    assert [group for group, _ in partitions] == [0, 1, 4]
    parts = [from_bytes(b"".join(to_bytes(documents))) for _, documents in partitions]
    together = concatenate(parts)
    whole = tokenized.select(np.array([3, 1, 0, 2]))
    assert as_lists(together) == as_lists(whole)
    assert together.hashes.tolist() == whole.hashes.tolist()
    assert together.documents.tokens.dtype == np.int32
