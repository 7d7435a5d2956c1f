"""Vocabulary files that are read as written, and those that are refused."""

import pytest

from bert_tf.base.errors import UsageError
from bert_tf.data.text.vocab_file import (
    SPECIAL_TOKENS,
    read_vocab,
    read_vocab_for_masking,
    vocab_fingerprint,
)

VOCAB = [*SPECIAL_TOKENS, "the", "##s", "中"]


def test_a_vocabulary_is_read_as_written(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_bytes("\r\n".join([*VOCAB, "\u2028"]).encode())
    assert read_vocab(path) == [*VOCAB, "\u2028"]
    assert vocab_fingerprint(read_vocab(path)) != vocab_fingerprint(VOCAB)


def test_a_byte_order_mark_is_no_part_of_the_first_entry(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(VOCAB), encoding="utf-8-sig")
    assert read_vocab(path) == VOCAB


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[PAD]\n[UNK]\nthe\n", r"vocab.txt: lacks \[CLS\] \[SEP\] \[MASK\]"),
        (b"[PAD]\nthe\nthe\n", "vocab.txt:3: 'the' is in line 2 already"),
        (b"[PAD]\n\nthe\n", "vocab.txt:2: empty line"),
        (b"[PAD]\n\xff\n", "vocab.txt: byte 6 is not UTF-8"),
        (None, "vocab.txt: no such vocabulary"),
    ],
)
def test_a_bad_vocabulary_is_refused_by_name(tmp_path, content, message):
    path = tmp_path / "vocab.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match=message):
        read_vocab(path)


def test_masks_need_an_entry_besides_the_specials(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(SPECIAL_TOKENS))
    assert read_vocab(path) == list(SPECIAL_TOKENS)
    with pytest.raises(UsageError, match=r"vocab.txt: has no entry but \[PAD\] \[UNK\]"):
        read_vocab_for_masking(path)
    path.write_text("\n".join([*SPECIAL_TOKENS, "a"]))
    assert read_vocab_for_masking(path) == [*SPECIAL_TOKENS, "a"]
