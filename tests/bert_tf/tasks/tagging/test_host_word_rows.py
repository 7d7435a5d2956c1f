"""Words and windows against HuggingFace's tokenizer and by definition."""

from __future__ import annotations

import numpy as np
import pytest
from behavior.examples import fewer_examples
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import BertWordPieceTokenizer

from bert_tf.tasks.tagging.host import encode_words

WORDS = ["Ada", "adas", "London", "don't", "in", '"London"', "\\", "北京", "x", "\u200b", "É"]
texts = st.lists(
    st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join), min_size=1, max_size=4
)


def encode(tokenizer, rows, *, length=128, stride=64):
    return encode_words(tokenizer, rows, max_seq_length=length, stride=stride)


@pytest.mark.slow
@given(texts)
@fewer_examples(0.4)
def test_words_are_those_of_huggingface(pieces, rows):
    """BERT's pre-tokenizer there gives words with their characters."""
    other = BertWordPieceTokenizer(
        {entry: number for number, entry in enumerate(pieces.vocab)}, lowercase=True
    )
    encoded = encode(pieces, rows)
    for number, text in enumerate(rows):
        expected = other.encode(text, add_special_tokens=False)
        spans: dict[int, tuple[int, int]] = {}
        for word, (start, end) in zip(expected.word_ids, expected.offsets, strict=True):
            spans[word] = (spans.get(word, (start,))[0], end)
        chosen = slice(*encoded.words.offsets[number : number + 2])
        found = zip(encoded.words.starts[chosen], encoded.words.ends[chosen], strict=True)
        assert list(found) == list(spans.values())
        ids = encoded.rows.ids[encoded.rows.offsets[number] : encoded.rows.offsets[number + 1]]
        assert ids.tolist() == [pieces.cls_id, *expected.ids, pieces.sep_id]


@pytest.mark.slow
@given(texts, st.integers(4, 12), st.integers(1, 12))
@fewer_examples(0.4)
def test_a_word_is_read_where_it_has_most_context(pieces, rows, length, stride):
    whole, cut = encode(pieces, rows), encode(pieces, rows, length=length, stride=stride)
    assert cut.rows.lengths.max() <= length
    capacity, step = length - 2, min(stride, length - 2)
    for word, owner in enumerate(whole.words.owners):
        tokens = whole.rows.lengths[owner] - 2
        place = whole.positions[word] - 1
        windows = [
            (begin, min(begin + capacity, tokens))
            for begin in range(0, max(tokens - capacity + step, 1), step)
        ]
        contexts = [
            min(place - begin, end - 1 - place) if begin <= place < end else -1
            for begin, end in windows
        ]
        best = int(np.argmax(contexts))
        window = cut.windows[word]
        assert cut.texts[window] == owner
        assert window - np.searchsorted(cut.texts, owner) == best
        assert cut.positions[word] - 1 == place - windows[best][0]
        read = cut.rows.ids[cut.rows.offsets[window] + cut.positions[word]]
        assert read == whole.rows.ids[whole.rows.offsets[owner] + whole.positions[word]]
