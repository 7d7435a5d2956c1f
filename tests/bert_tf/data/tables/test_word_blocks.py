"""Rows of words: the columns read of each file, and sentences with a column more."""

from __future__ import annotations

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bert_tf.base.errors import InputError, UsageError
from bert_tf.data.tables.dialect import PLAIN, TableDialect
from bert_tf.data.tables.word_blocks import read_word_blocks, row_words, with_tags

CONLL = (
    "-DOCSTART- -X- O\n\n# a comment of the first\nEU NNP B-ORG\nrejects VBZ O \n\n \n"
    "-DOCSTART- -X- O\n\nPeter NNP B-PER\nBlackburn NNP I-PER\n\n# this is the end"
)
TAGGED = (
    "-DOCSTART- -X- O\n\n# a comment of the first\nEU NNP B-ORG 0\nrejects VBZ O  1\n\n \n"
    "-DOCSTART- -X- O\n\nPeter NNP B-PER 0\nBlackburn NNP I-PER 1\n\n# this is the end"
)


def blocks_of(path, content=None, *, column="tokens", dialect=PLAIN, block_rows=2, **options):
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return list(
        read_word_blocks(
            str(path), column=column, dialect=dialect, block_rows=block_rows, **options
        )
    )


def words(blocks, column="tokens"):
    return [row for block in blocks for row in row_words(block, column)]


def tagged(blocks):
    """Each sentence with the numbers of its words as tags, as a part has it."""
    return "".join(
        with_tags(raw, [str(number) for number in range(len(row["tokens"]))]) + "\n"
        for block in blocks
        for raw, row in zip(block.raw_rows, block.rows, strict=True)
    )


def test_sentences_get_a_column_and_stay_what_they_are(tmp_path):
    path = tmp_path / "a.conll"
    blocks = blocks_of(path, CONLL, block_rows=1, as_lines=True)
    assert words(blocks) == [["EU", "rejects"], ["Peter", "Blackburn"]]
    assert [block.lines for block in blocks] == [[4], [10]]
    assert tagged(blocks) == TAGGED + "\n"
    returns = blocks_of(path, CONLL.replace("\n", "\r\n"), as_lines=True)
    assert tagged(returns) == TAGGED.replace("\n", "\r\n") + "\n"
    zipped = tmp_path / "a.conll.gz"
    assert words(blocks_of(zipped, gzip.compress(CONLL.encode()))) == words(blocks)


def test_words_need_no_tags(tmp_path):
    blocks = blocks_of(tmp_path / "a.txt", "EU\nrejects\n\ncalls\n", as_lines=True)
    assert tagged(blocks) == "EU 0\nrejects 1\n\ncalls 0\n"
    universal = "# text = vamos al\n1\tvamos\tir\n2-3\tal\t_\n2\ta\ta\n3\tel\tel\n"
    blocks = blocks_of(tmp_path / "a.conllu", universal, as_lines=True)
    assert words(blocks) == [["vamos", "a", "el"]]
    expected = "# text = vamos al\n1\tvamos\tir\t0\n2-3\tal\t_\n2\ta\ta\t1\n3\tel\tel\t2\n"
    assert tagged(blocks) == expected
    second = blocks_of(tmp_path / "a.conll", "1 EU\n2 calls\n", column="2")
    assert words(second) == [["EU", "calls"]]
    assert json.loads(second[0].raw_rows[0]) == {"tokens": ["EU", "calls"]}


def test_a_bad_sentence_is_rejected_alone(tmp_path):
    rows = "a O\nb\n\n" + "c O\n" + "d" * 40 + " O\n\ne O\n"
    (block,) = blocks_of(
        tmp_path / "a.conll", rows, dialect=TableDialect(max_row_characters=20), block_rows=9
    )
    assert words([block]) == [["e"]]
    assert [(reject.line, reject.reason) for reject in block.rejects] == [
        (1, "wrong number of columns"),
        (4, "row is too long"),
    ]
    assert block.rows_in == 3
    with pytest.raises(InputError, match="has no sentences"):
        blocks_of(tmp_path / "b.conll", "\n\n")
    with pytest.raises(UsageError, match=r"--tokens-column 3.* have 2 columns"):
        blocks_of(tmp_path / "a.conll", "a O\n", column="3")


def test_tables_hold_lists_or_blanks_between_words(tmp_path):
    rows = [
        {"tokens": ["EU", 7], "id": 1},
        {"tokens": []},
        {"tokens": "two words"},
        {"tokens": [None]},
        {"id": 2},
    ]
    path = tmp_path / "a.jsonl"
    blocks = blocks_of(path, "".join(json.dumps(row) + "\n" for row in rows), block_rows=9)
    assert words(blocks) == [["EU", "7"], ["two", "words"]]
    assert sorted((reject.line, reject.reason) for reject in blocks[0].rejects) == [
        (2, "has no words"),
        (4, "column 'tokens' is not a list of texts"),
        (5, "column 'tokens' is missing"),
    ]
    assert words(blocks_of(tmp_path / "a.csv", "w,n\nEU rejects,1\n", column="w"), "w") == [
        ["EU", "rejects"]
    ]
    pq.write_table(pa.table({"tokens": [["EU", "rejects"], ["x"]]}), tmp_path / "a.parquet")
    assert words(blocks_of(tmp_path / "a.parquet")) == [["EU", "rejects"], ["x"]]


word = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1).filter(
    lambda text: text[0] != "#" and text != "-DOCSTART-"
)
between = st.lists(st.sampled_from(["", "# a comment", "-DOCSTART- -X-", " "]), max_size=3)


@given(
    st.lists(st.tuples(between, st.lists(word, min_size=1)), min_size=1),
    between,
    st.sampled_from(["\t", " "]),
)
@example([([], ["a"]), (["-DOCSTART- -X-"], ["b"])], ["# a comment"], " ")
def test_all_but_the_column_is_untouched(tmp_path_factory, sentences, after, separator):
    """Files put together from pieces, of which only the lines of words end otherwise."""
    path = tmp_path_factory.mktemp("conll") / "a.conll"
    plain, expected = [], []
    for before, row in sentences:
        plain += [*before, *(f"{text}{separator}O" for text in row), ""]
        expected += [
            *before,
            *(f"{text}{separator}O{separator}{number}" for number, text in enumerate(row)),
            "",
        ]
    path.write_text("\n".join([*plain, *after]) + "\n", encoding="utf-8", newline="\n")
    found = tagged(blocks_of(path, as_lines=True))
    assert found == "\n".join([*expected, *after]) + "\n"
