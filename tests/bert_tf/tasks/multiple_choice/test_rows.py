"""Rows with choices from tables: which are usable, and which choice is the right one."""

import dataclasses
import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError, UsageError
from bert_tf.data.tables.dialect import PLAIN
from bert_tf.tasks.multiple_choice.rows import ChoiceColumns, read_choices

GENERAL = ChoiceColumns(context="context", question=None, choices=("choices",), label="label")
SWAG = ChoiceColumns(
    context="sent1",
    question="sent2",
    choices=("ending0", "ending1", "ending2", "ending3"),
    label="label",
)


def read(path, columns=GENERAL, label_form="auto", console=None):
    return read_choices(str(path), columns, label_form=label_form, dialect=PLAIN, console=console)


@pytest.fixture
def objects(tmp_path):
    def write(*rows):
        path = tmp_path / "rows.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    return write


def row(choices, label, **more):
    return {"context": "c", "choices": choices, "label": label, **more}


def reasons(rows):
    return [(reject.line, reject.reason, reject.detail) for reject in rows.rejects]


def test_swag_as_it_is_published(tmp_path):
    columns = "video-id,fold-ind,startphrase,sent1,sent2,gold-source"
    header = f",{columns},ending0,ending1,ending2,ending3,label"
    path = tmp_path / "swag.csv"
    path.write_text(
        f"{header}\n"
        '0,v,1,Members. A drum line,Members.,A drum line,gold,"passes by, walking.",arrives.,turns.'
        ",dances.,0\n"
        "1,v,2,A. B,A.,B,gold,x,y,,z,2\n"
        "2,v,3,A. B,A.,B,gold,x,y,z,w,4\n"
        "3,v,4,A. B,A.,B,gold,x,y,z,w,-1\n"
        "4,v,5,A. B,A.,B,gold,x,y,z,w,3.0\n"
    )
    rows = read(path, SWAG)
    assert rows.contexts == ["Members.", "A."]
    assert rows.questions == ["A drum line", "B"]
    assert rows.choices[0] == ["passes by, walking.", "arrives.", "turns.", "dances."]
    assert rows.right.tolist() == [0, 3]
    assert rows.lines == [2, 6]
    assert rows.label_form == "number"
    assert reasons(rows) == [
        (3, "a choice is empty", "choice 2, from 0"),
        (4, "label is not the number of a choice", "'4', with choices 0 to 3"),
        (5, "label is not the number of a choice", "'-1', with choices 0 to 3"),
    ]


def test_rows_may_have_fewer_choices_than_columns(tmp_path, objects):
    header = "startphrase,sent1,sent2,ending0,ending1,ending2,ending3,label"
    path = tmp_path / "swag.csv"
    path.write_text(f"{header}\nc,A.,B,x,y,z,,2\nc,A.,B,x,y,,,1\nc,A.,B,x,,,,0\nc,A.,B,x,y,,,3\n")
    rows = read(path, SWAG)
    assert rows.choices == [["x", "y", "z"], ["x", "y"]]
    assert rows.right.tolist() == [2, 1]
    assert reasons(rows) == [
        (4, "column 'ending1' is empty", ""),
        (5, "label is not the number of a choice", "'3', with choices 0 to 1"),
    ]
    listed = read(objects(row(["a", "b", ""], 1), row(["a", "b", "c", None, " "], 2)))
    assert listed.choices == [["a", "b"], ["a", "b", "c"]]


def test_labels_that_are_texts(objects):
    rows = read(
        objects(
            row(["yes", "no"], "no"),
            row(["yes", "no", "maybe"], "yes"),
            row(["yes", "no"], "maybe"),
            row(["no", "no"], "no"),
        )
    )
    assert rows.label_form == "text"
    assert rows.right.tolist() == [1, 0]
    assert rows.counts.tolist() == [2, 3]
    assert reasons(rows) == [
        (3, "label is not the text of a choice", "'maybe'"),
        (4, "label is the text of several choices", "'no'"),
    ]


def test_labels_that_could_be_either_are_numbers_unless_the_option_says_otherwise(objects):
    path = objects(row(["2", "1", "0"], 2), row(["1", "2", "3"], "1"))
    assert read(path).right.tolist() == [2, 1]
    assert read(path, label_form="text").right.tolist() == [0, 0]


def test_one_label_of_another_form_does_not_decide_alone(objects):
    path = objects(row(["a", "b"], 0), row(["a", "b"], "b"))
    assert read(path).label_form == "text"
    assert reasons(read(path, label_form="number")) == [
        (2, "label is not the number of a choice", "'b', with choices 0 to 1")
    ]


def test_bad_choices_are_rejected(objects):
    rows = read(
        objects(
            row(["a", "b"], 1),
            row(["a"], 0),
            row([], 0),
            row("a or b", 0),
            row([["a"], "b"], 0),
            row(["a", " "], 0),
            row(["a", None], 0),
            {"context": "c", "label": 0},
            row(["x"] * 1001, 0),
            row(["a", "b"], None),
            {"context": " ", "choices": ["a", "b"], "label": 0},
        )
    )
    assert rows.lines == [1]
    assert reasons(rows) == [
        (2, "fewer than two choices", "1"),
        (3, "fewer than two choices", "0"),
        (4, "choices are not a list of texts", ""),
        (5, "choices are not a list of texts", ""),
        (6, "a choice is empty", "choice 1, from 0"),
        (7, "a choice is empty", "choice 1, from 0"),
        (8, "column 'choices' is missing", ""),
        (9, "more than 1,000 choices", "1,001"),
        (10, "column 'label' is empty", ""),
        (11, "column 'context' is empty", ""),
    ]


def test_lists_in_parquet_and_in_cells_of_csv(tmp_path):
    pq.write_table(
        pa.table({"context": ["c"], "choices": [["a", "b, c"]], "label": [1]}),
        tmp_path / "rows.parquet",
    )
    (tmp_path / "rows.csv").write_text('context,choices,label\nc,"[""a"", ""b, c""]",1\n')
    for name in ("rows.parquet", "rows.csv"):
        rows = read(tmp_path / name)
        assert (rows.choices, rows.right.tolist()) == ([["a", "b, c"]], [1])


def test_no_usable_row_and_no_column(objects):
    with pytest.raises(InputError, match="its only row cannot be used: 1 × label is not"):
        read(objects(row(["a", "b"], 5)))
    with pytest.raises(UsageError, match="no column 'options'; it has 'context', 'choices'"):
        read(objects(row(["a", "b"], 1)), dataclasses.replace(GENERAL, choices=("options",)))


def test_a_question_that_is_not_read_is_pointed_out(objects):
    path = objects(row(["a", "b"], 0, question="q?"))
    heard = io.StringIO()
    read(path, console=Console(heard))
    assert "its column 'question' is not read; give --question-column question" in heard.getvalue()
    heard = io.StringIO()
    read(path, dataclasses.replace(GENERAL, context="question"), console=Console(heard))
    assert heard.getvalue() == ""


def test_rows_are_held_out_with_all_that_is_theirs(objects):
    rows = read(
        objects(row(["a", "b"], 0), row(["a"], 0), row(["c", "d", "e"], 2), row(["f", "g"], 1)),
    )
    kept, held_out = rows.split(np.array([False, True, False]))
    assert kept.choices == [["a", "b"], ["f", "g"]]
    assert (kept.right.tolist(), kept.lines, len(kept.rejects)) == ([0, 1], [1, 4], 1)
    assert held_out.choices == [["c", "d", "e"]]
    assert (held_out.right.tolist(), held_out.lines, held_out.rejects) == ([2], [3], [])


def test_labels_that_count_from_1(objects):
    """WinoGrande and SocialIQA count so."""
    choices = ["x", "y", "z"]
    with pytest.raises(
        UsageError, match="no label is 0, the first choice, and some are the number"
    ):
        read(objects(*(row(choices, str(1 + n % 3)) for n in range(9))))
    shown = io.StringIO()
    rows = read(objects(*(row(choices, 1 + n % 2) for n in range(9))), console=Console(shown))
    assert (len(rows), "if they count choices from 1" in shown.getvalue()) == (9, True)
    assert len(read(objects(row(choices, 1), row(choices, 2)))) == 2


def test_numbers_that_are_texts_of_choices_are_doubted(objects):
    path = objects(row(["3", "1", "2"], "1"), row(["2", "0", "4"], "2"))
    shown = io.StringIO()
    assert read(path, console=Console(shown)).right.tolist() == [1, 2]
    assert "all labels are texts of choices, but read as their numbers; " in shown.getvalue()
    assert read(path, label_form="text").right.tolist() == [1, 0]
    unheard = io.StringIO()
    with pytest.raises(InputError, match="fewer than two choices"):
        read(objects(row(["3"], "3")), console=Console(unheard))
    assert unheard.getvalue() == ""


def test_letters_are_no_labels(objects):
    rows = read(objects(row(["x", "y"], "x"), row(["x", "y"], "B")))
    assert reasons(rows)[0][2] == "'B'; write its number, from 0"


def test_labels_name_the_choices_of_exams(objects, tmp_path):
    """ARC, CommonsenseQA and MedQA do; ARC has numbers for letters in some rows."""
    texts = ["a lamp", "an oven", "a road"]
    struct = {"text": texts, "label": ["A", "B", "C"]}
    listed = [{"label": name, "text": text} for name, text in zip("ABC", texts, strict=True)]
    rows = [
        row(struct, "B"),
        row({"text": texts, "label": ["1", "2", "3"]}, "1"),
        row(listed, "C"),
        row(dict(zip("ABC", texts, strict=True)), " A "),
        row(struct, "D"),
    ]
    found = read(objects(*rows))
    assert found.choices == [texts] * 4
    assert found.right.tolist() == [1, 0, 2, 0]
    assert [reject.line for reject in found.rejects] == [5]
    (tmp_path / "a.csv").write_text(
        "context,choices,label\n" + 'c,"{}",C\n'.format(json.dumps(struct).replace('"', '""'))
    )
    assert read(tmp_path / "a.csv").right.tolist() == [2]


def test_rows_without_names_keep_their_form(objects):
    named = row({"text": ["x", "y"], "label": ["1", "2"]}, "2")
    found = read(objects(named, row(["x", "y"], 0), row(["x", "y"], 1)))
    assert (found.right.tolist(), found.label_form) == ([1, 0, 1], "number")
    found = read(objects(named, row(["x", "y"], "y")))
    assert (found.right.tolist(), found.label_form) == ([1, 1], "text")


@pytest.mark.parametrize("labels", ["AB", "ab", ["(A)", "B."]])
def test_labels_may_be_letters_of_choices(objects, labels):
    """RACE, MMLU and Kaggle's exams have them."""
    shown = io.StringIO()
    rows = [row(["a lamp", "an oven"], label) for label in labels]
    found = read(objects(*rows), console=Console(shown))
    assert (found.right.tolist(), found.label_form) == ([0, 1], "letter")
    assert "labels are letters: A is the first choice" in shown.getvalue()
    found = read(objects(*rows, row(["a lamp", "an oven"], "C")), label_form="letter")
    assert reasons(found) == [
        (3, "label is not the letter of a choice", "'C', with choices A to B")
    ]


def test_blanks_around_texts_of_choices(objects):
    found = read(objects(row(["x ", "y"], "x"), row(["x", "y"], " y"), row(["z", "z "], "z ")))
    assert found.right.tolist() == [0, 1, 1]


def test_labels_may_name_the_column_of_a_choice(tmp_path):
    columns = ChoiceColumns(
        context="context", question=None, choices=("option1", "option2", "option3"), label="label"
    )
    path = tmp_path / "a.csv"
    path.write_text(
        "context,option1,option2,option3,label\nc,x,y,z,option3\nc,x,y,,option2\nc,x,y,,option3\n"
    )
    found = read(path, columns)
    assert found.right.tolist() == [2, 1]
    assert [reject.line for reject in found.rejects] == [4]


def test_letters_of_choices_end_with_z(objects):
    choices = [f"choice {number}" for number in range(40)]
    rows = read(objects(row(choices, "Z"), row(choices, "?")), label_form="letter")
    assert rows.right.tolist() == [25]
    assert reasons(rows) == [(2, "label is not the letter of a choice", "'?', with choices A to Z")]
