"""Weights of rows that cannot be used are rejects."""

import pytest

from bert_tf.base.errors import InputError
from bert_tf.data.tables.tables import Table
from bert_tf.tasks.classification.task import rejecting_bad_weights


def table_of(weights):
    lines = list(range(2, 2 + len(weights)))
    return Table(source="t.csv", columns={"w": weights}, lines=lines, rejects=[])


def test_numbers_from_0_are_weights():
    table = table_of(["1", "0", "0.25", "1e3", " 2 "])
    assert rejecting_bad_weights(table, "w") is table


def test_other_cells_are_rejected():
    table = rejecting_bad_weights(table_of(["1", "-1", "heavy", "nan", "inf", "2"]), "w")
    assert table.columns["w"] == ["1", "2"]
    assert [str(reject) for reject in table.rejects] == [
        f"t.csv:{line}: weight is not a number from 0 ({cell!r})"
        for line, cell in [(3, "-1"), (4, "heavy"), (5, "nan"), (6, "inf")]
    ]


def test_a_column_without_weights():
    with pytest.raises(InputError, match="2 × weight is not .*t.csv:2 .*'w'"):
        rejecting_bad_weights(table_of(["good", "bad"]), "w")
