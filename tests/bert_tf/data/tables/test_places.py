"""Names of a row: its line, its row in a spreadsheet, its id; in lists, rejects and messages."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.base.errors import UsageError
from bert_tf.data.tables.dialect import TableDialect
from bert_tf.data.tables.file_rows import Table
from bert_tf.data.tables.places import Place, likely_id_column
from bert_tf.data.tables.rejects import read_rejects, write_rejects
from bert_tf.data.tables.repeated_ids import RepeatedIds, repeated_ids_warning
from bert_tf.data.tables.tables import read_table, read_table_blocks

BROKEN = 'ticket,text,label\nT-1,"two\nlines",a\nT-2,one,b\nT-3,,a\nT-4,"x\r\ny\rz",b\nT-5,last,a\n'


def read(path: Path, text: str, *, id_column: str | None = None) -> Table:
    path.write_bytes(text.encode())
    dialect = TableDialect(id_column=id_column)
    return read_table(path, dialect=dialect, text_columns=["text"], value_columns=["label"])


@given(
    cells=st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5),
        min_size=2,
        max_size=12,
    )
)
def test_rows_are_those_of_a_csv_reader(tmp_path_factory, cells):
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerow(["id", "text"])
    writer.writerows([f"T-{number}", cell] for number, cell in enumerate(cells))
    path = tmp_path_factory.mktemp("rows") / "t.csv"
    path.write_bytes(stream.getvalue().encode())
    records = list(csv.reader(io.StringIO(stream.getvalue(), newline="")))
    expected = [(number, row[0]) for number, row in enumerate(records, start=1)][1:]
    found = []
    dialect = TableDialect(id_column="id")
    for block in read_table_blocks(path, dialect=dialect, list_columns=["text"], block_rows=3):
        places = [block.places.at(line) for line in block.lines]
        found += [(place.row or place.line, place.id) for place in places]
    assert found == expected


def test_lists_have_the_row_and_the_id_beside_the_line(tmp_path):
    table = read(tmp_path / "t.csv", BROKEN)
    assert table.place_columns == {
        "line": [2, 4, 6, 9],
        "row": [2, 3, 5, 6],
        "id": ["T-1", "T-2", "T-4", "T-5"],
    }
    (reject,) = table.rejects
    assert (reject.line, reject.row, reject.id) == (5, 4, "T-3")
    assert reject.place == f"{tmp_path}/t.csv:5 (row 4, id 'T-3')"
    write_rejects(tmp_path / "rejects.jsonl", table.rejects)
    assert list(read_rejects(tmp_path / "rejects.jsonl")) == table.rejects
    assert json.loads((tmp_path / "rejects.jsonl").read_text())["id"] == "T-3"
    _, chosen = table.split(np.array([False, False, True, False]))
    assert chosen.place(0) == Place(6, 5, "T-4")


def test_rows_without_line_ends_and_ids_are_named_as_before(tmp_path):
    table = read(tmp_path / "t.csv", "text,label\none,a\ntwo,b\n")
    assert table.place_columns == {"line": [2, 3]}
    assert str(table.place(1)) == "3"
    assert set(read(tmp_path / "u.csv", BROKEN, id_column="none").place_columns) == {"line", "row"}


def test_ids_of_json_lines(tmp_path):
    rows = [{"id": 7, "text": "a b", "label": 1}, {"id": 12345678901, "text": "c", "label": 0}]
    table = read(tmp_path / "t.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    assert table.place_columns == {"line": [1, 2], "id": ["7", "12345678901"]}


def test_a_column_that_is_not_there_or_is_read_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"t.csv: no column 'key'; it has 'ticket', 'text', 'lab"):
        read(tmp_path / "t.csv", BROKEN, id_column="key")
    with pytest.raises(UsageError, match=r"--id-column label: the model reads that column; name"):
        read(tmp_path / "t.csv", BROKEN, id_column="label")


def rows_of(**columns):
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


MANY = [f"row {number}" for number in range(9)]


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"note": list("abcdefghi"), "ticketId": list("ihgfedcba")}, "ticketId"),
        ({"code": ["x"] * 9, "email": [f"{n}@x.org" for n in range(9)]}, "email"),
        ({"Unnamed: 0": range(9), "mail": [f"{n}@x.org" for n in range(9)]}, "mail"),
        ({"Unnamed: 0": range(9)}, "Unnamed: 0"),
        ({"ID": [1, 2, 3]}, "ID"),
        ({"amount": [1, 2, 3]}, None),  # of few rows, by chance
        ({"price": [f"{n}.5" for n in range(9)]}, None),
        ({"score": [n / 8 for n in range(9)]}, None),
        ({"id": ["a", "", *"bcdefgh"]}, None),
        ({"title": MANY}, None),
        ({"label_id": range(9)}, None),  # is read
        ({"idea": MANY, "valid": list(range(9))}, "valid"),
    ],
)
def test_the_id_column_is_found_by_its_values(columns, expected):
    assert likely_id_column(tuple(columns), rows_of(**columns), {"label_id"}) == expected


@given(st.lists(st.lists(st.sampled_from("abcdefghijk"), max_size=6), max_size=12))
def test_repeated_ids_are_counted(blocks):
    found = RepeatedIds()
    seen, repeats = set(), []
    for block in blocks:
        found.add(block)
        for each in block:
            if each in seen:
                repeats.append(each)
            seen.add(each)
    assert found.count == len(repeats)
    assert found.first == next(iter(repeats), "")


def test_repeated_ids_are_said_in_a_line():
    assert repeated_ids_warning("a.csv", "ticket", "T-7", 1) == (
        "a.csv: 1 row has the id of an earlier row in column 'ticket', the first 'T-7'; lines tell "
        "such rows apart"
    )
