"""The way between characters and tokens."""

from __future__ import annotations

import numpy as np
import pytest
from behavior.examples import fewer_examples
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.data.text.host_wordpiece import HostTokenizer, characters_at_bytes
from bert_tf.data.text.vocab_file import SPECIAL_TOKENS
from bert_tf.data.text.wordpiece import WordPieceTokenizer

LETTERS = "abcdefghij"
VOCAB = [*SPECIAL_TOKENS, ".", ",", "上", *LETTERS, *(f"##{letter}" for letter in LETTERS)]

texts = st.text(
    st.sampled_from(
        [*"abcdef", " ", "\n", "é", "É", "上", "😀", "\u0301", "ﬁ", "İ", "ß", "\uff21", ","]
    ),
    max_size=40,
)


@pytest.fixture(scope="module", params=[WordPieceTokenizer, HostTokenizer])
def tokenizer(request):
    return request.param(VOCAB, lowercase=True)


@pytest.mark.slow
@fewer_examples(0.25)
@given(contexts=st.lists(texts, min_size=1, max_size=6))
def test_characters_of_tokens_slice_the_text(tokenizer, contexts):
    tokens = tokenizer.tokenize_with_characters(contexts)
    for index, context in enumerate(contexts):
        alone = tokenizer.tokenize_with_characters([context])
        mine = slice(tokens.offsets[index], tokens.offsets[index + 1])
        np.testing.assert_array_equal(tokens.first_characters[mine], alone.first_characters)
        np.testing.assert_array_equal(tokens.last_characters[mine], alone.last_characters)
        first, last = alone.first_characters, alone.last_characters
        assert (np.diff(first) >= 0).all()
        assert (np.diff(last) >= 0).all()
        assert (first <= last).all()
        assert (last <= len(context)).all()
        uncovered = set(range(len(context)))
        for begin, end, token in zip(first, last, alone.ids, strict=True):
            assert context[begin:end].strip() == context[begin:end]
            uncovered -= set(range(begin, end))
            if tokenizer.vocab[token] in ("a", "##a", ","):
                # tensorflow_text may count a stripped accent to the token before it.
                assert context[begin:end].lower().rstrip("\u0301") in ("a", "\uff41", ",")
        # An accent without a letter is stripped and belongs to no token.
        assert all(context[place].isspace() or context[place] == "\u0301" for place in uncovered)


def test_bytes_to_characters():
    texts = ["aé😀", "", "上b"]
    encoded = [text.encode() for text in texts]
    owners = np.array([0, 0, 0, 0, 2, 2, 2])
    offsets = np.array([0, 1, 3, 7, 0, 3, 4])
    assert characters_at_bytes(encoded, owners, offsets).tolist() == [0, 1, 2, 3, 0, 1, 2]
