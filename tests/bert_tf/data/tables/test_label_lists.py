"""Lists of labels as databases and people write them."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bert_tf.data.tables.label_lists import (
    angled_labels,
    joined_labels,
    lists_of_databases,
    postgres_array,
    single_labels,
)


def as_postgres_writes(items):
    """Section 8.15.6 of PostgreSQL's manual: items in quotes, and the characters escaped there."""

    def written(item):
        needs_quotes = not item or item.upper() == "NULL" or re.search(r'[{}",\\\s]', item)
        escaped = item.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"' if needs_quotes or ":" in item else item

    return "{" + ",".join(map(written, items)) + "}"


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\x00"))))
@example(["a b", 'say "so"', "back\\slash", "{x}", ""])
def test_postgres_arrays_come_back(items):
    assert postgres_array(as_postgres_writes(items)) == items


@pytest.mark.parametrize(
    "text", ["", "a", "{a", "a}", "{a,}", "{,a}", '{"a": 1}', "{a}{b}", "{{a},{b}}", '{"a}', "[a]"]
)
def test_other_texts_are_no_arrays(text):
    assert postgres_array(text) is None


def test_labels_in_angle_brackets():
    assert angled_labels("<c#><asp.net-mvc>") == ["c#", "asp.net-mvc"]
    assert angled_labels(" <a> <b c> ") == ["a", "b c"]
    assert angled_labels("a <b>") is angled_labels("") is angled_labels("<>") is None


def test_columns_of_lists_are_read_as_one():
    assert lists_of_databases(["{a,b}", "", "{}", "{c}"]) == [["a", "b"], [], [], ["c"]]
    assert lists_of_databases(["<a><b>", "", "<c>"]) == [["a", "b"], [], ["c"]]
    assert lists_of_databases(["{a,b}", "c"]) is None
    assert lists_of_databases(["{'a', 'b'}"]) is None  # a set of Python
    assert lists_of_databases(['{"a": 1, "b": 0}']) is None
    assert lists_of_databases(["", " "]) is lists_of_databases([]) is None


def test_labels_that_join_others():
    labels = ["garden", "room", "garden|room", "garden, room", "rock & roll", "garden room"]
    found = [joined_labels(label, labels) for label in labels]
    assert found == [None, None, "|", ",", None, " "]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (['["billing"]', "['tech']"], ["billing", "tech"]),
        (["[1]", "[2]"], ["1", "2"]),
        (['["a"]', "b"], ["a", "b"]),
        (['["a "]', '[" b c"]'], ["a", "b c"]),
        (["[1]", "b"], ["[1]", "b"]),
        (['["a"]', '["a", "b"]'], ['["a"]', '["a", "b"]']),
        (['["a"]', "[]"], ['["a"]', "[]"]),
    ],
)
def test_labels_come_out_of_lists_of_one(labels, expected):
    assert single_labels(labels) == expected
