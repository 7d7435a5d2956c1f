"""Texts that count as the same words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.corpus.duplicates.folding import fold_block


def key_of(block_of, sentences):
    return int(fold_block(block_of([sentences])).document_keys[0])


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (["Hello, World!"], ["hello world"]),
        (["One. Two."], ["One.", "Two."]),
        (["a-b"], ["a b"]),
        (["“Don’t”"], ['"don\'t"']),
        (["ÄRGER Ω"], ["ärger ω"]),
        (["这是。 一句"], ["这是一句"]),
        (["co\u00adop\u200b"], ["coop"]),
    ],
)
def test_case_spacing_and_punctuation_do_not_matter(block_of, left, right):
    assert key_of(block_of, left) == key_of(block_of, right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (["one two"], ["two one"]),
        (["ab c"], ["a bc"]),
        (["$5"], ["5"]),
        (["resume"], ["résumé"]),
        (["..."], ["!!!"]),
        (["a"], ["a a"]),
        (["二十年"], ["三百人"]),
        (["각 한"], ["힣 글"]),
        (["𗀀"], ["𗀁"]),
    ],
)
def test_letters_and_their_order_do(block_of, left, right):
    assert key_of(block_of, left) != key_of(block_of, right)


def fold_in_python(text):
    words, word = [], ""
    for character in text:
        if character == "字":
            words += [word, character]
            word = ""
        elif character.isalnum():
            word += character.lower()
        else:
            words.append(word)
            word = ""
    return tuple(filter(None, [*words, word]))


@given(st.lists(st.text("aBcÉé1字 .,-\t"), min_size=1, max_size=6))
def test_keys_of_documents_and_lines_are_equal_where_their_words_are(block_of, texts):
    folded = fold_block(block_of(*([[text]] for text in texts)))
    assert len(folded.words) == sum(len(fold_in_python(text)) for text in texts)
    for keys in (folded.document_keys, folded.line_keys):
        for i, left in enumerate(texts):
            for j, right in enumerate(texts):
                wanted = fold_in_python(left) == fold_in_python(right)
                if not fold_in_python(left):
                    wanted = left == right
                assert (keys[i] == keys[j]) == wanted


def test_a_line_has_the_words_of_its_sentences(block_of):
    folded = fold_block(block_of([["One two.", "Three"], ["four"]], [["one two three"]]))
    assert folded.line_keys[0] == folded.line_keys[2] == folded.document_keys[1]
    assert folded.document_offsets.tolist() == [0, 4, 7]
