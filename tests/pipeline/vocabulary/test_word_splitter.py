"""Words as BERT tokenizers see them, against HuggingFace."""

import unicodedata

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from bert_tf.data.text.casing import KEEP_ACCENTS
from pipeline.vocabulary import word_splitter
from pipeline.vocabulary.word_splitter import WordSplitter


def split(texts, *, lowercase=True, max_word_length=100):
    splitter = WordSplitter(lowercase=lowercase, max_word_length=max_word_length)
    words = []
    for letters, bounds in splitter.split(pa.array(texts, pa.string())):
        words += [
            letters[bounds[n] : bounds[n + 1]].tobytes().decode() for n in range(len(bounds) - 1)
        ]
    return words


def huggingface_words(text, *, lowercase):
    normalizer = BertNormalizer(lowercase=bool(lowercase), strip_accents=lowercase is True)
    normalized = normalizer.normalize_str(text)
    return [word for word, _ in BertPreTokenizer().pre_tokenize_str(normalized)]


def is_seen_alike(character):
    """Unassigned code points differ with the version of Unicode, and so do accents, format
    characters and punctuation younger than HuggingFace's tables: docs/tokenization.md."""
    category = unicodedata.category(character)
    if category in ("Cn", "Cs"):
        return False
    if category in ("Mn", "Cf") and BertNormalizer(lowercase=True).normalize_str(character):
        return False
    is_cut_off = len(BertPreTokenizer().pre_tokenize_str(f"a{character}b")) == 3
    return character.isascii() or is_cut_off == category.startswith("P")


ALIKE = st.text(
    st.sampled_from("aB ,.'é中-$^9")
    | st.sampled_from([c for c in map(chr, range(0x1F000)) if is_seen_alike(c)])
)


@given(st.lists(ALIKE, max_size=5), st.sampled_from([True, KEEP_ACCENTS, False]))
def test_words_are_huggingfaces(texts, lowercase):
    expected = [
        word
        for text in texts
        for word in huggingface_words(text, lowercase=lowercase)
        if word and word != "\u0345"
    ]
    assert split(texts, lowercase=lowercase) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't stop—now!", ["don", "'", "t", "stop", "—", "now", "!"]),
        ("ÀÉ Straße İstanbul Σίσυφος", ["ae", "straße", "istanbul", "σισυφος"]),
        ("ﬁnd ＡＢＣ ½ …", ["ﬁnd", "ａｂｃ", "½", "…"]),
        ("上海 is 日本語。", ["上", "海", "is", "日", "本", "語", "。"]),
        (
            "soft\u00adhyphen zero\u200bwidth no\u00a0break",
            ["softhyphen", "zerowidth", "no", "break"],
        ),
        ("bell\x07here", ["bellhere"]),
        ("하나", ["\u1112\u1161\u1102\u1161"]),
        ("⑴ ㏂", ["⑴", "㏂"]),
    ],
)
def test_words_in_lower_case(text, words):
    assert split([text]) == words


def test_words_continue_where_the_output_was_full(monkeypatch):
    text = "abc Défg, " * 50 + "½" * 30 + " x中"
    expected = split([text, text])
    for size in (1, 7, 100):
        monkeypatch.setattr(word_splitter, "_OUTPUT_BYTES", size)
        assert split([text, text]) == expected
