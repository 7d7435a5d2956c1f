"""Rows of tagged text from tables and CoNLL files."""

from __future__ import annotations

import dataclasses
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError, UsageError
from bert_tf.data.tables.dialect import TableDialect
from bert_tf.tasks.tagging.row_forms import TagColumns
from bert_tf.tasks.tagging.tagged_texts import read_tagged_texts

COLUMNS = TagColumns(text="text", tokens=None, tags=None, entities="entities")
WORDS = [["Ada", "Lovelace", "'s"], ["x"]]
TAGS = [["B-per", "I-per", "O"], ["O"]]


def marked(texts):
    """Return the texts that the marks of each row cover, and their tags."""
    return [
        [
            (text[texts.starts[mark] : texts.ends[mark]], texts.tags[mark])
            for mark in range(texts.offsets[row], texts.offsets[row + 1])
        ]
        for row, text in enumerate(texts.texts)
    ]


def write_rows(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_the_same_rows_from_every_format(tmp_path):
    rows = [{"tokens": words, "tags": tags} for words, tags in zip(WORDS, TAGS, strict=True)]
    write_rows(tmp_path / "a.jsonl", rows)
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    joined = [f"{' '.join(row['tokens'])},{' '.join(row['tags'])}\n" for row in rows]
    (tmp_path / "a.csv").write_text("tokens,tags\n" + "".join(joined))
    pairs = [
        "".join(f"{word} {tag}\n" for word, tag in zip(*row.values(), strict=True)) for row in rows
    ]
    (tmp_path / "a.conll").write_text("\n".join(pairs))
    for name in ("a.jsonl", "a.parquet", "a.csv", "a.conll"):
        found = read_tagged_texts(tmp_path / name, COLUMNS)
        assert found.texts == ["Ada Lovelace 's", "x"]
        assert marked(found) == [
            list(zip(words, tags, strict=True)) for words, tags in zip(WORDS, TAGS, strict=True)
        ]
    first = read_tagged_texts(tmp_path / "a.conll", COLUMNS, max_rows=1)
    assert len(first) == 1 and first.mark_lines == [1, 2, 3]


def test_entities_as_objects_lists_and_json_text(tmp_path):
    text = "née Ada Lovelace 😀, London"
    objects = [{"start": 20, "end": 26, "label": "loc"}, {"start": 4, "end": 16, "label": "per"}]
    lists = [[20, 26, "loc"], [4, 16, "per"]]
    rows = [
        {"text": text, "entities": form} for form in (objects, lists, json.dumps(objects), None)
    ]
    found = read_tagged_texts(write_rows(tmp_path / "a.jsonl", rows), COLUMNS)
    assert not found.has_words
    assert marked(found) == [[("Ada Lovelace", "per"), ("London", "loc")]] * 3 + [[]]


def test_blanks_at_ends_and_repeated_entities_do_not_count(tmp_path):
    lists = [[3, 16, "per"], [4, 17, "per"], [18, 25, "loc"]]
    text = "née Ada Lovelace , London"
    rows = [{"text": text, "entities": each} for each in ([lists[0], lists[2]], [lists[1]] * 2)]
    found = read_tagged_texts(write_rows(tmp_path / "a.jsonl", rows), COLUMNS)
    assert marked(found) == [
        [("Ada Lovelace", "per"), ("London", "loc")],
        [("Ada Lovelace", "per")],
    ]
    cut = [{"text": text, "entities": [[5, 17, "per"]]}]  # counted from 1
    found = read_tagged_texts(write_rows(tmp_path / "b.jsonl", cut), COLUMNS)
    assert marked(found) == [[("da Lovelace ", "per")]]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"tokens": ["a", "b"], "tags": ["O"]}, "tags are not as many as words"),
        ({"tokens": None, "tags": ["O"]}, "column 'tokens' is empty"),
        ({"tokens": ["a", None], "tags": ["O", "O"]}, "column 'tokens' is not a list of texts"),
        ({"tokens": ["a"], "tags": {"a": "O"}}, "column 'tags' is not a list of texts"),
        ({"tokens": ["", " "], "tags": ["O", "O"]}, "has no words"),
        ({"tokens": [], "tags": []}, "has no words"),
    ],
)
def test_unusable_words_are_rejected_with_their_line(tmp_path, row, reason):
    good = {"tokens": ["a"], "tags": ["O"]}
    found = read_tagged_texts(write_rows(tmp_path / "a.jsonl", [good, row, good]), COLUMNS)
    assert len(found) == 2
    assert [(reject.line, reject.reason) for reject in found.rejects] == [(2, reason)]


@pytest.mark.parametrize(
    ("entities", "reason"),
    [
        ([{"start": 0, "end": 9, "label": "x"}], "entity covers no text"),
        ([{"start": 2, "end": 2, "label": "x"}], "entity covers no text"),
        ([{"start": -3, "end": 2, "label": "x"}], "entity covers no text"),
        ([{"start": 3, "end": 4, "label": "x"}], "entity covers no text"),
        ([{"start": 0, "end": 3, "labels": ["x", "y"]}], "entity is not {start, end, label}"),
        ([{"start": 0, "label": "x"}], "entity is not {start, end, label}"),
        ([{"start": 0, "end": True, "label": "x"}], "entity is not {start, end, label}"),
        ([[0, 1]], "entity is not {start, end, label}"),
        (["x"], "entity is not {start, end, label}"),
        (
            [{"start": 0, "end": 3, "label": "x", "text": "def"}],
            "entity is not at its place",
        ),
        ([[0, 3, "x"], [2, 7, "y"]], "entities overlap"),
        ("no list", "column 'entities' is not a list of entities"),
    ],
)
def test_unusable_entities_are_rejected(tmp_path, entities, reason):
    rows = [{"text": "abc def", "entities": entities}, {"text": "fine", "entities": []}]
    found = read_tagged_texts(write_rows(tmp_path / "a.jsonl", rows), COLUMNS)
    assert found.texts == ["fine"]
    assert [(reject.line, reject.reason) for reject in found.rejects] == [(1, reason)]


@pytest.mark.parametrize(
    ("text", "entity", "reason"),
    [
        ("🙂🙂 lima", (5, 9), "covers no text, unless offsets count UTF-16 units"),
        ("cafés in lima", (10, 14), "covers no text, unless offsets count bytes of UTF-8"),
        ("🙂🙂 lima", (6, 9), "covers no text"),  # would be cut
        ("🙂🙂 lima", (5, 10), "covers no text"),  # beyond all of it
        ("🙂 lima is old", (3, 7, "lima"), "is not at its place, unless offsets count UTF"),
        ("café lima is old", (6, 10, "lima"), "is not at its place, unless offsets count byt"),
        ("🙂 lima is old", (3, 7, "oslo"), "is not at its place"),
    ],
)
def test_offsets_that_count_something_else_are_named(tmp_path, text, entity, reason):
    start, end, *quoted = entity
    item = {"start": start, "end": end, "label": "x", **({"text": quoted[0]} if quoted else {})}
    rows = [{"text": text, "entities": [item]}, {"text": "fine", "entities": []}]
    found = read_tagged_texts(write_rows(tmp_path / "a.jsonl", rows), COLUMNS)
    (reject,) = found.rejects
    assert reject.reason.startswith(f"entity {reason}")
    assert ("unless" in reject.reason) == ("unless" in reason)


def test_columns_may_have_other_names(tmp_path):
    columns = TagColumns(text="body", tokens="words", tags="pos", entities="ner")
    path = write_rows(tmp_path / "a.jsonl", [{"words": ["a"], "pos": [3]}])
    assert marked(read_tagged_texts(path, columns)) == [[("a", "3")]]
    spans = TagColumns(text="body", tokens=None, tags=None, entities="ner")
    path = write_rows(tmp_path / "b.jsonl", [{"body": "ab", "ner": [[0, 1, "x"]]}])
    assert marked(read_tagged_texts(path, spans)) == [[("a", "x")]]


def test_wrong_columns_are_refused_with_those_there_are(tmp_path):
    path = write_rows(tmp_path / "a.jsonl", [{"words": ["a"], "tags": ["O"]}])
    with pytest.raises(UsageError, match=r"has neither .* it has 'words', 'tags'; name its"):
        read_tagged_texts(path, COLUMNS)
    path = write_rows(tmp_path / "b.jsonl", [{"text": "a", "marks": []}])
    with pytest.raises(UsageError, match="no column 'entities'"):
        read_tagged_texts(path, COLUMNS)
    (tmp_path / "c.conll").write_text("a O\n")
    named = TagColumns(text="text", tokens=None, tags="upos", entities="entities")
    with pytest.raises(UsageError, match="--tag-column upos: columns of CoNLL files are numbers"):
        read_tagged_texts(tmp_path / "c.conll", named)
    with pytest.raises(UsageError, match="CoNLL files have no header"):
        read_tagged_texts(tmp_path / "c.conll", COLUMNS, dialect=TableDialect(has_header=False))


def test_a_file_without_usable_rows_is_refused(tmp_path):
    (tmp_path / "a.conll").write_text("")
    with pytest.raises(InputError, match="has no rows"):
        read_tagged_texts(tmp_path / "a.conll", COLUMNS)
    (tmp_path / "b.conll").write_text("a\nb\n")
    with pytest.raises(InputError, match=r"1 × wrong number of columns, first at .*b.conll:1 "):
        read_tagged_texts(tmp_path / "b.conll", COLUMNS)


SPAN = {"start": 4, "end": 7, "label": "per"}


@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        ([{"entities": [{"id": 1, "label": "per", "start_offset": 4, "end_offset": 7}]}], {}),
        ([{"label": [[4, 7, "per"]]}], {"entities": "label"}),
        (
            [{"label": [{"start": 4, "end": 7, "text": "Ada", "labels": ["per"]}]}],
            {"entities": "label"},
        ),
        ([{"label": "[{'start': 4, 'end': 7, 'labels': ['per']}]"}], {"entities": "label"}),
        ([{"label": "[(4, 7, 'per')]"}], {"entities": "label"}),
        ([{"label": [[4, 7, "per"]]}], {}),
        ([{"labels": "[[4, 7, 'per']]"}], {}),
        ([{"ents": [{"start_char": 4, "end_char": 7, "label_": "per"}]}], {}),
        ([{"entities": {"start": [4], "end": [7], "label": ["per"]}}], {}),
        ([{"entities": [{"begin": 4.0, "end": 7.0, "entity": "per"}]}], {}),
        ([{"entities": [{"startOffset": "4", "endOffset": "7", "entityType": "per"}]}], {}),
        ([{"spans": [SPAN], "tokens": [{"text": "née"}, {"text": "Ada"}]}], {}),
        ([{"spans": [SPAN], "tokens": ["née", "Ada"], "tags": ["O", "O"]}], {"entities": "spans"}),
    ],
)
def test_entities_as_other_tools_write_them(tmp_path, rows, columns):
    path = write_rows(tmp_path / "a.jsonl", [{"text": "née Ada", **row} for row in rows])
    found = read_tagged_texts(path, dataclasses.replace(COLUMNS, **columns))
    assert marked(found) == [[("Ada", "per")]] and not found.rejects


def test_labels_that_are_no_spans_are_no_entities(tmp_path):
    path = write_rows(tmp_path / "a.jsonl", [{"text": "a", "label": ["x"]}])
    with pytest.raises(UsageError, match="no column 'entities'"):
        read_tagged_texts(path, COLUMNS)


def test_rejects_before_the_first_row_are_kept(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("{bad\n" * 9000 + '{"tokens": ["a", "b"], "tags": ["O", "x"]}\n')
    found = read_tagged_texts(path, COLUMNS)
    assert found.texts == ["a b"] and found.lines == [9001]
    assert [each.line for each in found.rejects] == [*range(1, 9001)]
    path.write_text("{bad\n" * 9000)
    with pytest.raises(InputError, match=r"none of its 9,000 rows can be used: 9,000 × not JSON"):
        read_tagged_texts(path, COLUMNS)


def test_numbers_of_tags_may_be_floats(tmp_path):
    rows = [{"tokens": ["a", "b"], "tags": tags} for tags in ([1.0, 0.0], "[1. 0.]")]
    assert read_tagged_texts(write_rows(tmp_path / "a.jsonl", rows), COLUMNS).tags == [*"1010"]


@pytest.mark.parametrize("gap", ["", "nan", "NaN", "None"])
def test_a_sentence_goes_on_where_its_column_is_blank(tmp_path, gap):
    rows = ["Sentence: 1,Ada,B-per", *[f"{gap},ran,O"] * 3, "Sentence: 2,Bo,B-per", f"{gap},sat,O"]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["Sentence #,tokens,tags", *rows]))
    assert read_tagged_texts(path, COLUMNS).texts == ["Ada ran ran ran", "Bo sat"]


def test_annotations_that_were_not_accepted_are_rejected(tmp_path):
    rows = [
        {"text": "née Ada", "spans": [SPAN], "answer": answer} for answer in ("accept", "reject")
    ]
    found = read_tagged_texts(write_rows(tmp_path / "a.jsonl", rows), COLUMNS)
    assert len(found) == 1
    assert [str(each).partition(": ")[2] for each in found.rejects] == [
        "annotation is not accepted ('reject')"
    ]


def test_nested_exports_of_label_studio_are_named(tmp_path):
    row = {"id": 1, "data": {"text": "a"}, "annotations": [{"result": []}]}
    path = write_rows(tmp_path / "a.jsonl", [row])
    with pytest.raises(UsageError, match="of Label Studio's formats export JSON-MIN"):
        read_tagged_texts(path, COLUMNS)


def test_a_column_of_sentences_that_lists_do_not_need_is_not_read(tmp_path):
    """A run is trained on a word per row, and measured on lists."""
    rows = [{"tokens": ["a", "b"], "tags": ["O", "O"], "sid": n} for n in range(3)]
    columns = dataclasses.replace(COLUMNS, sentence="sid")
    assert len(read_tagged_texts(write_rows(tmp_path / "a.jsonl", rows), columns)) == 3


def test_columns_of_words_and_of_entities_are_not_named_at_once(tmp_path):
    path = write_rows(tmp_path / "a.jsonl", [{"text": "a", "spans": [], "w": ["a"], "t": ["O"]}])
    columns = TagColumns(text="text", tokens="w", tags="t", entities="spans")
    with pytest.raises(UsageError, match="name the columns of one"):
        read_tagged_texts(path, columns)


WORD_ROWS = """Sentence #,Word,POS,Tag
Sentence: 1,Ada,NN,B-per
,New York,VB,B-loc
,lives,VB
,.,IN,O
Sentence: 2,It,PR,O
,,VB,O
Sentence: 3,x,NN,O
Sentence: 3,y,NN,O
"""


def test_rows_of_a_word_are_joined_by_their_sentence(tmp_path):
    (tmp_path / "a.csv").write_text(WORD_ROWS.replace(",lives,VB\n", ",lives,VB,O\n"))
    columns = TagColumns(text="text", tokens="Word", tags="Tag", entities="entities")
    stream = io.StringIO()
    found = read_tagged_texts(tmp_path / "a.csv", columns, console=Console(stream))
    assert marked(found) == [
        [("Ada", "B-per"), ("New York", "B-loc"), ("lives", "O"), (".", "O")],
        [("x", "O"), ("y", "O")],
    ]
    assert (found.lines, found.mark_lines) == ([2, 8], [2, 3, 4, 5, 8, 9])
    assert [str(each).partition("csv")[2] for each in found.rejects] == [
        ":6: column 'Word' is empty (line 7)"
    ]
    assert "words with one 'Sentence #' are a sentence" in stream.getvalue()
    (tmp_path / "b.csv").write_text(WORD_ROWS)
    found = read_tagged_texts(tmp_path / "b.csv", columns)
    assert [each.line for each in found.rejects] == [2, 6]
    assert found.rejects[0].detail.startswith("line 4: 3 where")


def test_sentences_of_rows_of_a_word_are_those_of_conll(tmp_path):
    """Over blocks of rows too."""
    rows = [(f"s{row // 7}", f"w{row}", "O") for row in range(20_000)]
    (tmp_path / "a.csv").write_text("sid,tokens,tags\n" + "".join(",".join(r) + "\n" for r in rows))
    lines = [f"{word} {tag}\n" for _, word, tag in rows]
    starts = range(0, len(lines), 7)
    (tmp_path / "a.conll").write_text("\n".join("".join(lines[at : at + 7]) for at in starts))
    columns = dataclasses.replace(COLUMNS, sentence="sid")
    found = read_tagged_texts(tmp_path / "a.csv", columns)
    assert found.texts == read_tagged_texts(tmp_path / "a.conll", COLUMNS).texts
    first = read_tagged_texts(tmp_path / "a.csv", columns, max_rows=3)
    assert first.texts == found.texts[:3]


@pytest.mark.parametrize(
    ("header", "sentence", "message"),
    [
        (
            "doc,tokens,tags",
            None,
            r"single word in 'tokens'; .* --sentence-column NAME, or put blank",
        ),
        ("sentence_id,tokens,tags", None, "'sentence_id' differs in nearly every row"),
        ("a,tokens,tags", "b", "no column 'b'"),
    ],
)
def test_rows_of_a_word_without_sentences_are_refused(tmp_path, header, sentence, message):
    lines = [f"{row},w{row},O\n" for row in range(9)]
    (tmp_path / "a.csv").write_text(header + "\n" + "".join(lines))
    with pytest.raises(UsageError, match=message):
        read_tagged_texts(tmp_path / "a.csv", dataclasses.replace(COLUMNS, sentence=sentence))


def test_texts_of_python_lists_are_words(tmp_path):
    (tmp_path / "a.csv").write_text("""tokens,tags\n"['Ada', ""isn't""]","['B-per', 'O']"\n""")
    assert marked(read_tagged_texts(tmp_path / "a.csv", COLUMNS)) == [
        [("Ada", "B-per"), ("isn't", "O")]
    ]


def test_tuples_and_arrays_are_lists_of_words(tmp_path):
    lists = ["""('Ada', "isn't")""", "np.array(['Ada', \"isn't\"], dtype=object)"]
    lists += ["list(('Ada', \"isn't\"))", """( "Ada" , "isn't" )"""]
    for number, text in enumerate(lists):
        quoted = text.replace('"', '""')
        path = tmp_path / f"{number}.csv"
        path.write_text(f"""tokens,tags\n"{quoted}","('B-per', 'O')"\n""")
        columns = TagColumns(text="text", tokens=None, tags=None, entities="entities")
        if number == 2:
            continue  # nested calls are no list that anything writes
        assert marked(read_tagged_texts(path, columns)) == [[("Ada", "B-per"), ("isn't", "O")]]
    (tmp_path / "a.csv").write_text('tokens,tags\n"(1997, 1998)","(0, 1)"\n')
    assert marked(read_tagged_texts(tmp_path / "a.csv", COLUMNS)) == [
        [("(1997,", "0"), ("1998)", "1")]
    ]


def test_offsets_of_too_many_digits_reject_a_row(tmp_path):
    good = {"text": "Ada met Bo", "entities": [{"start": "0", "end": "3", "label": "PER"}]}
    bad = {"text": "Ada met Bo", "entities": [{"start": "0", "end": "9" * 5000, "label": "PER"}]}
    texts = read_tagged_texts(write_rows(tmp_path / "a.jsonl", [good, bad]), COLUMNS)
    assert marked(texts) == [[("Ada", "PER")]]
    assert [reject.reason for reject in texts.rejects] == ["entity is not {start, end, label}"]
