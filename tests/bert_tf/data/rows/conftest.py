"""A tokenizer of a few words and letters."""

from __future__ import annotations

import pytest

from bert_tf.data.text.wordpiece import WordPieceTokenizer

WORDS = [
    "where",
    "is",
    "the",
    "city",
    "shanghai",
    "in",
    "china",
    "cafe",
    "##s",
    "?",
    ".",
    ",",
    "上",
]
LETTERS = "abcdefghij"
VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *LETTERS]
VOCAB += ["##" + letter for letter in LETTERS]


@pytest.fixture(scope="session")
def tokenizer() -> WordPieceTokenizer:
    return WordPieceTokenizer(VOCAB, lowercase=True)
