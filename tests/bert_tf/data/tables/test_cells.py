"""Lists of texts in cells, as JSON has them and as the text of JSON."""

import pytest

from bert_tf.data.tables.cells import texts_of


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        (["a", None, 2, True], ["a", "", "2", "true"]),
        (["a", 2, True, None, " "], ["a", "2", "true"]),
        ('["a", 2.50, "é"]', ["a", "2.5", "é"]),
        ([], []),
        ("", None),
        ("a, b", None),
        ('"a"', None),
        ('{"a": 1}', None),
        (["a", ["b"]], None),
        ([{"text": "a"}], None),
        ({"text": ["a", "b"], "label": ["A", "B"]}, ["a", "b"]),
        ('{"text": ["a", "b"], "label": ["A", "B"]}', ["a", "b"]),
        ("{'text': array(['a', 'b'], dtype=object), 'label': array(['A', 'B'])}", ["a", "b"]),
        ([{"label": "A", "text": "a"}, {"label": "B", "text": "b"}], ["a", "b"]),
        ({"A": "a", "B": "b"}, ["a", "b"]),
        ({"text": ["a", "b"], "label": ["A"]}, None),
        ({"A": "a"}, None),
        ({"A": 1, "B": 0}, None),
        ({"first": "a", "second": "b"}, None),
        ('["\\ud800"]', None),
        ("[" * 100_000, None),
        (7, None),
        (None, None),
    ],
)
def test_a_column_holds_a_list(value, texts):
    assert texts_of({"choices": value}, ["choices"]) == texts


def test_several_columns_are_a_list():
    row = {"b": "[1]", "a": 2, "other": "x"}
    assert texts_of(row, ["a", "missing", "b"]) == ["2", "", "[1]"]
    assert texts_of(row, ["a", "b", "missing"]) == ["2", "[1]"], "without empty ones at the end"
    assert texts_of(row, ["a", "missing"]) == ["2", ""], "but two are left"
