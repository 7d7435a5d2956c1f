"""Rejects as lines for the user, and as a file."""

from __future__ import annotations

import pytest

from bert_tf.base.errors import InputError, RowsRejected, UsageError
from bert_tf.data.tables.file_rows import FileRows
from bert_tf.data.tables.rejects import (
    Reject,
    describe_rejects,
    keeping_rejects,
    nothing_usable,
    read_rejects,
    write_rejects,
)

REJECTS = [
    Reject("a.csv", 7, "too few cells", "1 where the header has 2"),
    Reject("a.csv", 9, "invalid UTF-8"),
    Reject("b.csv", 2, "invalid UTF-8"),
]


def test_the_commonest_reasons_come_with_a_place_and_what_to_do():
    assert list(describe_rejects(REJECTS, 1000, "*.csv")) == [
        "*.csv: 3 of 1,000 rows rejected",
        "  2  invalid UTF-8, first at a.csv:9; its encoding cannot be detected; give it with "
        "--encoding",
        "  1  too few cells, first at a.csv:7 (1 where the header has 2)",
    ]


def test_an_error_about_the_rest_of_the_rows_begins_with_why_others_are_rejected():
    rows = FileRows(source="a.csv", lines=[1, 2], rejects=REJECTS)
    with pytest.raises(RowsRejected) as refused, rows.reasons_first():
        raise InputError("a.csv: column 'label' holds 0 in every row")
    assert str(refused.value) == (
        "a.csv: 3 of 5 rows rejected: 2 × invalid UTF-8, first at a.csv:9; 1 × too few cells, "
        "first at a.csv:7 (1 where the header has 2); its encoding cannot be detected; give it "
        "with --encoding; of the rest: column 'label' holds 0 in every row"
    )
    assert refused.value.rejects == REJECTS
    with (
        pytest.raises(UsageError, match="^a.csv: 3 of 5 rows rejected: .*: name another"),
        rows.reasons_first(),
    ):
        raise UsageError("a.csv: name another")
    whole = FileRows(source="a.csv", lines=[1, 2], rejects=[])
    with pytest.raises(InputError, match="^as it is$"), whole.reasons_first():
        raise InputError("as it is")


def test_a_file_without_a_usable_row_says_how_many_have_which_fault():
    error = nothing_usable("a.csv", REJECTS, advice="name the column")
    assert str(error).startswith("a.csv: none of its 3 rows can be used: 2 × invalid UTF-8, first ")
    assert str(error).endswith("give it with --encoding; name the column")
    assert error.rejects == REJECTS
    assert str(nothing_usable("a.csv", [])) == "a.csv: has no rows; add some"
    with pytest.raises(RowsRejected) as refused, keeping_rejects(REJECTS):
        raise RowsRejected("what a reader says that keeps none")
    assert refused.value.rejects == REJECTS


def test_nothing_is_reported_of_nothing():
    assert list(describe_rejects([], 10, "a.csv")) == []


def test_many_reasons_and_long_details_are_cut():
    rejects = [Reject("a.csv", n, f"reason {n}", "x" * 500) for n in range(8)]
    lines = list(describe_rejects(rejects, 8, "a.csv"))
    assert len(lines) == 7
    assert lines[-1] == "  and 3 more reasons"
    assert max(map(len, lines)) < 150


def test_a_file_of_rejects_is_read_back(tmp_path):
    write_rejects(tmp_path / "r.jsonl", REJECTS)
    assert list(read_rejects(tmp_path / "r.jsonl")) == REJECTS
    assert list(read_rejects(tmp_path / "none.jsonl")) == []


def test_a_name_that_is_not_utf8_is_escaped(tmp_path):
    rejects = [Reject("caf\udce9.csv", 1, "invalid UTF-8", "é")]
    write_rejects(tmp_path / "r.jsonl", rejects)
    assert (tmp_path / "r.jsonl").read_bytes().isascii() is False  # what is text stays readable
    assert list(read_rejects(tmp_path / "r.jsonl")) == rejects
