"""The cleaning kernel against the same rules in plain Python."""

import unicodedata

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.data.text.casing import KEEP_ACCENTS
from pipeline.corpus import characters
from pipeline.corpus.characters import (
    BLANK,
    COMPOSE,
    NUM_CODE_POINTS,
    cleaning_table,
    sentence_table,
)
from pipeline.corpus.lines import clean_lines, compose
from pipeline.vocabulary.word_splitter import word_tables


def clean(lines):
    data = np.frombuffer(b"".join(lines), np.uint8)
    bounds = np.cumsum([0, *map(len, lines)])
    found = clean_lines(data, bounds[:-1], bounds[1:])
    texts = [
        found.data[found.offsets[n] : found.offsets[n + 1] - 1].tobytes().decode()
        for n in range(len(lines))
    ]
    return texts, found.fault_positions.tolist()


def clean_in_python(text):
    blank = "".join(" " if unicodedata.category(c) == "Cc" else c for c in text)
    return " ".join(blank.replace("\ufeff", "").split())


@given(st.lists(st.text(st.characters(codec="utf-8")) | st.text("a \t\x00\u3000\ufeff\u0301é")))
def test_text_is_cleaned_as_the_rules_say(lines):
    texts, faults = clean([line.encode() for line in lines])
    assert texts == [clean_in_python(line) for line in lines]
    assert faults == [-1] * len(lines)


@given(st.lists(st.binary(max_size=12) | st.binary(max_size=3).map(lambda b: b"\xf0\x9f" + b)))
def test_bytes_are_valid_where_python_reports_it(lines):
    texts, faults = clean(lines)
    for line, text, fault in zip(lines, texts, faults, strict=True):
        try:
            assert text == clean_in_python(line.decode())
            assert fault == -1
        except UnicodeDecodeError as error:
            assert (text, fault) == ("", error.start)


@given(st.lists(st.text("aen\u0301\u0303\u0323각각한é\u0344 ")))
def test_compose_gives_nfc(texts):
    expected = [unicodedata.normalize("NFC", text) for text in texts]
    assert compose(pa.array(texts, pa.string())).to_pylist() == expected


@pytest.mark.slow
def test_blocks_of_letters_without_case_are_as_if_each_was_looked_at(monkeypatch):
    def tables():
        functions = (cleaning_table, sentence_table, word_tables)
        for function in functions:
            function.cache_clear()
        cleaning = [
            cleaning_table(controls=controls, whitespace=whitespace)
            for controls in (True, False)
            for whitespace in (True, False)
        ]
        actions = [word_tables(casing).actions for casing in (True, KEEP_ACCENTS, False)]
        return [*cleaning, sentence_table(), *actions]

    shortened = tables()
    monkeypatch.setattr(characters, "_CASELESS_RANGES", ())
    characters._other_code_points.cache_clear()
    for mine, expected in zip(shortened, tables(), strict=True):
        np.testing.assert_array_equal(mine, expected)
    characters._other_code_points.cache_clear()


@pytest.mark.slow
def test_every_character_that_can_change_under_nfc_is_known():
    """Those with a combining class, those that compose with what stands before them, and those
    that NFC replaces."""
    seconds = set()
    for code_point in range(NUM_CODE_POINTS):
        parts = unicodedata.decomposition(chr(code_point)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            seconds.add(int(parts[1], 16))
    jamo = set(range(0x1161, 0x1176)) | set(range(0x11A8, 0x11C3))
    table = cleaning_table()
    for code_point in range(NUM_CODE_POINTS):
        character = chr(code_point)
        if (
            code_point in seconds
            or code_point in jamo
            or unicodedata.combining(character)
            or unicodedata.normalize("NFC", character) != character
        ):
            assert table[code_point] in (BLANK, COMPOSE), hex(code_point)
