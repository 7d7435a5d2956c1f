"""A vocabulary whose words have several tokens."""

import pytest

from bert_tf.data.text.wordpiece import WordPieceTokenizer

PIECES = ["ada", "##s", "lon", "##don", "don", "t", "in", "'", '"', "\\", ",", ".", "京", "北", "é"]


@pytest.fixture(scope="session")
def pieces() -> WordPieceTokenizer:
    vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *PIECES]
    return WordPieceTokenizer(vocab, lowercase=True)
