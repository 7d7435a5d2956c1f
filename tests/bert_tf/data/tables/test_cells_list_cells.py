"""Lists as texts of cells."""

import json

import numpy as np
import pytest

from bert_tf.data.tables.cells import list_in_text, named_texts, value_in_text

ITEMS = ["a", "b c", "it's", 'say "x"', "d,e", "[f]", "back\\slash", "é"]


@pytest.mark.parametrize("write", [json.dumps, str, lambda items: str(tuple(items))])
@pytest.mark.parametrize("count", [1, 2, 8])
def test_texts_of_lists_are_read_back(write, count):
    assert list_in_text(write(ITEMS[:count])) == ITEMS[:count]


@pytest.mark.parametrize(
    "array",
    [
        np.array(ITEMS, object),
        np.array([1, 0, 1]),
        np.array([1.0, 0.5]),
        np.array([True, False]),
        np.array([str(n) for n in range(40)], object),
    ],
)
def test_texts_of_arrays_are_read_back(array):
    assert list_in_text(str(array)) == array.tolist()
    assert list_in_text(repr(array)) == array.tolist()
    assert list_in_text(str([*array])) == array.tolist()


@pytest.mark.parametrize("items", [{"a", "b"}, {1}, frozenset({"a"}), set()])
def test_texts_of_sets_are_read_back(items):
    assert set(list_in_text(str(items))) == items


@pytest.mark.parametrize(
    "text",
    ["", "a", "[a, b]", "[a]|[b]", "(1)", "(see)", "{'a': 1}", "['a' 'b', 'c']", "[1 ... 2]"],
)
def test_other_texts_are_no_lists(text):
    assert list_in_text(text) is None


@pytest.mark.parametrize(
    "text", [r'["\ud800"]', r"['\ud800', 1]", r"['\U0000dfff']", r"{'\ud800'}"]
)
def test_halves_of_surrogate_pairs_are_no_items(text):
    assert list_in_text(text) is None


def test_values_with_halves_of_surrogate_pairs_stay_texts():
    for text in (r'[{"label": "\ud800"}]', r"{'choices': ['\ud800']}"):
        assert value_in_text(text) == text
    assert value_in_text(r'["\ud83d\ude00", "\\ud800"]') == ["😀", r"\ud800"]


def test_values_of_json_and_python():
    assert value_in_text('[{"start": 0}]') == value_in_text("[{'start': 0}]") == [{"start": 0}]
    assert value_in_text("[(0, 4, 'PER')]") == [(0, 4, "PER")]
    assert value_in_text("a\\d") == "a\\d"


@pytest.mark.parametrize(
    "written", ['{"1": "a lamp", "2": "a book"}', "{1: 'a lamp', 2: 'a book'}"]
)
def test_numbers_name_texts_in_json_and_python(written):
    assert named_texts(written) == [("1", "a lamp"), ("2", "a book")]


def test_objects_with_other_keys_name_no_texts():
    assert named_texts("{(1, 2): 'a', None: 'b'}") is named_texts("{}") is None
