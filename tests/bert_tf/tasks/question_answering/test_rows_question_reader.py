"""Questions from SQuAD JSON and from tables; wrong ones are rejected with their reason."""

from __future__ import annotations

import csv
import dataclasses
import gzip
import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bert_tf.base.errors import InputError, UsageError
from bert_tf.data.tables.dialect import PLAIN, TableDialect
from bert_tf.data.tables.formats.squad_json import is_squad_json
from bert_tf.data.tables.tables import read_table_blocks
from bert_tf.tasks.question_answering.question_files import QuestionColumns
from bert_tf.tasks.question_answering.rows import read_questions

COLUMNS = QuestionColumns(
    question="question", context="context", answer="answer", answer_start="answer_start"
)
CONTEXT = "Shanghai is a city in China."


def squad(path, qas, context=CONTEXT):
    path.write_text(json.dumps({"data": [{"paragraphs": [{"context": context, "qas": qas}]}]}))
    return path


def question(identity, *answers, text="Where?", **more):
    listed = [{"text": answer, "answer_start": start} for answer, start in answers]
    return {"id": identity, "question": text, "answers": listed, **more}


def test_squad_questions(tmp_path):
    path = squad(
        tmp_path / "a.json",
        [
            question("one", ("China", 22), ("in China", 19)),
            question("none"),
            question("impossible", ("China", 22), is_impossible=True),
        ],
    )
    found = read_questions(path, COLUMNS, check_offsets=True)
    assert found.ids == ["one", "none", "impossible"]
    assert found.contexts == [CONTEXT]
    assert found.context_index.tolist() == [0, 0, 0]
    assert found.answers == [(("China", 22), ("in China", 19)), (), ()]
    assert found.rejects == []


def test_broken_squad_questions_are_rejected(tmp_path):
    path = squad(
        tmp_path / "a.json",
        [
            question("ok", ("China", 22)),
            question("off-by-two", ("China", 20)),
            question("ok", ("city", 14)),
            {"id": "no-answers", "question": "?"},
            question("beyond", ("x", 9999)),
            {"id": "no-question", "answers": []},
            question("blank", ("city", 14), text=" "),
            {"question": "?", "answers": []},
            question("null", (None, 3)),
            question("surrogate", ("\ud800", 0)),
            question("\ud800", ("city", 14)),
            "not an object",
        ],
    )
    found = read_questions(path, COLUMNS, check_offsets=True)
    assert found.ids == ["ok"]
    reasons = [(reject.reason, reject.detail) for reject in found.rejects]
    assert reasons == [
        (
            "answer is not at its start",
            "question 'off-by-two': 'China' at 20, where the context has 'n Chi'; "
            "it has the answer at 22",
        ),
        ("duplicate question id", "question 'ok': first at line 1"),
        ("question has no list of answers", "question 'no-answers'"),
        (
            "answer is not in the context",
            "question 'beyond': 'x' at 9999, where the context has ''",
        ),
        ("question is missing or not text", "question 'no-question'"),
        ("question is empty", "question 'blank'"),
        ("question has no id", ""),
        ("answer is missing or not text", "question 'null'"),
        ("answer is not Unicode text", "question 'surrogate'"),
        ("id is not Unicode text", r"question '\ud800'"),
        ("question is not a JSON object", ""),
    ]


def test_measuring_needs_no_offsets(tmp_path):
    path = squad(tmp_path / "a.json", [question("off", ("China", 20))])
    assert read_questions(path, COLUMNS, check_offsets=False).ids == ["off"]


def test_broken_paragraphs_are_rejected(tmp_path):
    path = tmp_path / "a.json"
    good = {"context": CONTEXT, "qas": [question("ok", ("China", 22))]}
    data = [
        {"paragraphs": [good, {"context": "x"}, 3]},
        {"title": "t"},
        {"paragraphs": [{"qas": [question("q")]}]},
    ]
    path.write_text(json.dumps({"data": data}))
    found = read_questions(path, COLUMNS, check_offsets=True)
    assert [(reject.reason, reject.detail) for reject in found.rejects] == [
        ("paragraph has no list of questions", "article 1, paragraph 2"),
        ("paragraph has no list of questions", "article 1, paragraph 3"),
        ("article has no list of paragraphs", "article 2"),
        ("context is missing or not text", "question 'q'"),
    ]


def test_questions_and_rejects_of_squad_json_have_lines(tmp_path):
    """Oracle: the text before the id of a question that occurs once."""
    path = tmp_path / "a.json"
    squad(path, [question("a", ("China", 22)), question("b", ("China", 2)), "no object"])
    document = json.loads(path.read_text())
    document["data"] += [3, {"paragraphs": [{"context": 4, "qas": [question("c")]}]}]
    path.write_text("\n" + json.dumps(document, indent=1))
    found = read_questions(path, COLUMNS, check_offsets=True)
    text = path.read_text()

    def line_before(mark: str) -> int:
        """Return the line before that of the mark, where the bracket opens its object."""
        return text[: text.index(mark)].count("\n")

    assert found.lines == [line_before('"id": "a"')]
    lines = {reject.reason: reject.line for reject in found.rejects}
    assert lines == {
        "answer is not at its start": line_before('"id": "b"'),
        "question is not a JSON object": line_before('"no object"') + 1,
        "article has no list of paragraphs": line_before(" 3,\n") + 1,
        "context is missing or not text": line_before('"id": "c"'),
    }
    path.write_text("\n" + json.dumps(document))
    found = read_questions(path, COLUMNS, check_offsets=True)
    assert {*found.lines, *(reject.line for reject in found.rejects)} == {2}


@pytest.mark.parametrize(
    ("content", "is_squad"),
    [
        ('{"data": []}', True),
        ('{"version": "1.1", "data": [{"title": "t", "paragraphs": []}]}', True),
        ('{"about": "x", "data": [{"paragraphs": []}]}', True),
        ('{\n "about": 1,\n "data": []}', True),
        ('{"text": "x", "data": []}\n{"text": "y"}', False),
        ('{"text": "x", "data": [{"a": 1}]}', False),
        ('{"data": "x", "text": "y"}', False),
        ("[\n {}\n]", False),
        ("", False),
    ],
)
def test_squad_json_is_distinguished_from_rows(tmp_path, content, is_squad):
    for name in ("a.json", "a.JSON.gz"):
        path = tmp_path / name
        path.write_bytes(gzip.compress(content.encode()) if name[-1] == "z" else content.encode())
        assert is_squad_json(path) == is_squad
    (tmp_path / "a.jsonl").write_text(content)
    assert not is_squad_json(tmp_path / "a.jsonl")


def test_squad_json_is_a_table_of_questions(tmp_path):
    path = squad(tmp_path / "a.json", [{"id": "x", "question": "Where?"}, {"question": 3}, "none"])
    (block,) = read_table_blocks(path, text_columns=("question", "context"))
    assert block.rows == [{"id": "x", "question": "Where?", "context": CONTEXT}]
    assert [json.loads(raw) for raw in block.raw_rows] == block.rows
    assert [reject.reason for reject in block.rejects] == [
        "column 'question' is not text",
        "question is not a JSON object",
    ]
    with pytest.raises(UsageError, match="this is SQuAD JSON"):
        next(read_table_blocks(path, dialect=TableDialect(has_header=False)))


def test_first_questions_only(tmp_path):
    path = squad(tmp_path / "a.json", [question(str(n), ("China", 22)) for n in range(5)])
    assert len(read_questions(path, COLUMNS, check_offsets=True, max_rows=2)) == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"data": [', "is not JSON"),
        ('{\n"data": 3}', "is not SQuAD JSON"),
        ("[\n]", "expected an object per line"),
        ('{"data": []}', "has no questions; add some"),
        (
            '{"data": [{"paragraphs": [{"context": "c", "qas": [{"id": "q"}]}]}]}',
            "its only question cannot be used: 1 × .*, first at ",
        ),
    ],
)
def test_unusable_squad_files(tmp_path, content, message):
    path = tmp_path / "a.json"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        read_questions(path, COLUMNS, check_offsets=True)


def test_questions_from_a_table(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(
        "question,context,answer,answer_start\n"
        f"Where?,{CONTEXT},China,22\n"
        f"Who?,{CONTEXT},,\n"
        f"Where?,{CONTEXT},China,21\n"
        "too,few\n"
        f"Where?,{CONTEXT},China,soon\n"
    )
    found = read_questions(path, COLUMNS, check_offsets=True)
    assert found.ids == ["line 2", "line 3"]
    assert found.lines == [2, 3]
    assert found.answers == [(("China", 22),), ()]
    assert [(reject.line, reject.reason) for reject in found.rejects] == [
        (4, "answer is not at its start"),
        (5, "too few cells"),
        (6, "answer has no start that is a whole number"),
    ]


@pytest.mark.parametrize("start", ["22", "22.0", " 22 ", 22, 22.0])
def test_starts_of_tables_with_gaps_are_whole_numbers(tmp_path, start):
    path = tmp_path / "a.jsonl"
    row = {"question": "Where?", "context": CONTEXT, "answer": "China", "answer_start": start}
    path.write_text(json.dumps(row) + "\n")
    found = read_questions(path, COLUMNS, check_offsets=True)
    assert found.answers == [(("China", 22),)]


@pytest.mark.parametrize(
    "start",
    ['"22.7"', "22.7", '"-22"', "-22", '"soon"', '""', "true", "null", "1e999", "NaN", "9" * 20],
)
def test_other_starts_are_rejected(tmp_path, start):
    path = tmp_path / "a.jsonl"
    row = f'"question": "Where?", "context": {json.dumps(CONTEXT)}, "answer_start": {start}'
    path.write_text(f'{{{row}, "answer": "China"}}\n{{{row}}}\n')
    found = read_questions(path, COLUMNS, check_offsets=True)
    assert found.ids == ["line 2"]
    (reject,) = found.rejects
    assert reject.reason == "answer has no start that is a whole number"


def test_several_answers_in_json_lines(tmp_path):
    path = tmp_path / "a.json"
    row = {"question": "Where?", "context": CONTEXT, "answer": ["China", "in China"]}
    rows = [row, {**row, "answer": [["x"]]}, {**row, "answer": float("nan")}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = read_questions(path, COLUMNS, check_offsets=False)
    assert found.answers == [(("China", -1), ("in China", -1))]
    assert [reject.reason for reject in found.rejects] == ["answer is neither text nor number"] * 2


def test_missing_answer_column(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("question,context,answers\nWhere?,c,x\n")
    with pytest.raises(UsageError, match="no column 'answer'.*did you mean 'answers'"):
        read_questions(path, COLUMNS, check_offsets=False)


def test_json_and_questions_beyond_the_limit_are_one_line(tmp_path):
    dialect = TableDialect(max_table_megabytes=1)
    path = squad(tmp_path / "a.json", [question(str(number)) for number in range(3000)])
    with pytest.raises(InputError, match=r"a\.json: is larger than 0\.125 MB.*max_table_megabytes"):
        read_questions(path, COLUMNS, check_offsets=True, dialect=dialect)
    path = tmp_path / "a.jsonl"
    row = {"question": "Where?", "context": CONTEXT, "answer": "China", "answer_start": 22}
    path.write_text((json.dumps(row) + "\n") * 5000)
    with pytest.raises(InputError, match="its rows take more than 1 MB of memory; give fewer rows"):
        read_questions(path, COLUMNS, check_offsets=True, dialect=dialect)


def test_a_first_line_too_long_for_a_row_is_not_parsed_to_find_the_format(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    monkeypatch.setattr(json, "loads", None)
    for key in ("data", "text"):
        path.write_text(f'{{"{key}": "{"x" * PLAIN.max_row_characters}"}}')
        assert is_squad_json(path) == (key == "data")


ROWS = [
    ("Where is it?", {"text": ["China", "in China"], "answer_start": [22, 19]}),
    ('What\'s the "name"?', {"text": ["Shanghai"], "answer_start": [0]}),
    ("Who?", {"text": [], "answer_start": []}),
]


def as_pandas_writes(value):
    """Return a struct of `datasets` as `to_csv` writes it: a dict of printed NumPy arrays."""
    text, start = map(np.array, (value["text"], value["answer_start"]))
    return repr({"text": text.astype(object), "answer_start": start.astype(np.int32)})


@pytest.mark.parametrize(
    "kind", ["jsonl", "parquet", "json in csv", "python in csv", "pandas in csv"]
)
@pytest.mark.parametrize("answer", ["answer", "answers"])
@pytest.mark.parametrize("check_offsets", [True, False])
def test_rows_as_the_library_datasets_stores_squad(tmp_path, kind, answer, check_offsets):
    rows = [{"question": asked, "context": CONTEXT, "answers": found} for asked, found in ROWS]
    path = tmp_path / f"a.{kind.rpartition(' ')[2]}"
    if kind == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif kind == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        written = {"json": json.dumps, "python": repr, "pandas": as_pandas_writes}[kind.split()[0]]
        with path.open("w", newline="") as stream:
            table = csv.DictWriter(stream, rows[0])
            table.writeheader()
            table.writerows({**row, "answers": written(row["answers"])} for row in rows)
    columns = dataclasses.replace(COLUMNS, answer=answer)
    found = read_questions(path, columns, check_offsets=check_offsets)
    assert found.rejects == []
    assert found.answers == [(("China", 22), ("in China", 19)), (("Shanghai", 0),), ()]


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.json"])
def test_questions_marked_as_impossible_have_no_answer(tmp_path, name):
    """Also where plausible answers are kept; tables write truth values in many ways."""
    marks = ["True", "false", "1", "0", "1.0", ""] if name == "a.csv" else [True, False, 1, 0, None]
    row = {"question": "Where?", "context": CONTEXT, "answer": "China", "answer_start": 22}
    path = tmp_path / name
    if name == "a.csv":
        with path.open("w", newline="") as stream:
            table = csv.DictWriter(stream, [*row, "is_impossible"])
            table.writeheader()
            table.writerows({**row, "is_impossible": mark} for mark in marks)
    elif name == "a.jsonl":
        rows = [{**row, "is_impossible": mark} for mark in marks]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        squad(
            path,
            [
                question(str(number), ("China", 22), is_impossible=mark)
                for number, mark in enumerate(marks)
            ],
        )
    found = read_questions(path, COLUMNS, check_offsets=True)
    assert found.rejects == []
    is_marked = [mark in ("True", True, 1, "1", "1.0") for mark in marks]
    assert [not listed for listed in found.answers] == is_marked


def test_lists_in_cells_are_several_answers(tmp_path):
    path = tmp_path / "a.csv"
    rows = [("['China', 'in China']", "[22, 19]"), ("[]", "[]"), ("China", "22")]
    cells = "".join(f'Where?,{CONTEXT},"{text}","{start}"\n' for text, start in rows)
    path.write_text(f"question,context,answer,answer_start\n{cells}")
    found = read_questions(path, COLUMNS, check_offsets=True)
    assert found.answers == [(("China", 22), ("in China", 19)), (), (("China", 22),)]


def test_lists_in_cells_without_starts_are_lists_of_quoted_texts(tmp_path):
    path = tmp_path / "a.csv"
    cells = ["['China', 'in China']", "[]", "[1]", "[note]"]
    rows = "".join(f'Where?,{CONTEXT},"{text}"\n' for text in cells)
    path.write_text(f"question,context,answer\n{rows}")
    found = read_questions(path, COLUMNS, check_offsets=False)
    assert found.golds == [["China", "in China"], [], ["[1]"], ["[note]"]]


@pytest.mark.parametrize("indent", [None, 1])
def test_questions_in_place_of_articles_as_transformers_takes_them(tmp_path, indent):
    path = tmp_path / "a.json"
    rows = [
        {"id": str(number), "question": asked, "context": CONTEXT, "answers": found}
        for number, (asked, found) in enumerate(ROWS)
    ]
    path.write_text(json.dumps({"version": "0.1", "data": rows}, indent=indent))
    found = read_questions(path, COLUMNS, check_offsets=True)
    assert found.rejects == []
    assert found.answers == [(("China", 22), ("in China", 19)), (("Shanghai", 0),), ()]
    assert found.lines == ([1, 1, 1] if indent is None else [4, 19, 32])


@pytest.mark.parametrize(("key", "query"), [("qas", "'.'"), ("paragraphs", "'{data: .}'")])
def test_squad_json_in_lines_is_told_how_to_become_a_file(tmp_path, key, query):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({key: [], "context": CONTEXT}) + "\n")
    with pytest.raises(UsageError, match=re.escape(f"jq -s {query} makes SQuAD JSON of it")):
        read_questions(path, COLUMNS, check_offsets=True)


def test_texts_that_look_like_structs_are_answers(tmp_path):
    path = tmp_path / "a.jsonl"
    context = "{x} and [y]"
    rows = [("{x}", 0), ("[y]", 8)]
    path.write_text(
        "".join(
            json.dumps({"question": "?", "context": context, "answer": text, "answer_start": start})
            + "\n"
            for text, start in rows
        )
    )
    found = read_questions(path, COLUMNS, check_offsets=True)
    assert found.answers == [(row,) for row in rows]


@pytest.mark.parametrize("indent", [None, 1])
def test_a_list_of_paragraphs_as_simpletransformers_takes_it(tmp_path, indent):
    path = tmp_path / "a.json"
    paragraphs = [
        {"context": CONTEXT, "qas": [question("a", ("China", 22), is_impossible=False)]},
        {"qas": [question("b", is_impossible=True), question("c", ("gone", 3))], "context": "x"},
    ]
    path.write_text(json.dumps(paragraphs, indent=indent))
    found = read_questions(path, COLUMNS, check_offsets=True)
    assert (found.ids, found.answers) == (["a", "b"], [(("China", 22),), ()])
    (reject,) = found.rejects
    line = 1 + json.dumps(paragraphs, indent=indent).partition('"c"')[0].count("\n")
    assert line - reject.line in ((0,) if indent is None else (1,)), "the line of its brace"
    (block,) = read_table_blocks(path, text_columns=["question", "context"])
    assert [row["id"] for row in block.rows] == ["a", "b", "c"]
