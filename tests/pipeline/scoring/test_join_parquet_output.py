"""Columns of Parquet that Arrow selects no rows of, and tables without rows."""

from __future__ import annotations

import datetime
import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError
from pipeline.scoring.first_rows import check_tables

LONG = "a text that a view does not hold itself"
STRUCT = pa.struct([("name", pa.string_view()), ("at", pa.timestamp("ns"))])
COLUMNS = {
    "string_view": (pa.string_view(), [LONG, None, "b", ""], None),
    "binary_view": (pa.binary_view(), [LONG.encode(), None, b"\xff", b""], None),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), ["x", None, "y", "x"], None),
    "large_string": (pa.large_string(), [LONG, None, "b", ""], None),
    "large_binary": (pa.large_binary(), [b"\xff", None, b"b", b""], None),
    "fixed_size_binary": (pa.binary(2), [b"\xff\xfe", None, b"ab", b"\0\0"], None),
    "decimal": (pa.decimal256(50, 2), [1, None, 2, 3], None),
    "duration": (pa.duration("ns"), [1, None, 2, 3], None),
    "time": (pa.time64("ns"), [1, None, 2, 3], None),
    "bool8": (pa.bool8(), [1, None, 0, 1], None),
    "map": (pa.map_(pa.string(), pa.int64()), [[("a", 1)], None, [], []], None),
    "date_of_no_calendar": (pa.date32(), [2**30, None, 1, 2], None),
    "list_of_nanoseconds": (pa.list_(pa.timestamp("ns")), [[1], None, [], [2]], None),
    # Views within other types become what they are views of.
    "list_of_views": (
        pa.large_list(pa.string_view()),
        [[LONG, None], None, [], ["b"]],
        pa.large_list(pa.large_string()),
    ),
    "list_view": (
        pa.list_view(pa.binary_view()),
        [[b"\xff"], None, [], [b"b"]],
        pa.list_(pa.large_binary()),
    ),
    "struct_of_views": (
        STRUCT,
        [{"name": LONG, "at": None}, None, {"name": None, "at": None}, {"name": "b", "at": None}],
        pa.struct([("name", pa.large_string()), ("at", pa.timestamp("ns"))]),
    ),
}


def as_stored(kind: pa.DataType, values: list) -> pa.Array:
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, pa.array(values, pa.int8()))
    return pa.array(values, kind)


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("output", ["parquet", "jsonl"])
def test_every_type_of_arrow_is_scored(tmp_path, make_plan, score, name, output):
    kind, values, becomes = COLUMNS[name]
    column = as_stored(kind, values)
    pq.write_table(
        pa.table({"text": pa.array(["a", None, "b", "c"], pa.string_view()), name: column}),
        tmp_path / "in.parquet",
    )
    counts = score(make_plan("in.parquet", output=f"out.{output}", block_rows=3))
    assert (counts.rows_in, counts.rows_out) == (4, 3)
    if output == "jsonl":
        assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 3
        return
    found = pq.read_table(tmp_path / "out.parquet")
    assert found.schema.field(name).type == (becomes or kind)
    assert found["text"].to_pylist() == ["a", "b", "c"]
    stored = [scalar.as_py() if becomes else scalar for scalar in column]
    del stored[1]
    got = [scalar.as_py() if becomes else scalar for scalar in found[name].combine_chunks()]
    assert got == stored


def test_times_that_python_lacks_are_texts_of_json(tmp_path, make_plan, score):
    second = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    table = pa.table(
        {
            "text": ["a", "b"],
            "at": pa.array([1, 2], pa.timestamp("ns")),
            "times": pa.array([[1], []], pa.list_(pa.timestamp("ns"))),
            "usual": pa.array([[second], []], pa.list_(pa.timestamp("s", "UTC"))),
        }
    )
    pq.write_table(table, tmp_path / "in.parquet")
    score(make_plan("in.parquet", output="out.jsonl"))
    first = (tmp_path / "out.jsonl").read_text().splitlines()[0]
    assert '"at": "1970-01-01 00:00:00.000000001"' in first
    assert '"times": ["1970-01-01 00:00:00.000000001"]' in first
    assert '"usual": ["2026-01-01 00:00:00+00:00"]' in first


EMPTY = {
    "empty.csv": b"text,n\n",
    "nothing.csv": b"",
    "nothing.jsonl": b"\n",
}


@pytest.mark.parametrize("name", [*EMPTY, "empty.parquet"])
def test_a_table_without_rows_among_others_has_an_output_without_rows(
    tmp_path, make_plan, score, name
):
    (tmp_path / "rows.csv").write_text("text,n\nx,1\n")
    if name in EMPTY:
        (tmp_path / name).write_bytes(EMPTY[name])
    else:
        table = pa.table({"text": pa.array([], pa.string()), "n": pa.array([], pa.int8())})
        pq.write_table(table, tmp_path / name)
    plan = make_plan("rows.csv", name, output="out")
    log = io.StringIO()
    check_tables(plan, Console(log))
    assert log.getvalue() == f"  text: 'x'\nwarning: {tmp_path / name}: has no rows\n"
    counts = score(plan)
    assert (counts.rows_in, counts.rows_out) == (1, 1)
    assert len((tmp_path / "out" / "rows.csv").read_text().splitlines()) == 2
    if name == "empty.parquet":
        found = pq.read_table(tmp_path / "out" / name)
        names = ["text", "n", "predicted_label", "predicted_score"]
        assert (found.num_rows, found.column_names) == (0, names)
        assert found.schema.field("n").type == pa.int8()
        return
    header = "text,n,predicted_label,predicted_score\n" if name == "empty.csv" else ""
    assert (tmp_path / "out" / name).read_text() == header


def test_tables_that_all_have_no_rows_are_refused(tmp_path, make_plan, score):
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("text\n")
    with pytest.raises(InputError, match=r"a\.csv: has columns but no rows; add some"):
        check_tables(make_plan("?.csv", output="out"), Console(io.StringIO()))
    plan = make_plan("a.csv", output="out")
    with pytest.raises(InputError, match=r"a\.csv: has columns but no rows; add some"):
        score(plan)
