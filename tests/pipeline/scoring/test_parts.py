"""Rows through cutting, writing and joining: order, counts and every byte of theirs."""

import bz2
import csv
import gzip
import io
import json
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError, UsageError
from bert_tf.data.tables.dialect import TableDialect
from bert_tf.tasks.base.declaration import PredictionField
from bert_tf.tasks.registry import TASKS
from pipeline.scoring.blocks import cut_table, read_block
from pipeline.scoring.columns import ScoringColumns
from pipeline.scoring.first_rows import check_tables
from pipeline.scoring.join import join_parts
from pipeline.scoring.parts import ScoredBlock, write_part

CELLS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=8
)
MESSY_CSV = (
    b"\xef\xbb\xbfid,text,note\r\n"
    b'1,"two\r\nlines, ""one"" cell",=1+2\r\n'
    b"2,,nothing\r\n"
    b"3,too,many,cells\r\n"
    b'04,plain,"quoted, not needed"\r\n'
    b"5,caf\xe9,latin\r\n"
    b'6,"never closed,x\r\n'
    b"7,last, spaces \r\n"
)
MESSY_JSONL = (
    '{"id": 1.0, "text": "fine", "more": {"a":[1, 2]}}\n'
    '{"id": 2, "text": \n'
    "\n"
    '{"text":"\\u0041 b","id":1e400 }\n'
    "[1, 2]\n"
    '{"id": 4, "text": null}\n'
    '{"id": 5, "text": 17}\n'
    '{"id": 6, "text": "\\ud800 lone"}\n'
    '{"id": 7, "text": "x", "predicted_label": "mine"}\n'
    '{"id": 123456789012345678901234567890, "text": "tab\\there"}\n'
)


def rejects_of(folder: Path) -> list[tuple[int, str]]:
    lines = (folder / "rejects.jsonl").read_text().splitlines()
    return [(reject["line"], reject["reason"]) for reject in map(json.loads, lines)]


def test_messy_csv_rows_keep_their_bytes(tmp_path, make_plan, score):
    (tmp_path / "in.csv").write_bytes(MESSY_CSV)
    counts = score(make_plan("in.csv", output="out.csv"))
    assert (tmp_path / "out.csv").read_bytes().decode() == (
        "\ufeffid,text,note,predicted_label,predicted_score\n"
        '1,"two\r\nlines, ""one"" cell",=1+2,"22, ""t""",0.25\n'
        '04,plain,"quoted, not needed","5, ""p""",0.25\n'
        '7,last, spaces ,"4, ""l""",0.25\n'
    )
    assert (counts.rows_in, counts.rows_out) == (7, 3)
    assert sum(counts.rejected.values()) == 4
    assert [line for line, _ in rejects_of(tmp_path)] == [4, 5, 7, 8]


@pytest.mark.parametrize(
    ("source", "output"),
    [("in.csv", "out.csv"), ("in.csv", "out.tsv"), ("in.tsv", "out.csv"), ("in.csv", "out.jsonl")],
)
@pytest.mark.parametrize("marked", [True, False])
def test_a_byte_order_mark_stays_where_spreadsheets_look_for_it(
    tmp_path, make_plan, score, source, output, marked
):
    (tmp_path / source).write_bytes("text\ncafé\n".encode("utf-8-sig" if marked else "utf-8"))
    score(make_plan(source, output=output))
    written = (tmp_path / output).read_bytes()
    assert written.startswith(b"\xef\xbb\xbf") == (marked and output != "out.jsonl")
    assert "\ufeff" not in written.decode("utf-8-sig")


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_rows_of_another_encoding_are_written_as_utf8(tmp_path, make_plan, score, encoding):
    (tmp_path / "in.csv").write_bytes("text,naïve\ncafé,x\n".encode(encoding))
    score(make_plan("in.csv", output="out.csv", dialect=TableDialect(encoding=encoding)))
    assert (tmp_path / "out.csv").read_text("utf-8-sig") == (
        'text,naïve,predicted_label,predicted_score\ncafé,x,"4, ""c""",0.25\n'
    )


@pytest.mark.parametrize(
    ("output", "content"),
    [
        ("out.csv", '7,"a, b","4, ""a""",0.25\n8,c,"1, ""c""",0.25\n'),
        ("out.tsv", '7\ta, b\t4, "a"\t0.25\n8\tc\t1, "c"\t0.25\n'),
        (
            "out.jsonl",
            '{"1": "7", "2": "a, b", "predicted_label": "4, \\"a\\"", "predicted_score": 0.25}\n'
            '{"1": "8", "2": "c", "predicted_label": "1, \\"c\\"", "predicted_score": 0.25}\n',
        ),
    ],
)
def test_tables_without_a_header_get_none(tmp_path, make_plan, score, output, content):
    (tmp_path / "in.csv").write_text('7,"a, b"\n8,c\n')
    columns = ScoringColumns(sources={"text": "2"}, fields=TASKS["classification"].predictions)
    plan = make_plan(
        "in.csv", output=output, columns=columns, dialect=TableDialect(has_header=False)
    )
    counts = score(plan)
    assert (tmp_path / output).read_text() == content
    assert (counts.rows_in, counts.rows_out) == (2, 2)


QUESTIONS = ScoringColumns(
    sources={"question": "frage", "context": "text"},
    fields=(PredictionField("predicted_answer", "text"),),
)


def test_squad_json_is_scored_by_question(tmp_path, make_plan):
    paragraph = {
        "context": "It rains\nin Łódź.",
        "qas": [{"id": str(n), "question": f"{n}?", "answers": []} for n in range(3)],
    }
    document = {"version": "2.0", "data": [{"title": "t", "paragraphs": [paragraph, {}]}]}
    (tmp_path / "in.json").write_text(json.dumps(document))
    for output in ("out.jsonl", "out.csv"):
        plan = make_plan("in.json", output=output, columns=QUESTIONS, block_rows=2)
        check_tables(plan, Console(io.StringIO()))
        for reference in cut_table(plan.tables[0], plan):
            block = read_block(reference, plan)
            predicted = {"predicted_answer": np.array(block.texts["question"], object)}
            write_part(ScoredBlock(block, predicted), plan)
        counts = join_parts(plan, tmp_path / "rejects.jsonl")
        assert (counts.rows_in, counts.rows_out) == (4, 3)
        assert rejects_of(tmp_path) == [(1, "paragraph has no list of questions")]
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    context = paragraph["context"]
    assert rows[0] == {"id": "0", "question": "0?", "context": context, "predicted_answer": "0?"}
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as stream:
        assert list(csv.DictReader(stream)) == rows


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 9])
def test_only_the_first_rows(tmp_path, make_plan, score, limit):
    (tmp_path / "in.csv").write_text("text\na\nb,c\nd\ne\n")
    counts = score(make_plan("in.csv", output="out.csv", limit=limit, block_rows=2))
    assert counts.rows_in == min(limit, 4)
    assert counts.rows_out == counts.rows_in - (limit > 1)


def test_messy_objects_keep_their_text(tmp_path, make_plan, score):
    (tmp_path / "in.jsonl").write_text(MESSY_JSONL)
    counts = score(make_plan("in.jsonl", output="out.jsonl"))
    assert (tmp_path / "out.jsonl").read_text().splitlines() == [
        '{"id": 1.0, "text": "fine", "more": {"a":[1, 2]}, '
        '"predicted_label": "4, \\"f\\"", "predicted_score": 0.25}',
        '{"text":"\\u0041 b","id":1e400, "predicted_label": "3, \\"A\\"", "predicted_score": 0.25}',
        '{"id": 123456789012345678901234567890, "text": "tab\\there", '
        '"predicted_label": "8, \\"t\\"", "predicted_score": 0.25}',
    ]
    assert (counts.rows_in, counts.rows_out) == (9, 3)
    assert (9, "has a key of an added column") in rejects_of(tmp_path)


def test_objects_to_csv_have_the_columns_of_all_rows(tmp_path, make_plan, score):
    (tmp_path / "in.jsonl").write_text(MESSY_JSONL)
    score(make_plan("in.jsonl", output="out.csv", block_rows=2))
    rows = list(csv.reader(io.StringIO((tmp_path / "out.csv").read_text())))
    assert rows == [
        ["id", "text", "more", "predicted_label", "predicted_score"],
        ["1.0", "fine", '{"a": [1, 2]}', '4, "f"', "0.25"],
        ["1e400", "A b", "", '3, "A"', "0.25"],
        ["123456789012345678901234567890", "tab\there", "", '8, "t"', "0.25"],
    ]


def test_cells_that_tsv_cannot_hold_are_rejected(tmp_path, make_plan, score):
    (tmp_path / "in.jsonl").write_text(MESSY_JSONL)
    counts = score(make_plan("in.jsonl", output="out.tsv"))
    assert len((tmp_path / "out.tsv").read_text().splitlines()) == 3
    assert counts.rejected["a TSV cell cannot hold a tab or a line end"] == 1


def test_tsv_quotes_are_characters(tmp_path, make_plan, score):
    (tmp_path / "in.tsv").write_text('text\tid\nsay "so\t1\n"\t2\n')
    score(make_plan("in.tsv", output="out.tsv"))
    assert (tmp_path / "out.tsv").read_text() == (
        'text\tid\tpredicted_label\tpredicted_score\nsay "so\t1\t7, "s"\t0.25\n"\t2\t1, """\t0.25\n'
    )


SPANS = ScoringColumns(sources={"text": "text"}, fields=(PredictionField("spans", "json"),))


@pytest.mark.parametrize("source", ["in.csv", "in.tsv", "in.jsonl"])
@pytest.mark.parametrize("output", ["out.csv", "out.tsv", "out.jsonl"])
def test_values_of_json_are_values_in_json_lines_and_text_in_cells(
    tmp_path, make_plan, source, output
):
    delimiter = "\t" if source == "in.tsv" else ","
    rows = ["id", "text"], ["7", "a"], ["8", "b"]
    content = "".join(f"{delimiter.join(row)}\n" for row in rows)
    if source == "in.jsonl":
        content = '{"id": "7", "text": "a"}\n{"id": "8", "text": "b"}\n'
    (tmp_path / source).write_text(content)
    spans = [[{"start": 0, "text": 'a\tł "q", \n', "score": 0.25}], []]
    plan = make_plan(source, output=output, columns=SPANS)
    for reference in cut_table(plan.tables[0], plan):
        texts = np.array([json.dumps(value) for value in spans], object)
        write_part(ScoredBlock(read_block(reference, plan), {"spans": texts}), plan)
    assert join_parts(plan, tmp_path / "rejects.jsonl").rows_out == 2

    written = (tmp_path / output).read_text()
    if output == "out.jsonl":
        found = [json.loads(line) for line in written.splitlines()]
        assert found == [
            {"id": "7", "text": "a", "spans": spans[0]},
            {"id": "8", "text": "b", "spans": spans[1]},
        ]
        return
    if output == "out.tsv":
        header, *cells = (line.split("\t") for line in written.splitlines())
    else:
        header, *cells = csv.reader(io.StringIO(written))
    assert header == ["id", "text", "spans"]
    assert [row[:2] for row in cells] == [["7", "a"], ["8", "b"]]
    assert [json.loads(row[2]) for row in cells] == spans


@pytest.fixture
def long_cells():
    """Lets the csv module read cells of any length."""
    before = csv.field_size_limit(1 << 30)
    yield
    csv.field_size_limit(before)


@pytest.mark.usefixtures("long_cells")
def test_tables_as_people_have_them_keep_every_cell(tmp_path, make_plan, score):
    """Dates, emoji, HTML, a megabyte, nothing at all, and texts that look like numbers."""
    header = ("id", "text", "day", "note")
    rows = [
        (
            "007",
            "\U0001f469\u200d\U0001f467 café\u0301 مرحبا",
            "2024-02-30",
            '<p class="x">a &amp; b</p>\r\n',
        ),
        ("1e5", "x" * 1_000_000, "05/06/07 12:00", ""),
        ("", "a\tb", "", r"\N"),
        ("NaN", "\u200b text \u00a0", "12:30", "N/A"),
        ("-0", "last", "1,5", " spaces "),
    ]
    with (tmp_path / "in.csv").open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([header, *rows])
    expected = [dict(zip(header, row, strict=True)) for row in rows]
    names = ["predicted_label", "predicted_score"]
    for ending in ("csv", "jsonl", "parquet"):
        counts = score(make_plan("in.csv", output=f"out.{ending}", block_rows=2, identity=ending))
        assert (counts.rows_out, counts.rejected) == (len(rows), {})
        output = tmp_path / f"out.{ending}"
        if ending == "parquet":
            found = pq.read_table(output).to_pylist()
        elif ending == "csv":
            with output.open(encoding="utf-8", newline="") as stream:
                found = list(csv.DictReader(stream))
        else:
            text = output.read_text(encoding="utf-8")
            found = [json.loads(line) for line in text.split("\n")[:-1]]
        assert [row | dict.fromkeys(names) for row in expected] == [
            row | dict.fromkeys(names) for row in found
        ]
    counts = score(make_plan("in.csv", output="out.tsv", block_rows=2, identity="tsv"))
    assert counts.rejected == {"a TSV cell cannot hold a tab or a line end": 2}


def test_semicolons_stay(tmp_path, make_plan, score):
    (tmp_path / "in.csv").write_text("id;text;note\n1;a, b;x\n")
    score(make_plan("in.csv", output="out.csv"))
    assert (tmp_path / "out.csv").read_text() == (
        'id;text;note;predicted_label;predicted_score\n1;a, b;x;"4, ""a""";0.25\n'
    )


FORMULAS = [
    ("=1+2", "'=1+2"),
    ("+cmd|x", "'+cmd|x"),
    ("@SUM(A1)", "'@SUM(A1)"),
    ("-2+3", "'-2+3"),
    ("-", "'-"),
    ("\rx", "'\rx"),
    ("-3.5", "-3.5"),
    ("+1,234.5e-7", "+1,234.5e-7"),
    ("-12%", "-12%"),
    ("a=b", "a=b"),
    ("", ""),
]


@pytest.mark.parametrize("source", ["csv", "jsonl"])
def test_formulas_get_an_apostrophe_and_numbers_none(tmp_path, make_plan, score, source):
    """It holds in every column and in the header, for any source; nothing else changes."""
    cells = [cell for cell, _ in FORMULAS]
    with (tmp_path / "in.csv").open("w", newline="") as stream:
        csv.writer(stream, delimiter=";").writerows([("text", "@note"), *(("a", c) for c in cells)])
    lines = [json.dumps({"text": "a", "@note": cell}) for cell in cells]
    (tmp_path / "in.jsonl").write_text("\n".join([*lines, '{"text": "a", "@note": -7}']))
    score(make_plan(f"in.{source}", output="out.csv", escapes_formulas=True))
    text = (tmp_path / "out.csv").read_bytes().decode()
    delimiter = ";" if source == "csv" else ","
    header, *rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    assert header == ["text", "'@note", "predicted_label", "predicted_score"]
    wanted = [cell for _, cell in FORMULAS] + ([] if source == "csv" else ["-7"])
    assert [row[1] for row in rows] == wanted
    assert {(row[0], *row[2:]) for row in rows} == {("a", '1, "a"', "0.25")}


@pytest.mark.parametrize(
    ("ending", "compress", "decompress"),
    [
        (".gz", gzip.compress, gzip.decompress),
        (".bz2", bz2.compress, bz2.decompress),
        (
            ".zst",
            lambda data: pa.compress(data, "zstd", asbytes=True),
            lambda data: pa.CompressedInputStream(pa.BufferReader(data), "zstd").read(),
        ),
    ],
)
def test_compressed_outputs_are_equal_for_equal_rows(
    tmp_path, make_plan, score, ending, compress, decompress
):
    (tmp_path / f"in.csv{ending}").write_bytes(compress(b"text\nx\n"))
    score(make_plan(f"in.csv{ending}", output=f"out.csv{ending}"))
    first = (tmp_path / f"out.csv{ending}").read_bytes()
    score(make_plan(f"in.csv{ending}", output=f"out.csv{ending}"))
    assert (tmp_path / f"out.csv{ending}").read_bytes() == first
    assert b'x,"1, ' in decompress(first)


@pytest.mark.slow
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.tuples(CELLS, st.one_of(st.just(" "), CELLS)), min_size=1, max_size=15),
    block_rows=st.integers(1, 6),
    output_format=st.sampled_from(["csv", "jsonl"]),
)
def test_rows_come_out_in_order_or_are_counted(
    tmp_path, make_plan, score, rows, block_rows, output_format
):
    if not any(text.strip() for _, text in rows):
        return
    with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
        name = Path(folder).name
        with (Path(folder) / "in.csv").open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream).writerows([("id", "text"), *rows])
        output = f"{name}/out.{output_format}"
        plan = make_plan(f"{name}/in.csv", output=output, block_rows=block_rows, identity=name)
        counts = score(plan)
        with (tmp_path / output).open(encoding="utf-8", newline="") as stream:
            if output_format == "csv":
                found = [(row["id"], row["text"]) for row in csv.DictReader(stream)]
            else:
                found = [(row["id"], row["text"]) for row in map(json.loads, stream)]
    assert found == [(identity, text) for identity, text in rows if text.strip()]
    assert counts.rows_out == len(found)
    assert counts.rows_in == counts.rows_out + sum(counts.rejected.values()) == len(rows)


def test_limit_counts_rejected_rows_too(tmp_path, make_plan, score):
    (tmp_path / "in.csv").write_text("text\n" + "a\n" + '""\n' + "b\n" * 9)
    counts = score(make_plan("in.csv", output="out.csv", limit=5))
    assert (counts.rows_in, counts.rows_out) == (5, 4)


def test_finished_parts_are_used_again_and_others_are_not(tmp_path, make_plan, score):
    (tmp_path / "in.csv").write_text("text\n" + "".join(f"row {n}\n" for n in range(11)))
    plan = make_plan("in.csv", output="out.csv")
    score(plan)
    whole = (tmp_path / "out.csv").read_bytes()
    kept, damaged, lost = (plan.files(0, number).part for number in range(3))
    inodes = [path.stat().st_ino for path in (kept, damaged, lost)]
    damaged.write_text("damaged\n")
    lost.write_text("lost\n")
    plan.files(0, 2).done.unlink()
    score(plan)
    assert (tmp_path / "out.csv").read_bytes() == whole
    again = [path.stat().st_ino for path in (kept, damaged, lost)]
    assert [old == new for old, new in zip(inodes, again, strict=True)] == [True, False, False]
    score(make_plan("in.csv", output="out.csv", identity="model b"))
    assert (tmp_path / "out.csv").read_text().splitlines()[1].startswith("row 0,")


def test_a_changed_block_is_scored_again(tmp_path, make_plan, score):
    (tmp_path / "in.csv").write_text("text\na\nb\n")
    score(make_plan("in.csv", output="out.csv"))
    (tmp_path / "in.csv").write_text("text\na\nc\n")
    score(make_plan("in.csv", output="out.csv"))
    assert (tmp_path / "out.csv").read_text().splitlines()[2].startswith("c,")


def test_a_table_is_checked_before_the_job(tmp_path, make_plan):
    console = Console(io.StringIO())
    for content, error, message in (
        ("id,body\n1,x\n", UsageError, r"no column 'text'; it has 'id', 'body'"),
        (
            "text,predicted_score\nx,1\n",
            UsageError,
            "has a column 'predicted_score' already, .* --rename predicted_score=NAME$",
        ),
        ("", InputError, "is empty"),
    ):
        (tmp_path / "in.csv").write_text(content)
        plan = make_plan("in.csv", output="out.csv")
        with pytest.raises(error, match=message):
            check_tables(plan, console)


def test_a_column_name_that_tsv_cannot_hold_is_refused(tmp_path, make_plan, score):
    (tmp_path / "in.csv").write_text('text,"a\tb"\nx,y\n')
    with pytest.raises(UsageError, match=r"has a tab or line end in its name"):
        score(make_plan("in.csv", output="out.tsv"))
