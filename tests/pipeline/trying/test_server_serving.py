"""Small models of random weights tried over HTTP, and the command from its start to Ctrl-C."""

from __future__ import annotations

import io
import os
import signal
import urllib.request
from pathlib import Path
from urllib.parse import urlencode

import pytest
from behavior.forks import Fork
from behavior.pages import check_page
from behavior.small_models import write_model
from behavior.timing import wait_until

from bert_tf import load
from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError
from bert_tf.config.section import build_section
from bert_tf.config.sections import ExportConfig
from bert_tf.export.loading import load_trained_model
from bert_tf.export.registry import FORMATS
from bert_tf.weights.model_directory import read_model_directory
from pipeline.jobs import exporting
from pipeline.outputs.job_spec import RunOptions
from pipeline.trying.model import opened_model

pytestmark = pytest.mark.slow  # exports models, and starts a process

ROOT = Path(__file__).parents[3]
VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "film", "red", "city", "where", "is"]
TASKS = {
    "classification": {
        "labels": ["good", "bad"],
        "columns": {"text": "body", "text_pair": None, "label": "label"},
        "max_seq_length": 16,
    },
    "tagging": {
        "columns": {"text": "text", "tokens": None, "tags": None, "entities": "entities"},
        "scheme": "bio",
        "labels": ["O", "B-x", "I-x", "B-y", "I-y"],
        "max_seq_length": 16,
        "window_stride": 8,
    },
    "qa": {
        "columns": {
            "question": "question",
            "context": "context",
            "answer": "answer",
            "answer_start": "answer_start",
        },
        "max_seq_length": 32,
        "doc_stride": 8,
        "max_query_length": 8,
        "max_answer_length": 4,
        "n_best_size": 5,
        "null_score_diff_threshold": 0.0,
        "may_be_unanswerable": False,
        "sentence_margin": 3.0,
    },
    "fill-mask": {"columns": {"text": "text"}, "max_seq_length": 16, "top_k": 3},
}


def write_run(run: Path, task: str) -> Path:
    """Return a run as `finetune` leaves it, with a small model."""
    settings = {"task": task, **TASKS[task]}
    write_model(run / "best", settings, vocab=VOCAB, seed=5, hidden_size=8, intermediate_size=16)
    return run


def exported_graph(folder: Path, task: str) -> str:
    """Return the model of such a run as an export that is quick to make, a graph of token ids."""
    run = write_run(folder / "run", task)
    trained = load_trained_model(read_model_directory(run / "best"))
    FORMATS["onnx"].load().write(trained, folder / "export", Console(io.StringIO()))
    return str(folder / "export")


def marks_and_page(server, row):
    """Return the marked pieces of a page that answers a form, and the page."""
    with urllib.request.urlopen(server.url, urlencode(row).encode()) as response:
        html = response.read().decode()
    return html.count("<mark "), check_page(html)


def test_labels_of_an_export_and_of_its_run(tmp_path, served):
    run = write_run(tmp_path / "run", "classification")
    console = Console(io.StringIO())
    export = str(tmp_path / "export")
    config = build_section(ExportConfig, {"run": str(run), "output": export})
    exporting.run(config, RunOptions(console=console))
    text = "a red film <is> a city"
    (expected,) = load(export).predict([text], scores="all")
    for path in (export, str(run)):
        with opened_model(path, console) as model, served(model) as server:
            marks, page = marks_and_page(server, {"text": text})
        assert marks == 0
        assert {path, expected["predicted_label"]} <= set(page.text)
        for label, probability in expected["predicted_probabilities"].items():
            assert {label, f"{probability:.4f}"} <= set(page.text)
    assert f"{run / 'best'}: not an export" in console.stream.getvalue()


def test_tags_in_their_text(tmp_path, served):
    export = exported_graph(tmp_path, "tagging")
    text = "a red film, where is <a> city"
    with opened_model(export, Console(io.StringIO())) as model, served(model) as server:
        tried = model.predict({"text": text})
        marks, page = marks_and_page(server, {"text": text})
    entities, tags = tried.predictions.values()
    assert entities
    assert marks == len(entities) + sum(tag["tag"] != "O" for tag in tags)
    assert {entity["text"] for entity in entities} <= set(page.text)


def test_an_answer_in_its_context(tmp_path, served):
    export = exported_graph(tmp_path, "qa")
    row = {"question": "where is a film", "context": "😂 a red film is <where> a city is"}
    with opened_model(export, Console(io.StringIO())) as model, served(model) as server:
        tried = model.predict(row)
        marks, page = marks_and_page(server, row)
    answer, start, end = list(tried.predictions.values())[:3]
    assert answer == row["context"][start:end] != ""
    assert marks == 1
    assert page.text.count(answer) >= 2, "named and marked"


def test_candidates_for_masks(tmp_path, served):
    export = exported_graph(tmp_path, "fill-mask")
    text = "where is a [MASK] [MASK]"
    with opened_model(export, Console(io.StringIO())) as model, served(model) as server:
        tried = model.predict({"text": text})
        _, page = marks_and_page(server, {"text": text})
    assert {"Tokens, 1 of 2", "Tokens, 2 of 2"} <= set(page.text)
    for candidates in tried.predictions["predicted_tokens"]:
        assert len(candidates) == 3
        assert {candidate["token"] for candidate in candidates} <= set(page.text)


def test_a_folder_of_huggingface_with_a_head_is_tried():
    model = str(ROOT / "tests" / "golden" / "models" / "classification")
    with opened_model(model, Console(io.StringIO())) as tried:
        assert len(tried.predict({"text": "a film"}).ranking) == 3


def test_a_pretrained_model_is_refused_with_what_to_do():
    model = str(ROOT / "tests" / "golden" / "fill_mask")
    with (
        pytest.raises(
            UsageError, match="is not fine-tuned for a task; try the output of bert-pipeline fin"
        ),
        opened_model(model, Console(io.StringIO())),
    ):
        pass


# The folder for temporary files is looked up only once in a process, and in forks of it.
TRY = """
import sys, tempfile

from pipeline.cli.main import main

tempfile.tempdir = None
main(["try", sys.argv[1], "--port", "0"])
"""


def test_the_command_serves_until_it_is_interrupted(tmp_path):
    run = write_run(tmp_path / "run", "classification")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    process = Fork(TRY, run, env={"TMPDIR": str(scratch)})
    try:

        def is_served():
            assert process.is_running(), process.communicate()
            return "Ctrl-C ends it\n" in process.said()

        wait_until(is_served, "the address")
        lines = process.said().splitlines(keepends=True)
        url = lines[-1].split(" open ")[1].split()[0]
        assert list(scratch.glob("bert-pipeline-try-*")), "an export"
        with urllib.request.urlopen(url, urlencode({"text": "a film"}).encode()) as response:
            assert {"good", "bad"} <= set(check_page(response.read().decode()).text)
        os.kill(process.pid, signal.SIGINT)
        _, said = process.communicate()
    finally:
        process.kill()
    assert process.returncode == 130
    assert said == "".join([*lines, f"{run}: stopped\n"])
    assert lines[0] == f"{run}: loading the model\n"
    assert not list(scratch.glob("bert-pipeline-try-*")), "the temporary export is gone"
