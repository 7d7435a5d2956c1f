"""Messages about labels before training."""

from __future__ import annotations

import io

import numpy as np
import pytest
from behavior.timing import superlinear_growth
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import classification_report

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError, RowsRejected
from bert_tf.data.tables.file_rows import Table
from bert_tf.tasks.base.labels import (
    LabelMeasures,
    LabelRows,
    label_table,
    labels_of_several,
    rarest_labels,
    reject_other_labels,
    sorted_labels,
    suspicious_labels,
    unknown_labels,
)
from bert_tf.tasks.classification.task import ClassificationTask
from bert_tf.tasks.registry import finetune_config


def rows_of(*labels: str) -> LabelRows:
    return LabelRows("a.csv", labels, range(2, len(labels) + 2))


def test_labels_are_a_table_with_their_rows():
    training = rows_of(*["Sports"] * 1200, *["sports "] * 3, "a b")
    rows = {"training": training, "evaluation": rows_of("a b", "a b")}
    assert list(label_table(["Sports", "a b", "sports "], rows)) == [
        "  label        training  evaluation",
        "  Sports          1,200           0",
        "  a b                 1           2",
        "  'sports '           3           0",
    ]


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (("-1", "0", "1", "2"), "'-1' (2 rows, first at line 2) is a label, though it looks like"),
        (
            (r"\N", "a"),
            r"'\\N' (2 rows, first at line 2) is a label, though it looks like a missing",
        ),
        (("-1", "0", "1"), ""),
    ],
)
def test_missing_labels_of_datasets_are_named(labels, said):
    assert said in "".join(suspicious_labels(rows_of(*labels, *labels)))
    assert bool(said) == any(suspicious_labels(rows_of(*labels, *labels)))


def test_of_many_labels_the_most_frequent_are_shown():
    labels = [f"label {n}" for n in range(30)]
    training = rows_of(*(label for n, label in enumerate(labels) for _ in range(n + 1)))
    lines = list(label_table(labels, {"training": training}))
    assert len(lines) == 22
    assert lines[0].split() == ["label", "training"]
    assert lines[1].split() == ["label", "29", "30"]
    assert lines[-1] == "  and 10 less frequent labels"


@pytest.mark.parametrize(
    "pair",
    [
        *[("sports ", "Sports"), ("1", "1.0"), ("True", "true"), ("a  b", "a b"), ("0", "-0.0")],
        *[("1e2", "100"), ("caf\u00e9", "cafe\u0301"), ("\uff11", "1"), ("a\u00a0b", "a b")],
        *[("sport\u200b", "sport"), ("\ufeffsport", "sport")],
    ],
)
def test_labels_that_differ_in_spelling_alone_are_named(pair):
    (line,) = suspicious_labels(rows_of("x", "x", *pair, *pair))
    first, second = pair
    assert f"a.csv: {first!r} (2 rows, first at line 4) and {second!r} (2 rows, " in line
    assert "differ only in spelling" in line


def test_letters_that_look_alike_are_named():
    (line,) = suspicious_labels(rows_of("spam", "spam", "sp\u0430m", "sp\u0430m"))
    assert "differ only in spelling (with CYRILLIC SMALL LETTER A); use one" in line
    (line,) = suspicious_labels(rows_of("don't", "don't", "don’t", "don’t"))
    assert "(with APOSTROPHE" not in line and "(with RIGHT SINGLE QUOTATION MARK)" in line


@pytest.mark.parametrize("pair", [("1", "11"), ("a-b", "ab"), ("1_0", "10"), ("nan", "inf")])
def test_other_labels_are_not(pair):
    lines = [line for line in suspicious_labels(rows_of(*pair, *pair)) if "spelling" in line]
    assert lines == []


@pytest.mark.parametrize(
    "label", ["N/A", "nan", "NULL", "None", " - ", "#N/A", "?", "Unlabeled", "#REF!", "(blank)"]
)
def test_labels_that_look_like_missing_values_are_named(label):
    (line,) = suspicious_labels(rows_of("x", "x", label, label))
    assert f"{label!r} (2 rows, first at line 4) is a label, though it looks like a missing" in line


def test_labels_that_join_others_are_named():
    (line,) = labels_of_several(rows_of("garden", "room", "garden|room", "rock & roll"))
    assert "'garden|room' (1 row, line 4) is several labels with '|' between them" in line
    assert "fine-tune for any number of labels" in line


def test_a_class_of_one_row_is_named_with_its_line():
    (line,) = suspicious_labels(rows_of("x", "x", "y", "y", "once"))
    assert (
        line == "a.csv: 'once' (1 row, line 6) is the only row of its label, too few to learn from"
    )


def test_many_faults_of_a_kind_are_cut():
    lines = list(suspicious_labels(rows_of(*(f"label {n}" for n in range(9)))))
    assert len(lines) == 6
    assert lines[-1] == "  and 4 more labels like these"


def test_unknown_labels_come_with_the_likely_ones():
    lines = list(unknown_labels(rows_of("sports ", "sports ", "weather"), ["News", "Sports"]))
    assert lines == [
        "a.csv: 'sports ' (2 rows, first at line 2) is not a label of the model (likely 'Sports'), "
        "which knows 'News', 'Sports'; such rows are rejected",
        "a.csv: 'weather' (1 row, line 4) is not a label of the model, which knows 'News', "
        "'Sports'; such rows are rejected",
    ]


def test_unknown_labels_may_be_several():
    (line,) = unknown_labels(rows_of("a, b", "a, b"), ["a", "b"])
    assert "(likely several, with another separator than in training), which knows 'a', 'b'" in line


def test_a_task_reports_it_all_when_it_reads(tmp_path):
    train, evaluation = tmp_path / "train.csv", tmp_path / "eval.csv"
    train.write_text("text,label\n" + "a,Sports\nb,News\n" * 3 + "c,sports \nd, sports\n")
    evaluation.write_text("text,label\na,News\nb,Weather\n")
    values = {"task": "classification", "train": str(train), "init": "m", "output": "run"}
    log = io.StringIO()
    task, table = ClassificationTask.from_training(finetune_config(values), Console(log))
    assert f"warning: {train}: 'Sports' (3 rows, first at line 2) and 'sports' " in log.getvalue()
    read = task.read(str(evaluation), Console(log))
    assert f"warning: {evaluation}: 'Weather' (1 row, line 3) is not a label" in log.getvalue()
    assert [reject.reason for reject in read.rejects] == ["label is not one the model knows"]
    assert list(task.describe({"training": table, "evaluation": read}))[1:] == [
        "  News             3           1",
        "  Sports           3           0",
        "  sports           2           0",
    ]


def test_one_label_left_by_rejects_reports_it(tmp_path):
    train = tmp_path / "train.csv"
    train.write_bytes("text,label\na,good\nb,good\nc,mélo\n".encode("latin-1"))
    values = {"task": "classification", "train": str(train), "init": "m", "output": "run"}
    with pytest.raises(
        InputError, match=r"1 of 3 rows rejected: 1 × invalid UTF-8.*cp1252; of .*two labels"
    ):
        ClassificationTask.from_training(finetune_config(values), Console())


def test_labels_are_sorted_by_number_or_as_text():
    assert sorted_labels({"10", "9", "-1"}) == ("-1", "9", "10")
    assert sorted_labels({"10", "9", "x"}) == ("10", "9", "x")


def test_the_rarest_label_of_each_row():
    rows = [["a", "b"], ["a"], [], ["c", "b"], ["b", "a"]]
    assert rarest_labels(rows) == ["a", "a", "", "c", "b"]


# Measures by label against scikit-learn, for rows with any number of labels.
LABELS = ("bad", "good", "neutral")
ROW = st.tuples(*[st.booleans()] * 3)


def measures_of(gold, predicted):
    return LabelMeasures(
        (gold & predicted).sum(axis=0),
        predicted.sum(axis=0),
        gold.sum(axis=0),
        rows=len(gold),
        labels=LABELS,
    )


@given(st.lists(st.tuples(ROW, ROW), min_size=1, max_size=20))
def test_details_are_those_of_scikit_learn(rows):
    gold, predicted = (np.array(column) for column in zip(*rows, strict=True))
    details = measures_of(gold, predicted).details()
    report = classification_report(
        gold, predicted, target_names=LABELS, output_dict=True, zero_division=0
    )
    for label in LABELS:
        found, expected = details["labels"][label], report[label]
        assert found["support"] == expected["support"]
        for ours, theirs in (("precision", "precision"), ("recall", "recall"), ("f1", "f1-score")):
            assert found[ours] == pytest.approx(expected[theirs])
    if (gold | predicted).any(axis=0).all():
        assert details["macro_average"]["f1"] == pytest.approx(report["macro avg"]["f1-score"])
    assert details["weighted_average"]["f1"] == pytest.approx(report["weighted avg"]["f1-score"])


def test_labels_that_are_never_predicted():
    gold = np.array([[True, True, False], [True, False, False]])
    predicted = np.array([[True, False, False], [True, False, False]])
    assert list(measures_of(gold, predicted).warnings()) == [
        "label 'good' is never predicted, though 1 of 2 rows have it"
    ]


# Which labels are numbers.


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


@pytest.mark.parametrize(
    ("cells", "advice"),
    [
        (
            ["high", "low", "high"],
            "if these are levels, write each as a number .* 'high', 'low', …",
        ),
        (["0,5", "1,5"], "write numbers such as 0.5, with a decimal point and nothing else"),
        (["40%", "7%"], "write numbers such as 0.5, with a decimal point and nothing else"),
    ],
)
def test_other_ways_to_write_numbers_are_told(cells, advice):
    with pytest.raises(RowsRejected, match=advice):
        reject_other_labels(table_of(cells), "stars")
