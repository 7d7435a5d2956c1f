"""The job `summarize` on a tiny random encoder: rows, places, blocks, rejects, resuming."""

import csv
import io
import json
from pathlib import Path

import pytest

from bert_tf.base.console import Console
from bert_tf.base.errors import ConfigError
from bert_tf.config.section import build_section
from bert_tf.config.sections import RunnerConfig, SummarizeConfig
from pipeline.embedding.summarizer import Summarizer
from pipeline.jobs import summarizing
from pipeline.outputs.job_spec import RunOptions
from pipeline.scoring import running

MODEL = Path(__file__).parents[2] / "golden" / "models" / "encoder"
DOCUMENTS = [
    "w1 w2 w3.  W4 w5 w1! W2 w2.\n\nW5 w4 w3. W1 w1 w1.",
    "w3",
    "Łódź w2 😀. W1\u00a0w3. W1\u00a0w3. W5 w5 w5.",
    "w1 " * 40,
]


def config_of(source, output, **values):
    given = {"model": str(MODEL), "input": [str(source)], "output": str(output), **values}
    return build_section(SummarizeConfig, {"max_seq_length": 12, **given})


def summarize(source, output, **values):
    log = io.StringIO()
    config = config_of(source, output, **values)
    manifest = summarizing.run(config, RunnerConfig(), RunOptions(console=Console(log)))
    return manifest, log.getvalue()


@pytest.fixture
def documents(tmp_path):
    path = tmp_path / "documents.jsonl"
    texts = [*DOCUMENTS, " "]
    path.write_text("".join(json.dumps({"n": n, "text": t}) + "\n" for n, t in enumerate(texts)))
    return path


@pytest.mark.slow  # runs pipelines
def test_sentences_are_those_of_the_untouched_text_in_their_order(documents, tmp_path):
    manifest, log = summarize(documents, tmp_path / "s.jsonl", sentences=2)
    rows = [json.loads(line) for line in (tmp_path / "s.jsonl").read_text().splitlines()]
    assert [row["text"] for row in rows] == DOCUMENTS
    for row, length in zip(rows, [2, 1, 2, 1], strict=True):
        chosen = row["summary_sentences"]
        assert len(chosen) == length
        assert [row["text"][each["start"] : each["end"]] for each in chosen] == [
            each["text"] for each in chosen
        ]
        assert [each["start"] for each in chosen] == sorted(each["start"] for each in chosen)
        assert {each["rank"] for each in chosen} == set(range(1, length + 1))
        assert row["summary"] == " ".join(" ".join(each["text"].split()) for each in chosen)
        assert all(-1 <= each["score"] <= 1 for each in chosen)
    assert manifest["counts"] == {
        "rows_in": 5,
        "rows_out": 4,
        "rows_rejected": 1,
        "rejected": {"column 'text' is empty": 1},
        "rows_cut": 1,
        "tokens_lost": 30,
    }
    assert "1 of 4 rows (25.0%) are too long for the model and lose 30 tokens" in log
    again, _ = summarize(documents, tmp_path / "s.jsonl", sentences=2)
    assert again["already_done"] and again["counts"] == manifest["counts"]


@pytest.mark.slow  # runs pipelines
def test_blocks_and_formats_change_nothing(documents, tmp_path):
    summarize(documents, tmp_path / "s.jsonl", ratio=0.5, mmr_lambda=0.4)
    summarize(documents, tmp_path / "one.jsonl", ratio=0.5, mmr_lambda=0.4, block_rows=1)
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "s.jsonl").read_bytes()
    summarize(documents, tmp_path / "s.csv", ratio=0.5, mmr_lambda=0.4)
    rows = [json.loads(line) for line in (tmp_path / "s.jsonl").read_text().splitlines()]
    assert [len(row["summary_sentences"]) for row in rows] == [3, 1, 2, 1]
    with (tmp_path / "s.csv").open(newline="", encoding="utf-8") as stream:
        cells = list(csv.DictReader(stream))
    assert [row["summary"] for row in cells] == [row["summary"] for row in rows]
    assert [json.loads(row["summary_sentences"]) for row in cells] == [
        row["summary_sentences"] for row in rows
    ]


@pytest.mark.slow  # runs pipelines
def test_an_interrupted_job_resumes_with_the_blocks_that_are_left(documents, tmp_path, monkeypatch):
    output = tmp_path / "s.jsonl"

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(running, "join_parts", stop)
        with pytest.raises(KeyboardInterrupt):
            summarize(documents, output)
    assert not output.exists()
    monkeypatch.setattr(Summarizer, "predict", stop)
    manifest, log = summarize(documents, output)
    assert manifest["counts"]["rows_out"] == 4
    assert "resuming with the finished blocks of an earlier run" in log
    assert not list(tmp_path.glob(".*.parts"))


def test_one_length_of_a_summary():
    with pytest.raises(ConfigError, match="ratio: give either ratio or sentences"):
        config_of("a.jsonl", "b.jsonl", sentences=2, ratio=0.3)
