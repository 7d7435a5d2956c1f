"""Tags to entities and back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.base.arrays import offsets_of
from bert_tf.tasks.tagging.schemes import (
    code_tags,
    entity_spans,
    recognized_scheme,
    scheme_tags,
    strict_spans,
    tag_parts,
    tags_of_spans,
)

LETTERS = {"bio": "BI", "iobes": "BIES", "bilou": "BILU"}
SCHEMES = [*LETTERS, "plain"]


def rows_of_tags(scheme):
    kinds = ["per", "o-rg"]
    tags = ["O", *scheme_tags(kinds, scheme)]
    return st.lists(st.lists(st.sampled_from(tags), max_size=8), min_size=1, max_size=5)


any_rows = st.sampled_from(SCHEMES).flatmap(
    lambda scheme: st.tuples(st.just(scheme), rows_of_tags(scheme))
)


def conlleval_entities(tags, scheme):
    """conlleval.pl, `startOfChunk` and `endOfChunk`, word by word; of plain tags each is one."""
    if scheme == "plain":
        return [(tag, index, index + 1) for index, tag in enumerate(tags) if tag != "O"]
    names = {"L": "E", "U": "S"} if scheme == "bilou" else {}
    entities = []
    begin = None
    prev = "O"
    prev_kind = ""
    for index, tag in enumerate([*tags, "O"]):
        letter, _, kind = tag.partition("-")
        letter = names.get(letter, letter)
        ends = prev in "ES" or (prev in "BI" and letter in "BSO")
        ends |= prev != "O" and prev_kind != kind
        starts = letter in "BS" or (prev in "ESO" and letter in "EI")
        starts |= letter != "O" and prev_kind != kind
        if ends:
            entities.append((prev_kind, begin, index))
        if starts:
            begin = index
        prev, prev_kind = letter, kind
    return entities


def found_entities(rows, scheme, find):
    tags = [tag for row in rows for tag in row]
    offsets = offsets_of(np.array([len(row) for row in rows]))
    numbers = {}
    spans = find(code_tags(tags, scheme, numbers), offsets)
    names = list(numbers)
    found = zip(*(values.tolist() for values in spans), strict=True)
    return [(names[kind], first, last) for first, last, kind in found], spans, names, len(tags)


@given(any_rows)
def test_entities_of_any_tags_are_those_of_conlleval(drawn):
    scheme, rows = drawn
    found, *_ = found_entities(rows, scheme, entity_spans)
    begins = np.cumsum([0, *(len(row) for row in rows)])
    expected = [
        (kind, first + begin, last + begin)
        for row, begin in zip(rows, begins.tolist(), strict=False)
        for kind, first, last in conlleval_entities(row, scheme)
    ]
    assert found == expected


@given(any_rows, st.sampled_from(list(LETTERS)))
def test_written_tags_have_the_same_entities_and_are_well_formed(drawn, target):
    scheme, rows = drawn
    found, spans, names, words = found_entities(rows, scheme, entity_spans)
    written = tags_of_spans(spans, words, names, target)
    offsets = offsets_of(np.array([len(row) for row in rows]))
    cut = np.split(np.array(written, object), offsets[1:-1])
    again, *_ = found_entities(cut, target, entity_spans)
    strict, *_ = found_entities(cut, target, lambda *tags: strict_spans(*tags, target))
    assert again == strict == found
    assert {tag[0] for tag in written} <= {"O", *LETTERS[target]}


@pytest.mark.parametrize(
    ("tags", "scheme"),
    [
        (["O", "B-per", "I-per"], "bio"),
        (["O", "I-per"], "bio"),
        (["B", "I", "O"], "bio"),
        (["O", "B-a", "L-a", "U-a"], "bilou"),
        (["O", "B-a", "E-a"], "iobes"),
        (["O", "S-a"], "iobes"),
        (["NN", "VB", "I"], "plain"),
        (["I", "S"], "plain"),
        (["PER", "LOC", "O"], "plain"),
        (["O"], "plain"),
    ],
)
def test_the_scheme_is_recognized_by_the_tags(tags, scheme):
    assert recognized_scheme(dict.fromkeys(tags, 1)) == scheme


def test_a_few_wrong_tags_do_not_hide_the_scheme():
    assert recognized_scheme({"O": 500, "B-per": 60, "I-per": 39, "per": 1}) == "bio"
    assert recognized_scheme({"O": 500, "B-per": 60, "NN": 10}) == "plain"


@pytest.mark.parametrize("tag", ["I-", "per", "", "E-per", "b-per", "B per"])
def test_tags_of_no_or_another_scheme_are_told_from_those_of_one(tag):
    assert tag_parts(tag, "bio") is None
