"""The job `embed` on a tiny random encoder: files, order, rejects, resuming, refusing."""

from __future__ import annotations

import dataclasses
import io
import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError
from bert_tf.config.embedding_recipe import RAW_CLS, EmbeddingRecipe
from bert_tf.config.section import build_section
from bert_tf.config.sections import EmbedConfig, RunnerConfig
from bert_tf.embeddings.embedder import Embedder
from bert_tf.embeddings.settings import EmbedderSettings
from bert_tf.weights.sentence_transformers import write_recipe
from pipeline.jobs import embedding
from pipeline.outputs.job_spec import RunOptions
from pipeline.report.artifact import describe_artifact

pytestmark = pytest.mark.slow  # runs pipelines

MODEL = Path(__file__).parents[2] / "golden" / "models" / "encoder"
RUNNER = RunnerConfig()
MEAN = EmbedderSettings(pooling="mean", normalize=False, max_seq_length=12)
TEXTS = ["w1 w2", "w3", "w1 w2", "w4 " * 30, "é😀, w5"]


@dataclasses.dataclass
class Log:
    """Options whose console is kept."""

    stream: io.StringIO = dataclasses.field(default_factory=io.StringIO)

    def options(self, **values) -> RunOptions:
        return RunOptions(console=Console(self.stream), **values)

    @property
    def text(self) -> str:
        return self.stream.getvalue()


def embed(*inputs: Path, output: Path, log: Log | None = None, **values) -> dict:
    config = build_section(
        EmbedConfig,
        {
            "model": str(MODEL),
            "input": [str(path) for path in inputs],
            "output": str(output),
            "block_rows": 2,
            "max_seq_length": 12,
            **values,
        },
    )
    return embedding.run(config, RUNNER, (log or Log()).options())


@pytest.fixture
def rows(tmp_path) -> Path:
    path = tmp_path / "rows.jsonl"
    lines = [json.dumps({"n": n, "text": text}, ensure_ascii=False) for n, text in enumerate(TEXTS)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def expected() -> np.ndarray:
    return Embedder(MODEL, MEAN).predict({"text": TEXTS})["embedding"]


@pytest.mark.parametrize("name", ["v.parquet", "v.jsonl"])
def test_folders_of_a_hive_layout_become_columns(tmp_path, name):
    for day in ("1", "a%2Fb", "__HIVE_DEFAULT_PARTITION__"):
        (tmp_path / f"day={day}").mkdir()
        (tmp_path / f"day={day}" / "a.csv").write_text(f"id,text\n{day},w1\n")
        (tmp_path / f"day={day}" / "b.csv").write_text("id,day,text\n0,own,w2\n")
    pattern = tmp_path / "day=*" / "*.csv"
    embed(pattern, output=tmp_path / name)
    if name.endswith("jsonl"):
        rows = [json.loads(line) for line in (tmp_path / name).read_text().splitlines()]
    else:
        rows = pq.read_table(tmp_path / name).to_pylist()
    found = {(row["id"], row["day"]) for row in rows}
    hive = {("1", "1"), ("a%2Fb", "a/b"), ("__HIVE_DEFAULT_PARTITION__", None)}
    assert found == {*hive, ("0", "own")}


def test_every_format_has_the_rows_in_order_with_their_vectors(rows, tmp_path, expected):
    log = Log()
    manifest = embed(rows, output=tmp_path / "v.parquet", log=log)
    table = pq.read_table(tmp_path / "v.parquet")
    assert table.column_names == ["n", "text", "embedding"]
    assert str(table.schema.field("embedding").type).startswith("fixed_size_list<")
    assert table["n"].to_pylist() == [0, 1, 2, 3, 4]
    assert table["text"].to_pylist() == TEXTS
    np.testing.assert_allclose(table["embedding"].to_pylist(), expected, rtol=0, atol=1e-5)
    assert manifest["counts"] == {
        "rows_in": 5,
        "rows_out": 5,
        "rows_rejected": 0,
        "rejected": {},
        "tokens": 4 + 3 + 4 + 32 + 5,
        "rows_truncated": 1,
        "tokens_truncated": 20,
    }
    # Blocks of 4 and 3, 4 and 12, and 5 tokens, padded to an even length.
    assert manifest["metrics"]["padding_fraction"] == round(1 - 28 / (8 + 24 + 6), 4)
    assert "warning: 1 of 5 texts longer than 12 tokens: 20 of 48 tokens left out" in log.text
    assert "v.parquet  vectors of 8 dimensions of 5 texts" in log.text
    assert manifest["embedding"]["pooling"] == "mean"

    embed(rows, output=tmp_path / "v.npy")
    array = np.load(tmp_path / "v.npy")
    assert (array.dtype, array.shape) == (np.float32, (5, 8))
    np.testing.assert_allclose(array, expected, rtol=0, atol=1e-5)

    embed(rows, output=tmp_path / "v.jsonl")
    lines = (tmp_path / "v.jsonl").read_text(encoding="utf-8").splitlines()
    for line, source in zip(lines, rows.read_text(encoding="utf-8").splitlines(), strict=True):
        assert line.startswith(source[:-1] + ', "embedding": [')
    got = np.array([json.loads(line)["embedding"] for line in lines], np.float32)
    np.testing.assert_array_equal(got, array)
    assert embed(rows, output=tmp_path / "v.jsonl")["already_done"]
    with pytest.raises(UsageError, match="pooling: None then, 'max' now"):
        embed(rows, output=tmp_path / "v.jsonl", pooling="max")


def test_tokens_come_with_their_characters(rows, tmp_path):
    embed(rows, output=tmp_path / "t.parquet", tokens=True)
    embed(rows, output=tmp_path / "t.jsonl", tokens=True)
    got = pq.read_table(tmp_path / "t.parquet").to_pylist()
    written = [json.loads(line) for line in (tmp_path / "t.jsonl").read_text().splitlines()]
    names = ["n", "text", "tokens", "token_starts", "token_ends", "token_embeddings"]
    assert list(got[0]) == list(written[0]) == names
    for row, line in zip(got, written, strict=True):
        vectors = row.pop("token_embeddings")
        np.testing.assert_array_equal(
            np.array(line.pop("token_embeddings"), np.float32), np.array(vectors, np.float32)
        )
        assert row == line
        assert np.shape(vectors) == (len(row["tokens"]), 8)
        places = zip(row["token_starts"], row["token_ends"], row["tokens"], strict=True)
        for start, end, token in places:
            assert token in (row["text"][start:end], "[UNK]")
    assert [len(row["tokens"]) for row in got] == [2, 1, 2, 10, 3]  # é😀 is one word
    with pytest.raises(UsageError, match=r"\.npy holds one vector per row"):
        embed(rows, output=tmp_path / "t.npy", tokens=True)


def test_rejected_rows_are_listed_and_other_tables_follow(rows, tmp_path, expected):
    (tmp_path / "a.csv").write_text('n,text\n1.0,w3\n2,\n3,"w1 w2"\n')
    log = Log()
    manifest = embed(tmp_path / "a.csv", rows, output=tmp_path / "v.npy", log=log)
    got = np.load(tmp_path / "v.npy")
    np.testing.assert_allclose(got, [*expected[[1, 0]], *expected], rtol=0, atol=1e-5)
    assert (manifest["counts"]["rows_in"], manifest["counts"]["rows_rejected"]) == (8, 1)
    assert "has no vectors for rejected rows" in log.text
    (reject,) = (tmp_path / "v.npy.rejects.jsonl").read_text().splitlines()
    assert json.loads(reject)["line"] == 3
    embed(tmp_path / "a.csv", rows, output=tmp_path / "v.parquet")
    pq.write_table(pq.read_table(tmp_path / "v.parquet", columns=["text"]), tmp_path / "b.parquet")
    embed(tmp_path / "b.parquet", output=tmp_path / "w.npy")
    np.testing.assert_allclose(np.load(tmp_path / "w.npy"), got, rtol=0, atol=1e-5)
    # Cells of CSV are text, numbers of JSON are not: together they are text.
    column = pq.read_table(tmp_path / "v.parquet")["n"].to_pylist()
    assert column == ["1.0", "3", "0", "1", "2", "3", "4"]


def test_columns_of_parquet_keep_their_types(rows, tmp_path, expected):
    texts = [*TEXTS, ""]
    table = pa.table(
        {
            "text": pa.array(texts, pa.string_view()),
            "n": pa.array(range(6), pa.uint64()),
            "at": pa.array(range(6), pa.timestamp("ns", "Europe/Madrid")),
            "tags": [["a"], [], None, ["b", "c"], ["d"], []],
            "raw": pa.array([bytes([255, n]) for n in range(6)], pa.binary()),
            "kind": pa.array(list("abcabc")).dictionary_encode(),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=3)
    embed(tmp_path / "a.parquet", output=tmp_path / "v.parquet")
    found = pq.read_table(tmp_path / "v.parquet")
    assert found.drop_columns("embedding").equals(table.slice(0, 5))
    np.testing.assert_allclose(found["embedding"].to_pylist(), expected, rtol=0, atol=1e-5)

    # A column that is null in one table has the other's type; one of two types is of JSON's.
    other = table.slice(1, 2)
    for name, column in (
        ("kind", pa.nulls(2)),
        ("at", pa.array(["x", "y"])),
        ("n", pa.array([7, 8], pa.int8())),
    ):
        other = other.set_column(other.column_names.index(name), name, column)
    pq.write_table(other.drop_columns("raw"), tmp_path / "b.parquet")
    pq.write_table(table.slice(0, 0), tmp_path / "c.parquet")
    (tmp_path / "d.csv").write_text("text,tags\n")
    names = ("a.parquet", "b.parquet", "c.parquet", "d.csv")
    embed(*(tmp_path / name for name in names), output=tmp_path / "w.parquet")
    found = pq.read_table(tmp_path / "w.parquet")
    kinds = {field.name: field.type for field in table.schema} | {
        "at": pa.string(),
        "n": pa.int64(),
    }
    assert {name: found.schema.field(name).type for name in kinds} == kinds
    assert found["n"].to_pylist() == [0, 1, 2, 3, 4, 7, 8]
    assert found["kind"].to_pylist() == ["a", "b", "c", "a", "b", None, None]
    assert found["raw"].to_pylist()[4:] == [b"\xff\x04", None, None]
    assert found["tags"].to_pylist() == [["a"], [], None, ["b", "c"], ["d"], [], None]
    assert found["at"].to_pylist()[-3:] == ["1970-01-01 01:00:00.000000004+0100", "x", "y"]

    # With rows of JSON, a column of both has the type of its values in JSON.
    embed(tmp_path / "a.parquet", rows, output=tmp_path / "x.parquet")
    found = pq.read_table(tmp_path / "x.parquet")
    assert [str(found.schema.field(name).type) for name in ("n", "text")] == ["int64", "string"]
    assert found.schema.field("raw").type == pa.binary()
    assert found["n"].to_pylist() == [0, 1, 2, 3, 4, 0, 1, 2, 3, 4]


@pytest.mark.parametrize("tokens", [True, False])
def test_a_block_of_rejected_rows_alone_has_no_vectors(tmp_path, tokens):
    path = tmp_path / "rows.csv"
    path.write_text('text,n\n"",1\n"",2\nw1,3\n"",4\n"",5\n')
    manifest = embed(path, output=tmp_path / "v.parquet", tokens=tokens, block_rows=2)
    assert pq.read_table(tmp_path / "v.parquet")["n"].to_pylist() == ["3"]
    assert (manifest["counts"]["rows_out"], manifest["counts"]["rows_rejected"]) == (1, 4)


def test_an_interrupted_job_resumes_with_the_same_bytes(rows, tmp_path, monkeypatch):
    embed(rows, output=tmp_path / "whole.parquet")
    done = []
    predict = Embedder.predict

    def fail_later(self, columns, **values):
        if len(done) == 2:
            raise RuntimeError("killed")
        done.append(columns)
        return predict(self, columns, **values)

    monkeypatch.setattr(Embedder, "predict", fail_later)
    with pytest.raises(Exception, match="killed"):
        embed(rows, output=tmp_path / "v.parquet")
    assert not (tmp_path / "v.parquet").exists()
    done.clear()
    log = Log()
    embed(rows, output=tmp_path / "v.parquet", log=log)
    assert "resuming with the finished blocks" in log.text
    assert len(done) == 1
    whole, resumed = (tmp_path / name for name in ("whole.parquet", "v.parquet"))
    assert whole.read_bytes() == resumed.read_bytes()
    assert not list(tmp_path.glob(".v.parquet*"))


def test_a_folder_of_sentence_transformers_decides_what_is_left_open(rows, tmp_path):
    model = tmp_path / "model"
    shutil.copytree(MODEL, model)
    recipe = EmbeddingRecipe(pooling="max", normalize=True, max_seq_length=6)
    write_recipe(model, recipe, hidden_size=8)
    manifest = embed(rows, output=tmp_path / "v.npy", model=str(model), max_seq_length=None)
    settings = dataclasses.replace(MEAN, pooling="max", normalize=True, max_seq_length=6)
    wanted = Embedder(MODEL, settings).predict({"text": TEXTS})["embedding"]
    np.testing.assert_allclose(np.load(tmp_path / "v.npy"), wanted, rtol=0, atol=1e-5)
    assert manifest["notes"] == []
    write_recipe(model, recipe.changed(normalize=False), hidden_size=8)
    with pytest.raises(UsageError, match="the content of the inputs has changed"):
        embed(rows, output=tmp_path / "v.npy", model=str(model), max_seq_length=None)
    changed = embed(
        rows,
        output=tmp_path / "w.npy",
        model=str(model),
        normalize=False,
        pooling="mean",
        max_seq_length=5,
    )
    assert changed["embedding"]["normalize"] is False
    assert changed["embedding"]["max_seq_length"] == 5


def test_a_column_of_that_name_is_no_reason_to_advise_a_flag_of_score(tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"text": "a", "embedding": [1]}\n')
    with pytest.raises(UsageError, match="would add one of that name; rename or remove it$"):
        embed(tmp_path / "rows.jsonl", output=tmp_path / "v.npy")


def test_raw_cls_vectors_are_warned_of(rows, tmp_path):
    log = Log()
    manifest = embed(rows, output=tmp_path / "v.npy", pooling="cls", log=log)
    assert manifest["notes"] == [RAW_CLS]
    assert f"warning: {RAW_CLS}" in log.text
    lines = list(describe_artifact(str(tmp_path / "v.npy"), samples=1))
    assert f"note: {RAW_CLS}" in lines
    assert lines[0].endswith("vectors of texts, made by bert-pipeline embed")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"layers": [3]}, r"--layers 3: .* has 2 layers; give 0 to 2, or -1 for the last"),
        ({"layers": [-4]}, r"--layers -4: "),
        ({"max_seq_length": 25}, r"--max-seq-length 25: .* has 24 positions; give at most 24"),
        ({"output": "v.csv"}, r"--output v\.csv: the name must end in \.parquet, \.npy, \.jsonl"),
        ({"text_column": "body"}, "no column 'body'"),
        ({"model": "nowhere"}, "nowhere: no such model directory; check the path"),
    ],
)
def test_what_cannot_be_met_is_one_line(rows, tmp_path, values, message):
    with pytest.raises(UsageError, match=message):
        embed(rows, **{"output": tmp_path / "v.npy", **values})


def test_the_model_of_an_unfinished_run_is_warned_of(rows, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(MODEL, run / "best")
    (run / "config.yaml").write_text("train: {data: d, output: run, size: tiny}\n")
    with pytest.raises(UsageError, match="run: is not finished"):
        embed(rows, output=tmp_path / "a.npy", model=str(run))
    log = Log()
    embed(rows, output=tmp_path / "a.npy", log=log, model=str(run / "best"))
    assert f"{run}/best: its run is unfinished; taking its best model so far" in log.text
