"""Rows of Parquet, and Parquet as an output: values, types, row groups."""

import csv
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bert_tf.base.errors import InputError, UsageError
from pipeline.scoring import join
from pipeline.scoring.join import join_parts
from pipeline.scoring.parts import column_array, column_types, kinds_of


@pytest.mark.parametrize("output", ["out.jsonl", "out.csv"])
def test_rows_of_parquet_keep_their_values(tmp_path, make_plan, score, output):
    table = pa.table(
        {
            "id": [1, 2, 3, 4],
            "text": pa.array(["fine", None, "two\nlines", "x"]).dictionary_encode(),
            "tags": [["a", "b"], [], None, ["c"]],
            "price": [0.5, None, 2.0, 1e300],
            "day": pa.array([0, 1, 2, None], pa.date32()),
        }
    )
    pq.write_table(table, tmp_path / "in.parquet", row_group_size=3)
    plan = make_plan("in.parquet", output=output)
    counts = score(plan)
    assert (counts.rows_in, counts.rows_out) == (4, 3)
    (reject,) = map(json.loads, (tmp_path / "rejects.jsonl").read_text().splitlines())
    assert (reject["line"], reject["reason"]) == (2, "column 'text' is empty")
    written = (tmp_path / output).read_text()
    if output == "out.csv":
        found = list(csv.DictReader(io.StringIO(written)))
        assert [row["tags"] for row in found] == ['["a", "b"]', "", '["c"]']
        assert [row["text"] for row in found] == ["fine", "two\nlines", "x"]
        return
    found = [json.loads(line) for line in written.splitlines()]
    kept = table.take([0, 2, 3]).set_column(4, "day", pa.array(["1970-01-01", "1970-01-03", None]))
    assert [{name: row[name] for name in table.column_names} for row in found] == kept.to_pylist()
    assert [row["predicted_label"] for row in found] == ['4, "f"', '9, "t"', '1, "x"']


def test_parquet_is_not_compressed_again(tmp_path, make_plan):
    (tmp_path / "in.csv").write_text("text\nx\n")
    with pytest.raises(UsageError, match=r"has its own compression; use the extension \.parquet"):
        make_plan("in.csv", output="out.parquet.gz")


def scored_columns(texts: list[str]) -> dict[str, list]:
    """Return the columns that the fixture `score` adds to the usable rows."""
    labels = [f'{len(text)}, "{text[:1].strip()}"' for text in texts]
    return {"predicted_label": labels, "predicted_score": [0.25] * len(texts)}


@pytest.mark.parametrize("block_rows", [1, 3, 1000])
@pytest.mark.parametrize("limit", [0, 4])
def test_parquet_to_parquet_keeps_every_type(tmp_path, make_plan, score, block_rows, limit):
    """Columns that JSON has no types for are those of the source, byte for byte."""
    rows = 10
    texts = [None if n == 2 else f"{n} row" for n in range(rows)]
    table = pa.table(
        {
            "text": pa.array(texts).dictionary_encode(),
            "when": pa.array(range(rows), pa.timestamp("ns", "Europe/Madrid")),
            "raw": pa.array([bytes([255, n]) for n in range(rows)], pa.binary()),
            "price": pa.array([n * 10 for n in range(rows)], pa.int32()).cast(pa.decimal128(12, 2)),
            "nested": [{"a": [n], "b": "x"} for n in range(rows)],
            "small": pa.array([None, *range(rows - 1)], pa.int8()),
            "key": pa.array([bytes([n] * 16) for n in range(rows)], pa.uuid()),
            "a.b": range(rows),
        }
    ).replace_schema_metadata({"huggingface": "{}", "pandas": "{}"})
    pq.write_table(table, tmp_path / "in.parquet", row_group_size=4)
    plan = make_plan("in.parquet", output="out", block_rows=block_rows, limit=limit)
    counts = score(plan)
    read = limit or rows
    assert (counts.rows_in, counts.rows_out) == (read, read - 1)
    found = pq.read_table(tmp_path / "out" / "in.parquet")
    kept = table.take([n for n in range(read) if n != 2])
    assert found.select(table.column_names).equals(kept)
    assert found.schema.metadata == {b"pandas": b"{}"}
    added = scored_columns(kept["text"].to_pylist())
    assert found.drop_columns(table.column_names).to_pydict() == added


def test_parquet_that_changed_meanwhile_is_refused(tmp_path, make_plan, score, monkeypatch):
    pq.write_table(pa.table({"text": ["a", "b", "c"]}), tmp_path / "in.parquet")
    plan = make_plan("in.parquet", output="out.parquet")
    score(plan)
    for texts in (["a", "b"], ["a", "b", "c", "d"]):
        pq.write_table(pa.table({"text": texts}), tmp_path / "in.parquet")
        with pytest.raises(InputError, match=r"in\.parquet: has changed since the job began"):
            join_parts(plan, tmp_path / "rejects.jsonl")


def test_cells_become_texts_and_json_values_typed_columns_of_parquet(tmp_path, make_plan, score):
    (tmp_path / "in.csv").write_text('id,text,day\n007,a,2024-01-05\n1.0,"b\nc",\n')
    score(make_plan("in.csv", output="cells.parquet", block_rows=1, identity="cells"))
    assert pq.read_table(tmp_path / "cells.parquet").to_pydict() == {
        "id": ["007", "1.0"],
        "text": ["a", "b\nc"],
        "day": ["2024-01-05", ""],
        **scored_columns(["a", "b\nc"]),
    }
    (tmp_path / "in.jsonl").write_text(
        '{"id": 1, "text": "a"}\n{"id": 2.5, "text": "", "odd": 0}\n'
        '{"text": "b", "tags": ["x"], "ok": true}\n'
    )
    score(make_plan("in.jsonl", output="values.parquet", block_rows=1))
    found = pq.read_table(tmp_path / "values.parquet")
    assert found.to_pydict() == {
        "id": [1, None],
        "text": ["a", "b"],
        "tags": [None, '["x"]'],
        "ok": [None, True],
        **scored_columns(["a", "b"]),
    }
    assert [str(field.type) for field in found.schema][:4] == ["int64", "string", "string", "bool"]


def test_row_groups_of_parquet_are_bounded(tmp_path, make_plan, score, monkeypatch):
    monkeypatch.setattr(join, "_GROUP_ROWS", 4)
    (tmp_path / "in.jsonl").write_text("".join(f'{{"text": "row {n}"}}\n' for n in range(11)))
    score(make_plan("in.jsonl", output="out.parquet", block_rows=2))
    file = pq.ParquetFile(tmp_path / "out.parquet")
    groups = [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)]
    assert groups == [4, 4, 3]
    assert file.read()["text"].to_pylist() == [f"row {n}" for n in range(11)]


@pytest.mark.parametrize(
    ("values", "type_", "expected"),
    [
        ([1, None, 3], pa.int64(), [1, None, 3]),
        ([1, 2.5], pa.float64(), [1.0, 2.5]),
        ([True, False], pa.bool_(), [True, False]),
        (["2020-01-01", "1"], pa.string(), ["2020-01-01", "1"]),
        ([None, None], pa.string(), [None, None]),
        ([1, "a", True], pa.string(), ["1", "a", "true"]),
        ([[1, "é"], {"b": None}], pa.string(), ['[1, "é"]', '{"b": null}']),
        ([1 << 63], pa.string(), ["9223372036854775808"]),
        ([-(1 << 63)], pa.int64(), [-(1 << 63)]),
        ([(1 << 53) + 1, 2], pa.int64(), [(1 << 53) + 1, 2]),
        ([(1 << 53) + 1, 0.5], pa.string(), ["9007199254740993", "0.5"]),
    ],
)
def test_a_column_has_the_type_of_all_its_values(values, type_, expected):
    rows = [{"c": value} for value in values]
    parts = [kinds_of([row]) for row in rows]
    assert column_types(parts) == column_types([kinds_of(rows)]) == {"c": type_}
    array = column_array(rows, "c", type_)
    assert (array.type, array.to_pylist()) == (type_, expected)


def test_columns_are_in_the_order_of_their_first_appearance_and_may_be_absent():
    rows = [{"b": 1}, {"a": "x", "b": 2}]
    types = column_types([kinds_of(rows[:1]), kinds_of(rows[1:])])
    assert list(types) == ["b", "a"]
    assert column_array(rows, "a", types["a"]).to_pylist() == [None, "x"]
