"""Cells with any number of labels."""

import pytest

from bert_tf.base.errors import InputError
from bert_tf.data.tables.tables import Table
from bert_tf.tasks.multilabel.label_cells import labels_of_cells, reject_other_cells


def table_of(cells):
    return Table(source="t.csv", columns={"tags": cells}, lines=[*range(2, 2 + len(cells))],
                 rejects=[])  # fmt: skip


@pytest.mark.parametrize(
    ("cell", "labels"),
    [
        ("", ()),
        (" ", ()),
        ("a", ("a",)),
        ("a|b c|a", ("a", "b c")),
        (" a | b ||", ("a", "b")),
        ("[]", ()),
        ('["a", "b|c", "a"]', ("a", "b|c")),
        ("[1, 2.50, true]", ("1", "2.5", "true")),
        ("[urgent]|x", ("[urgent]", "x")),
        ('{"a": 1}', ('{"a": 1}',)),
    ],
)
def test_labels(cell, labels):
    assert labels_of_cells([cell, "z"], "|") == [labels, ("z",)]
    assert len(reject_other_cells(table_of([cell]), "tags", "|")) == 1


def test_another_separator():
    assert labels_of_cells(["a, b|c", "d"], ",") == [("a", "b|c"), ("d",)]
    assert labels_of_cells(["a  b "], " ") == [("a", "b")]


@pytest.mark.parametrize("cell", ['[["a"]]', '["a", null]', '[{"a": 1}]', '["a", ""]', '[" "]'])
def test_lists_of_something_else_are_rejected_with_their_line(cell):
    kept = reject_other_cells(table_of(["a", cell]), "tags", "|")
    assert kept.columns == {"tags": ["a"]}
    assert [str(reject) for reject in kept.rejects] == [
        f"t.csv:3: label is neither a list nor a text of labels ({cell!r})"
    ]
    with pytest.raises(InputError, match=r"'tags' holds no labels in any row; .* t\.csv:2: "):
        reject_other_cells(table_of([cell]), "tags", "|")


def test_deep_nesting_is_a_text_like_others():
    deep = "[" * 100_000
    assert labels_of_cells([deep], "|") == [(deep,)]
