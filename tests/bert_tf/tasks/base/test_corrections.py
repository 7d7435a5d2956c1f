"""Corrections: applied to the rows they name, counted, refused for others."""

import dataclasses
import io
from pathlib import Path

import pytest

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError
from bert_tf.data.tables.file_rows import Table
from bert_tf.data.tables.places import Place, Places
from bert_tf.tasks.base.corrections import (
    Correction,
    corrected_table,
    read_corrections,
    write_corrections,
)


@dataclasses.dataclass
class Case:
    path: str
    table: Table
    said: io.StringIO

    def corrected(self) -> list[str]:
        table = corrected_table(self.table, self.path, "label", Console(self.said))
        return table.columns["label"]


@pytest.fixture
def case(tmp_path) -> Case:
    columns = {"text": ["one", "two", "three"], "label": ["a", "b", "a"]}
    table = Table(source="train.csv", lines=[2, 4, 5], rejects=[], columns=columns)
    return Case(str(tmp_path / "corrections.csv"), table, io.StringIO())


def write(case: Case, *rows: tuple[int, str, str]) -> None:
    with Path(case.path).open("w", encoding="utf-8") as stream:
        stream.write("line,label,corrected_label,note\n")
        stream.writelines(f"{line},{label},{corrected},x\n" for line, label, corrected in rows)


def test_labels_of_the_named_lines_change_and_are_counted(case):
    write(case, (4, "b", "a"), (5, "a", ""), (2, "a", "a"))
    assert case.corrected() == ["a", "a", "a"]
    assert "1 label corrected, 2 left as they are" in case.said.getvalue()
    assert case.table.columns["label"] == ["a", "b", "a"]


def test_what_is_in_the_file_already_is_no_fault(case):
    write(case, (4, "c", "b"))
    assert case.corrected() == ["a", "b", "a"]


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ((3, "a", "b"), r"corrections.csv:2: .* at line 3 of train.csv, where there is no usable"),
        ((4, "x", "a"), r"with the label 'x' at line 4 .* there is the label 'b'"),
        (("four", "b", "a"), r"corrections.csv:2: line 'four' is not a number"),
    ],
)
def test_other_rows_are_refused(case, row, fault):
    write(case, row)
    with pytest.raises(InputError, match=fault):
        case.corrected()


def test_other_files_are_refused(case):
    with Path(case.path).open("w", encoding="utf-8") as stream:
        stream.write("line,label\n")
    with pytest.raises(InputError, match="has no column 'corrected_label'; expected a corrections"):
        case.corrected()


def test_a_file_of_another_encoding_is_refused_in_a_line(case):
    Path(case.path).write_bytes("line,label,corrected_label\n2,é,b\n".encode("cp1252"))
    with pytest.raises(InputError, match=r"corrections.csv: not CSV in UTF-8 .*save it as CSV UTF"):
        case.corrected()


def test_long_texts_are_read_again(tmp_path):
    write_corrections(
        tmp_path / "c.csv", [Correction(Place(0), Place(7), "a", "b")], ["x" * 200_000]
    )
    assert read_corrections(str(tmp_path / "c.csv"))[0].corrected == "b"


def test_written_ones_are_read_again(tmp_path):
    rows = [Correction(Place(0), Place(7), 'a "b"', "c,d")]
    write_corrections(tmp_path / "c.csv", rows, ["text\nof lines"])
    assert read_corrections(str(tmp_path / "c.csv"))[0][1:] == rows[0][1:]


def test_ids_find_rows_that_are_elsewhere_now(case, tmp_path):
    rows = [
        Correction(Place(0), Place(9, 8, "T-4"), "b", "a"),
        Correction(Place(0), Place(2, 0, "T-5"), "a", "c"),
    ]
    write_corrections(tmp_path / "corrections.csv", rows, ["two\nlines", "three"])
    head, *_ = (tmp_path / "corrections.csv").read_text().splitlines()
    assert head == "line,row,id,label,corrected_label,text"
    places = Places(row_of_line={4: 3, 5: 4}, id_of_line={2: "T-2", 4: "T-4", 5: "T-5"})
    case.table = dataclasses.replace(case.table, places=places)
    assert case.corrected() == ["a", "a", "c"]
    case.table = dataclasses.replace(case.table, places=Places(id_of_line={2: "T-2", 4: "T-5"}))
    fault = r"corrections.csv:2: .* at line 9 \(row 8, id 'T-4'\) of train.csv, .* no usable row"
    with pytest.raises(InputError, match=fault):
        case.corrected()


def test_lines_find_rows_where_ids_repeat(case, tmp_path):
    rows = [Correction(Place(0), Place(4, 0, "T-4"), "b", "a")]
    write_corrections(tmp_path / "corrections.csv", rows, ["two"])
    places = Places(id_of_line=dict.fromkeys((2, 4, 5), "T-4"))
    case.table = dataclasses.replace(case.table, places=places)
    assert case.corrected() == ["a", "a", "a"]


def test_a_fault_is_named_by_its_row_in_the_file_of_corrections(case):
    write(case, (2, "a", ""), (3, "a", "b"))
    text = Path(case.path).read_text().replace("2,a,,x", '2,a,,"x\ny"')
    Path(case.path).write_text(text)
    with pytest.raises(InputError, match=r"corrections.csv:4 \(row 3\): is of a row"):
        case.corrected()
