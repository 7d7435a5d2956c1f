"""The text layer against HuggingFace's tokenizers; docs/tokenization.md lists the differences."""

import string
import unicodedata

import numpy as np
import pytest
import tensorflow as tf
from behavior.examples import fewer_examples
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import BertWordPieceTokenizer

from bert_tf.data.text.casing import KEEP_ACCENTS
from bert_tf.data.text.normalizer import normalize_code_point, normalizer_model
from bert_tf.data.text.vocab_file import SPECIAL_TOKENS
from bert_tf.data.text.wordpiece import WordPieceTokenizer, longest_first_lengths, pack_pairs

LETTERS = string.ascii_letters + string.digits + "éßøαβγωбвгдийאבחكلمกขคのカ中文字한국"
WORDS = ["the", "##ing", "un", "##aff", "##able", "hello", "world", "##s", "e2", "##mc", "straße"]
CHARACTERS = LETTERS + "½™"
PUNCTUATION = string.punctuation + "。\uff0c—…€"
VOCAB = list(
    dict.fromkeys(
        [*SPECIAL_TOKENS, *WORDS, *CHARACTERS, *PUNCTUATION, *(f"##{c}" for c in CHARACTERS)]
    )
)


def unchanged_since_unicode_3(character: str) -> bool:
    """Return whether a character's class is the same in every Unicode table in use."""
    category = unicodedata.category(character)
    return category != "Cn" and category == unicodedata.ucd_3_2_0.category(character)


texts = st.lists(
    st.one_of(
        st.sampled_from(["hello", "Unaffable", "THE", "worlds", "\u0130stanbul", "e\u0301"]),
        st.text(
            st.characters(exclude_categories=["Cs"]).filter(unchanged_since_unicode_3), max_size=100
        ),
        st.text(LETTERS + " .-'\t\u00ad\u200b\u0301½™", max_size=30),
    ),
    max_size=8,
).map(" ".join)


@pytest.fixture(scope="module", params=[True, KEEP_ACCENTS, False], ids=str)
def pair(request):
    ours = WordPieceTokenizer(VOCAB, lowercase=request.param)
    theirs = BertWordPieceTokenizer(
        {token: i for i, token in enumerate(VOCAB)},
        lowercase=bool(request.param),
        strip_accents=request.param is True,
    )
    return ours, theirs


def check_same_ids(pair, batch: list[str]) -> None:
    ours, theirs = pair
    expected = [encoding.ids for encoding in theirs.encode_batch(batch, add_special_tokens=False)]
    assert ours.tokenize(tf.constant(batch)).to_list() == expected


def test_ids_equal_huggingface_on_tricky_strings(pair):
    check_same_ids(
        pair,
        [
            "",
            "   ",
            "Hello, WORLD!",
            "unaffable\u00a0un\u3000aff",
            "caf\u00e9 cafe\u0301 CAF\u00c9",
            "soft\u00adhyphen zero\u200bwidth bom\ufeff",
            "rain\x12s to\x00day \ufffd",
            "line\u2028separator\u2029paragraph\x85next\x0bvertical",
            "½™ﬁ１２３ＡＢＣ",
            "中文字 mixed中文mixed 한국 のカ。\uff0c",
            "İstanbul ΟΔΟΣ STRASSE straße ẞ",
            "e2mc e=mc² don't—stop…",
            "😀 smile👩‍👩‍👧 \U0001f1e9\U0001f1ea",
            "a" * 100,
            "é" * 100 + " ok",
            "ก" * 100,
            "a" * 401,
        ],
    )


@pytest.mark.slow
@given(batch=st.lists(texts, min_size=1, max_size=8))
def test_ids_equal_huggingface_on_any_text(pair, batch):
    check_same_ids(pair, batch)


def test_the_listed_differences_from_huggingface_still_stand(pair):
    ours, theirs = pair
    special = "[MASK]"
    assert theirs.encode(special, add_special_tokens=False).ids == [VOCAB.index(special)]
    assert ours.mask_id not in ours.tokenize(tf.constant([special])).to_list()[0]
    long_word = "a" * 101
    assert theirs.encode(long_word, add_special_tokens=False).ids == [ours.unk_id]
    assert len(ours.tokenize(tf.constant([long_word])).to_list()[0]) == 101


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Hello wörld", [(0, 5), (6, 12)]),
        ("e\u0301e", [(0, 3), (3, 4)]),
        ("中文", [(0, 3), (3, 6)]),
    ],
)
def test_offsets_are_bytes_of_the_text_as_given(text, tokens):
    tokenizer = WordPieceTokenizer(VOCAB, lowercase=True)
    _, starts, ends = tokenizer.tokenize_with_offsets(tf.constant([text]))
    assert starts.dtype == ends.dtype == tf.int64
    assert list(zip(starts.to_list()[0], ends.to_list()[0], strict=True)) == tokens


@pytest.mark.slow
@fewer_examples(0.83)
@given(text=texts)
def test_offsets_cover_the_text_in_order(text):
    tokenizer = _lowercase_tokenizer()
    ids, starts, ends = tokenizer.tokenize_with_offsets(tf.constant([text]))
    assert ids.to_list() == tokenizer.tokenize(tf.constant([text])).to_list()
    borders = np.stack([starts.flat_values, ends.flat_values], axis=1)
    assert (np.diff(borders[:, 0]) >= 0).all() and (borders[:, 0] <= borders[:, 1]).all()
    assert borders.size == 0 or (borders.min() >= 0 and borders.max() <= len(text.encode()))


_TOKENIZERS: list[WordPieceTokenizer] = []


def _lowercase_tokenizer() -> WordPieceTokenizer:
    if not _TOKENIZERS:
        _TOKENIZERS.append(WordPieceTokenizer(VOCAB, lowercase=True))
    return _TOKENIZERS[0]


@pytest.mark.slow
@pytest.mark.parametrize("lowercase", [True, KEEP_ACCENTS, False])
def test_the_table_holds_the_function_for_every_code_point(lowercase):
    import tensorflow_text as tf_text

    characters = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    normalizer = tf_text.FastBertNormalizer(model_buffer=normalizer_model(lowercase=lowercase))
    got = normalizer.normalize(tf.constant(characters)).numpy()
    wrong = [
        character
        for character, result in zip(characters, got, strict=True)
        if unicodedata.category(character) != "Cn"
        and result.decode() != normalize_code_point(character, lowercase=lowercase)
    ]
    assert not wrong


@pytest.mark.parametrize(
    ("character", "lowercase", "result"),
    [
        ("É", True, "e"),
        ("É", False, "É"),
        ("É", KEEP_ACCENTS, "é"),
        ("\u093f", KEEP_ACCENTS, "\u093f"),
        ("\u0301", KEEP_ACCENTS, "\u0301"),
        ("\u00a0", True, " "),
        ("\u200b", True, ""),
        ("ﬁ", True, "ﬁ"),
    ],
)
def test_normalize_code_point_rows(character, lowercase, result):
    assert normalize_code_point(character, lowercase=lowercase) == result


@pytest.mark.parametrize("max_seq_length", [4, 8, 9])
def test_packing_equals_huggingface_longest_first(max_seq_length):
    theirs = BertWordPieceTokenizer({token: i for i, token in enumerate(VOCAB)})
    theirs.enable_truncation(max_seq_length)
    tokenizer = _lowercase_tokenizer()
    pairs = [(" ".join("a" * i), " ".join("b" * j)) for i in range(9) for j in range(9)]
    first, second = (
        tokenizer.tokenize(tf.constant(list(column))) for column in zip(*pairs, strict=True)
    )
    ids, types = pack_pairs(first, second, max_seq_length=max_seq_length, tokenizer=tokenizer)
    expected = theirs.encode_batch(pairs)
    assert ids.to_list() == [encoding.ids for encoding in expected]
    assert types.to_list() == [encoding.type_ids for encoding in expected]
    ids, types = pack_pairs(first, None, max_seq_length=max_seq_length, tokenizer=tokenizer)
    expected = theirs.encode_batch([a for a, _ in pairs])
    assert ids.to_list() == [encoding.ids for encoding in expected]
    assert types.to_list() == [encoding.type_ids for encoding in expected]


@pytest.mark.parametrize(
    ("lengths", "capacity", "kept"),
    [((2, 9), 5, (2, 3)), ((9, 9), 5, (2, 3)), ((10, 9), 5, (3, 2)), ((2, 3), 5, (2, 3))],
)
def test_longest_first_rows(lengths, capacity, kept):
    first, second = longest_first_lengths(
        tf.constant([lengths[0]]), tf.constant([lengths[1]]), capacity=capacity
    )
    assert (int(first[0]), int(second[0])) == kept


@pytest.mark.slow
def test_a_saved_model_tokenizes_and_packs_like_eager_code(tmp_path):
    tokenizer = _lowercase_tokenizer()

    class Packer(tf.Module):
        def __init__(self):
            super().__init__()
            self.tokenizer = tokenizer

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)] * 2)
        def pack(self, first, second):
            return pack_pairs(
                self.tokenizer.tokenize(first),
                self.tokenizer.tokenize(second),
                max_seq_length=9,
                tokenizer=self.tokenizer,
            )

    packer = Packer()
    tf.saved_model.save(packer, str(tmp_path))
    arguments = (tf.constant(["Hello caf\u00e9", ""]), tf.constant(["unaffable worlds", "the"]))
    loaded = tf.saved_model.load(str(tmp_path)).pack(*arguments)
    for ours, theirs in zip(packer.pack(*arguments), loaded, strict=True):
        assert ours.to_list() == theirs.to_list()
