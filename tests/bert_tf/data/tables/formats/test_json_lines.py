"""Rows of JSON lines: keys, values, and the columns that stand for a header."""

from __future__ import annotations

import json

import pytest

from bert_tf.base.errors import InputError, UsageError
from bert_tf.data.tables.dialect import PLAIN, TableDialect
from bert_tf.data.tables.formats.json_lines import RowError, parse_object, read_json_rows
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


COLUMNS = {"text": {"0": "a lamp", "1": "an oven"}, "label": {"0": "x", "1": "y"}}
BY_NAME = {name: {f"r{row}": name for row in range(9)} for name in COLUMNS}
ROWS = {f"row-{row}": {"text": f"lamp {row}", "label": "x"} for row in range(30)}
SPLIT = {"columns": ["text", "label"], "index": [0], "data": [["a lamp", "x"]]}


@pytest.mark.parametrize(
    ("table", "what"),
    [
        (COLUMNS, "a table by columns, as pandas writes it"),
        (BY_NAME, "a table by columns"),
        ({**BY_NAME, "label": {"r0": "x"}}, "rows by their keys"),
        (ROWS, "rows by their keys; expected an object per line (jq -c '.[]' makes them"),
        (SPLIT, "a table of pandas"),
        ({"schema": {}, "data": [{"text": "a lamp"}]}, "a table of pandas"),
    ],
)
def test_tables_in_one_object_are_known(tmp_path, table, what):
    path = tmp_path / "a.json"
    path.write_text(json.dumps(table))
    with pytest.raises(InputError) as raised:
        list(read_json_rows(path, PLAIN))
    message = str(raised.value)
    assert f"a.json: is one JSON object, {what}" in message
    assert "df.to_json(path, orient='records', lines=True)" in message
    assert len(message) < 400


def test_joined_files_may_have_a_byte_order_mark_each(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('\ufeff{"text": "river"}\n\ufeff{"text": "late"}\n', encoding="utf-8")
    rows = list(read_json_rows(path, PLAIN))
    assert [(number, row["text"]) for number, _, row in rows] == [(1, "river"), (2, "late")]
    assert all(raw.startswith("{") for _, raw, _ in rows)


@pytest.mark.parametrize("row", [{"a": {"b": 1}}, {"a": {"b": 1}, "c": 2}, {"a": 1, "c": 2}])
def test_a_single_row_with_objects_is_a_row(tmp_path, row):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(row) + "\n")
    assert [found for _, _, found in read_json_rows(path, PLAIN)] == [row]
    path.write_text(json.dumps(COLUMNS) + "\n" + json.dumps(COLUMNS) + "\n")
    assert len(list(read_json_rows(path, PLAIN))) == 2


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ('{"$numberInt": "3"}', 3),
        ('{"$numberLong": "-4"}', -4),
        ('{"$numberDouble": "0.5"}', 0.5),
        ('{"$numberDecimal": "1.25"}', 1.25),
        ('{"$oid": "5f1b"}', "5f1b"),
        ('{"$date": {"$numberLong": "7"}}', {"$date": 7}),
        ('{"$numberInt": "many"}', {"$numberInt": "many"}),
        ('{"$numberInt": Infinity}', {"$numberInt": float("inf")}),
        ('{"$numberInt": "3", "b": 1}', {"$numberInt": "3", "b": 1}),
    ],
)
def test_values_of_mongodb_are_what_they_stand_for(written, value):
    row = parse_object(f'{{"a": {written}, "b": [{written}]}}')
    assert row == {"a": value, "b": [value]}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (
            '[["a b", "x"], ["c d", "y"]]\n',
            "is one JSON list of lists, whose columns have no names",
        ),
        (
            '{"text": ["a b", "c d"], "label": ["x", "y"]}\n',
            "is one JSON object, a table by columns",
        ),
    ],
)
def test_a_table_in_one_value_is_told(tmp_path, content, expected):
    path = tmp_path / "a.json"
    path.write_text(content)
    with pytest.raises(InputError, match=expected):
        list(read_json_rows(path, PLAIN))


def test_a_sentence_of_words_and_tags_is_a_row(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"tokens": ["in", "Rome"], "tags": ["O", "B"]}\n')
    ((_, _, row),) = read_json_rows(path, PLAIN)
    assert row["tokens"] == ["in", "Rome"]
