"""The job `search` on a tiny random encoder: texts and vectors in, ranked texts out."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from bert_tf.base.console import Console
from bert_tf.base.errors import ConfigError, UsageError
from bert_tf.config.embedding_recipe import EmbeddingRecipe
from bert_tf.config.section import build_section
from bert_tf.config.sections import EmbedConfig, RunnerConfig, SearchConfig
from bert_tf.embeddings.embedder import Embedder
from bert_tf.embeddings.settings import EmbedderSettings
from bert_tf.weights.sentence_transformers import write_recipe
from pipeline.jobs import embedding, searching
from pipeline.outputs.job_spec import RunOptions
from pipeline.report.artifact import describe_artifact

pytestmark = pytest.mark.slow  # runs pipelines

MODEL = Path(__file__).parents[2] / "golden" / "models" / "encoder"
MEAN = EmbedderSettings(pooling="mean", normalize=False, max_seq_length=24)
CORPUS = ["w1 w2 w3", "w4", "w5 w6", "w1 w2", "w7 w8 w9 w10"]
QUERIES = ["w1 w2", "w7 w8 w9", "w4 w4"]


def run(section, job, log: io.StringIO, **values) -> dict:
    config = build_section(section, {key: value for key, value in values.items() if value})
    return job.run(config, RunnerConfig(), RunOptions(console=Console(log)))


def search(output: Path, queries: Path, corpus: Path, log: io.StringIO | None = None, **values):
    given = {"queries": str(queries), "corpus": str(corpus), "output": str(output), "top_k": 3}
    return run(
        SearchConfig, searching, log or io.StringIO(), **{"model": str(MODEL), **given, **values}
    )


def embed(source: Path, output: Path, **values) -> Path:
    given = {"model": str(MODEL), "input": [str(source)], "output": str(output), **values}
    run(EmbedConfig, embedding, io.StringIO(), **given)
    return output


@pytest.fixture
def queries(tmp_path) -> Path:
    path = tmp_path / "queries.csv"
    path.write_text("\n".join(["text", *QUERIES, ""]))
    return path


@pytest.fixture
def corpus(tmp_path) -> Path:
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in CORPUS))
    return path


@pytest.fixture(scope="module")
def expected() -> np.ndarray:
    """Cosines of queries and corpus."""
    embedder = Embedder(MODEL, MEAN)
    sides = [embedder.predict({"text": texts})["embedding"] for texts in (QUERIES, CORPUS)]
    units = [side / np.linalg.norm(side, axis=1, keepdims=True) for side in sides]
    return units[0] @ units[1].T


def check_rows(rows: list[dict], expected: np.ndarray, *, texts: bool = True) -> None:
    order = np.argsort(-expected, axis=1)[:, :3]
    assert [int(row["corpus_row"]) for row in rows] == order.ravel().tolist()
    assert [int(row["query_row"]) for row in rows] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert [int(row["rank"]) for row in rows] == [1, 2, 3] * 3
    scores = np.take_along_axis(expected, order, axis=1).ravel()
    np.testing.assert_allclose([float(row["score"]) for row in rows], scores, rtol=0, atol=1e-5)
    if texts:
        assert [row["text"] for row in rows] == [CORPUS[row] for row in order.ravel()]
        assert [row["query"] for row in rows] == [QUERIES[n // 3] for n in range(9)]


def test_texts_are_ranked_by_cosine(queries, corpus, tmp_path, expected):
    log = io.StringIO()
    manifest = search(tmp_path / "r.jsonl", queries, corpus, log)
    lines = (tmp_path / "r.jsonl").read_text().splitlines()
    check_rows([json.loads(line) for line in lines], expected)
    assert manifest["index"] == "exact"
    assert manifest["counts"] == {"queries": 3, "corpus": 5, "rows_out": 9, "rejected": {}}
    assert "index: exact, every query is compared with every vector (3 x 5 vectors)" in (
        log.getvalue()
    )
    assert not list(tmp_path.glob(".r.jsonl*"))
    assert ".parts" not in log.getvalue()
    described = list(describe_artifact(str(tmp_path / "r.jsonl"), samples=1))
    assert f"r.jsonl: {lines[0]}" in described

    search(tmp_path / "r.csv", queries, corpus)
    with (tmp_path / "r.csv").open(newline="") as stream:
        check_rows(list(csv.DictReader(stream)), expected)
    assert search(tmp_path / "r.csv", queries, corpus)["already_done"]


def test_vectors_of_embed_give_the_same(queries, corpus, tmp_path, expected):
    parquet = embed(corpus, tmp_path / "corpus.parquet")
    array = embed(queries, tmp_path / "queries.npy")
    search(tmp_path / "r.jsonl", queries, parquet)
    rows = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines()]
    check_rows(rows, expected)
    search(tmp_path / "a.jsonl", array, parquet, model=None)
    rows = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    check_rows(rows, expected, texts=False)
    assert (rows[0]["query"], rows[0]["text"]) == (None, CORPUS[rows[0]["corpus_row"]])


def test_an_approximate_index_states_its_recall(queries, corpus, tmp_path, expected):
    pytest.importorskip("faiss", reason="Faiss is an optional package")
    log = io.StringIO()
    manifest = search(tmp_path / "r.jsonl", queries, corpus, log, exact_pairs=1.0)
    rows = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines()]
    check_rows(rows, expected)  # so few are all found
    assert manifest["index"] == "hnsw"
    assert (manifest["metrics"]["recall"], manifest["metrics"]["recall_queries"]) == (1.0, 3)
    assert "recall@3 against exact search, on 3 queries: 1.0000" in log.getvalue()


def test_vectors_that_an_interrupted_run_made_are_kept(queries, corpus, tmp_path, monkeypatch):
    def fail(*_):
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(searching, "write_results", fail)
        with pytest.raises(OSError, match="disk full"):
            search(tmp_path / "r.jsonl", queries, corpus)
    assert not (tmp_path / "r.jsonl").exists()
    monkeypatch.setattr(Embedder, "__init__", fail)
    manifest = search(tmp_path / "r.jsonl", queries, corpus)
    assert manifest["counts"]["rows_out"] == 9


def test_rejected_rows_of_both_are_listed(queries, corpus, tmp_path):
    queries.write_text('text\n""\nw1\n')
    corpus.write_text('{"text": "w1"}\n{"text": ""}\n')
    log = io.StringIO()
    manifest = search(tmp_path / "r.jsonl", queries, corpus, log)
    assert manifest["counts"]["rejected"] == {"column 'text' is empty": 2}
    rejects = (tmp_path / "r.jsonl.rejects.jsonl").read_text().splitlines()
    assert [json.loads(line)["source"] for line in rejects] == [str(queries), str(corpus)]
    assert "are not counted in query_row and corpus_row" in log.getvalue()


def test_what_cannot_be_compared_is_refused(queries, corpus, tmp_path):
    other = embed(corpus, tmp_path / "max.parquet", pooling="max")
    with pytest.raises(UsageError, match="made with another pooling, so their vectors cannot be"):
        search(tmp_path / "r.jsonl", queries, other)
    with pytest.raises(UsageError, match=r"queries\.csv: has no vectors; give --model MODEL"):
        search(tmp_path / "s.jsonl", queries, other, model=None)
    with pytest.raises(UsageError, match="are already vectors; leave it out"):
        search(tmp_path / "s.jsonl", other, other)
    with pytest.raises(UsageError, match=r"the name must end in \.jsonl or \.csv"):
        search(tmp_path / "s.npy", queries, corpus)
    with pytest.raises(ConfigError, match="expected one of auto, exact, hnsw"):
        search(tmp_path / "s.jsonl", queries, corpus, index="flat")


def test_a_model_made_for_another_similarity_is_said(tmp_path, queries, corpus):
    model = tmp_path / "model"
    shutil.copytree(MODEL, model)
    for recipe, similarity, is_said in (
        (EmbeddingRecipe(max_seq_length=24, similarity="dot"), "cosine", True),
        (EmbeddingRecipe(max_seq_length=24, similarity="dot"), "dot", False),
        (EmbeddingRecipe(max_seq_length=24, similarity="dot", normalize=True), "cosine", False),
    ):
        write_recipe(model, recipe, hidden_size=8)
        log = io.StringIO()
        output = tmp_path / f"{similarity}{recipe.normalize}.jsonl"
        search(output, queries, corpus, log, model=str(model), similarity=similarity)
        said = (
            "trained for the similarity dot, and cosine compares them here; give --similarity dot"
        )
        assert (said in log.getvalue()) == is_said


def test_queries_and_documents_get_the_prompts_of_the_model(tmp_path, queries, corpus):
    model = tmp_path / "model"
    shutil.copytree(MODEL, model)
    recipe = EmbeddingRecipe(max_seq_length=24, prompts={"query": "w3 ", "passage": "w11 w12 "})
    write_recipe(model, recipe, hidden_size=8)
    log = io.StringIO()
    search(tmp_path / "out.jsonl", queries, corpus, log, model=str(model))
    embedder = Embedder(MODEL, MEAN)
    texts = (["w3 " + text for text in QUERIES], ["w11 w12 " + text for text in CORPUS])
    sides = [embedder.predict({"text": side})["embedding"] for side in texts]
    units = [side / np.linalg.norm(side, axis=1, keepdims=True) for side in sides]
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    check_rows(rows, units[0] @ units[1].T)
    assert rows[0]["text"] in CORPUS  # as it was given, without the prompt
    plain = embed(corpus, tmp_path / "plain.parquet", model=str(model))
    search(tmp_path / "mixed.jsonl", queries, plain, log, model=str(model))
    assert "plain.parquet: made with the prompt '', but the model's prompt" in log.getvalue()
    named = embed(corpus, tmp_path / "n.parquet", model=str(model), prompt_name="passage")
    log.truncate(0)
    search(tmp_path / "same.jsonl", queries, named, log, model=str(model))
    assert "made with the prompt" not in log.getvalue()
    with pytest.raises(UsageError, match="--prompt-name foo: .* has no such prompt; it has query"):
        embed(corpus, tmp_path / "x.parquet", model=str(model), prompt_name="foo")
