"""Rows of JSON lines: keys, values and what they have instead of a header."""

from __future__ import annotations

import pytest

from bert_tf.base.errors import UsageError
from bert_tf.data.tables.dialect import TableDialect
from bert_tf.data.tables.formats.json_lines import RowError, parse_object
from bert_tf.data.tables.tables import read_table, read_table_blocks


def test_json_lines_have_no_header_to_leave_out(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "x"}\n')
    with pytest.raises(UsageError, match="rows of JSON lines have keys"):
        read_table(tmp_path / "a.jsonl", dialect=TableDialect(has_header=False))


def test_values_may_be_numbers_but_not_lists(tmp_path):
    path = tmp_path / "a.jsonl"
    values = ["1", "true", "[1]", '"x"', "NaN", "-Infinity", "1e999", "2.5"]
    path.write_text("".join(f'{{"label": {value}}}\n' for value in values))
    table = read_table(path, value_columns=["label"])
    assert table.columns["label"] == ["1", "true", "x", "2.5"]
    assert [reject.line for reject in table.rejects] == [3, 5, 6, 7]
    assert table.rejects[1].reason == "column 'label' is neither text nor number"


@pytest.mark.parametrize("block_rows", [1, 2, 100])
def test_keys_are_looked_for_in_many_objects(tmp_path, block_rows):
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": 1}\n' * 3 + '{"text": "x"}\n')
    blocks = list(read_table_blocks(path, block_rows=block_rows, text_columns=["text"]))
    assert sum(len(block.rejects) for block in blocks) == 3
    assert all(block.columns == ("id", "text") for block in blocks)


def test_a_lone_surrogate_at_any_depth_is_a_reject():
    for depth in (1, *range(800, 1100)):  # Python's limit is somewhere there
        nested = '{"c": ' * depth + "1" + "}" * depth
        with pytest.raises(RowError, match="lone surrogate|not JSON"):
            parse_object(rf'{{"a": "\ud800", "b": {nested}}}')
