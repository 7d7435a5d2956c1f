"""Which labels are numbers."""

import pytest
from behavior.timing import superlinear_growth

from bert_tf.base.errors import RowsRejected
from bert_tf.data.tables.tables import Table
from bert_tf.tasks.base.labels import reject_other_labels


def table_of(labels):
    return Table(
        source="t.csv",
        columns={"text": ["x"] * len(labels), "stars": list(labels)},
        lines=list(range(2, 2 + len(labels))),
        rejects=[],
    )


@pytest.mark.parametrize(
    "label", ["3", "-2.5", "+.5", "4.", " 7 ", "1e3", "1E-30", "0", "-0.0", "3.4e38", "1e-400"]
)
def test_numbers(label):
    assert reject_other_labels(table_of([label]), "stars").columns["stars"] == [label]


@pytest.mark.parametrize(
    "label",
    ["nan", "inf", "-Infinity", "3,5", "1_000", "five", "true", "0x1", "1e39", "1e400", "٣", "- 3"],
)
def test_what_is_no_finite_number_of_float32_is_rejected_with_its_line(label):
    kept = reject_other_labels(table_of(["1", label, "2"]), "stars")
    assert kept.columns["stars"] == ["1", "2"]
    assert [str(reject) for reject in kept.rejects] == [
        f"t.csv:3: label is not a finite number ({label!r})"
    ]
    with pytest.raises(
        RowsRejected, match=r"1 × label is not .*first at t\.csv:2.*'stars'.*--label-column"
    ):
        reject_other_labels(table_of([label]), "stars")


def test_a_long_label_costs_no_more_than_its_length():
    def kept_labels(label):
        return reject_other_labels(table_of(["1", label]), "stars").columns["stars"]

    assert kept_labels("1" * 1_000_000 + "x") == ["1"]
    assert superlinear_growth(kept_labels, lambda size: "1" * size + "x", size=100_000) is None
