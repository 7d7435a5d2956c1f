"""Tables of words through blocks and parts to outputs, with a stand-in for the model."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bert_tf.base.errors import UsageError
from bert_tf.data.tables.dialect import PLAIN
from bert_tf.engines.registry import ENGINES
from bert_tf.tasks.registry import TASKS
from pipeline.scoring.blocks import cut_table, read_block
from pipeline.scoring.columns import ScoringColumns
from pipeline.scoring.join import join_parts
from pipeline.scoring.parts import ScoredBlock, write_part
from pipeline.scoring.plan import ScoringPlan, words_column
from pipeline.scoring.tables import list_tables

TAGGING = TASKS["tagging"]
CONLL = "-DOCSTART- O\n\nEU B-org\ncalls O\n\nbad\n\n# note here\nPeter B-per\n"
ROWS = [["EU", "calls"], ["Peter"]]
TAGS = [["B-upper", "O"], ["B-upper"]]
ENTITIES = [
    [{"start": 0, "end": end, "label": "upper", "text": text, "score": 0.5}]
    for end, text in ((2, "EU"), (5, "Peter"))
]


def predicted_of(text: str, tag: str) -> list[dict]:
    """Return the stand-in's prediction: words with a capital are entities, blanks have no token."""
    found, place = [], 0
    for word in text.split(" "):
        end = place + len(word)
        if word.strip():
            found.append({"start": place, "end": end, "tag": tag if word[0].isupper() else "O"})
        place = end + 1
    return found


@pytest.fixture
def score(tmp_path):
    def run(source: str, output: str, *, column="tokens", tag="B-upper"):
        tables, is_folder = list_tables(
            (str(tmp_path / source),), str(tmp_path / output), has_words=True
        )
        columns = ScoringColumns(sources={"text": "text"}, fields=TAGGING.predictions[:1])
        parts = tmp_path / f"parts-{output}"
        parts.mkdir()
        plan = ScoringPlan(
            model="model",
            engine=ENGINES["tensorflow"],
            columns=columns.of_words(TAGGING.words, column, {"scheme": "bio"}),
            tables=tuple(tables),
            is_folder=is_folder,
            parts=parts,
            block_rows=2,
            limit=0,
            batch_tokens=64,
            identity="model a",
        )
        for reference in cut_table(plan.tables[0], plan):
            block = read_block(reference, plan)
            tagged = [predicted_of(text, tag) for text in block.texts["text"]]
            predicted = {
                "predicted_tags": [json.dumps(row) for row in tagged],
                "predicted_entities": [json.dumps([]) for _ in tagged],
                "mean_score": np.full(len(tagged), 0.5),
            }
            write_part(ScoredBlock(block, predicted), plan)
        return join_parts(plan, Path(tmp_path / f"{output}.rejects.jsonl"))

    return run


def test_a_conll_file_has_a_column_more(score, tmp_path):
    (tmp_path / "a.conll").write_text(CONLL)
    counts = score("a.conll", "b.conll")
    assert (counts.rows_in, counts.rows_out) == (3, 2)
    assert counts.rejected == {"wrong number of columns": 1}
    assert (tmp_path / "b.conll").read_text() == (
        "-DOCSTART- O\n\nEU B-org B-upper\ncalls O O\n\n# note here\nPeter B-per B-upper\n"
    )


def test_a_tag_that_would_be_two_columns_is_rejected(score, tmp_path):
    (tmp_path / "a.conll").write_text(CONLL)
    counts = score("a.conll", "b.conll", tag="upper case")
    assert counts.rows_out == 0 and counts.rows_in == sum(counts.rejected.values()) == 3
    (tmp_path / "tabs.conll").write_text("EU\tO\n")
    score("tabs.conll", "c.conll", tag="upper case")
    assert (tmp_path / "c.conll").read_text() == "EU\tO\tupper case\n"


@pytest.mark.parametrize("output", ["b.jsonl", "b.csv", "b.parquet"])
def test_sentences_become_rows_of_words(score, tmp_path, output):
    (tmp_path / "a.conll").write_text(CONLL)
    assert score("a.conll", output).rows_out == 2
    path = tmp_path / output
    if output == "b.jsonl":
        rows = [json.loads(line) for line in path.read_text().splitlines()]
    elif output == "b.csv":
        with path.open() as stream:
            rows = list(csv.DictReader(stream))
    else:
        rows = pq.read_table(path).to_pylist()
    values = [
        {key: json.loads(value) if isinstance(value, str) else value for key, value in row.items()}
        for row in rows
    ]
    assert [row["tokens"] for row in values] == ROWS
    assert [row["predicted_token_tags"] for row in values] == TAGS
    assert [row["predicted_entities"] for row in values] == ENTITIES


def test_rows_of_tables_keep_their_columns(score, tmp_path):
    lines = [
        '{"tokens": ["EU", "calls"],  "n": 1.0}',
        '{"tokens": 7}',
        '{"n": 2, "tokens": ["Peter"]}',
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    counts = score("a.jsonl", "b.jsonl")
    assert counts.rows_in == 3 and counts.rejected == {"column 'tokens' is not a list of texts": 1}
    written = (tmp_path / "b.jsonl").read_text().splitlines()
    for line, row, entities, tags in zip(lines[::2], written, ENTITIES, TAGS, strict=True):
        added = json.dumps({"predicted_entities": entities, "predicted_token_tags": tags})
        assert row == f"{line[:-1]}, {added[1:]}"

    table = pa.table({"w": [["EU", "calls"], [], ["Peter"]], "n": pa.array([1, 2, 3], pa.int8())})
    pq.write_table(table, tmp_path / "a.parquet")
    assert score("a.parquet", "b.parquet", column="w").rejected == {"has no words": 1}
    found = pq.read_table(tmp_path / "b.parquet")
    assert found.column("w").to_pylist() == ROWS and found.schema.field("n").type == pa.int8()
    assert [json.loads(tags) for tags in found["predicted_token_tags"].to_pylist()] == TAGS


def test_words_without_tokens_are_counted(score, tmp_path):
    lines = ['{"tokens": ["EU", "\\n", "calls"]}', '{"tokens": ["Peter"]}']
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    assert score("a.jsonl", "b.jsonl").sums["words_without_tokens"] == 1


def test_only_sentences_become_sentences(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"tokens": ["a"]}')
    with pytest.raises(UsageError, match="only CoNLL inputs have CoNLL outputs"):
        list_tables((str(tmp_path / "a.jsonl"),), str(tmp_path / "b.conll"), has_words=True)


def test_the_column_of_words_is_that_of_the_model_or_the_usual(tmp_path):
    def found(name, content, given=None, known=None):
        (tmp_path / name).write_text(content)
        tables, _ = list_tables((str(tmp_path / name),), str(tmp_path / "out"), has_words=True)
        return words_column(tables[0], PLAIN, given, known)

    assert found("a.csv", "text,w\na,b\n") is None
    assert found("a.csv", "text,w\na,b\n", known="w") == "w"
    assert found("a.csv", "text,w\na,b\n", given="text", known="w") == "text"
    assert found("a.jsonl", '{"tokens": ["a"], "text": "a"}', known="w") == "tokens"
    assert found("a.jsonl", '{"tokens": [{"text": "a"}], "text": "a"}', known="w") is None
    with pytest.raises(UsageError, match=r"most rows hold a single word in 'w'.*\.conll"):
        found("a.csv", "n,w\n1,a\n2,b\n3,c\n", known="w")
    assert found("a.conll", "a b\n") == "tokens"
    assert found("a.conll", "a b\n", given="2", known="1") == "2"
    with pytest.raises(UsageError, match="--tokens-column w: columns of CoNLL files are numbers"):
        found("a.conll", "a b\n", given="w")
