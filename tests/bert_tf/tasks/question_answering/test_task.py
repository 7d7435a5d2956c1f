"""Question answering from SQuAD JSON and tables to answers."""

from __future__ import annotations

import dataclasses
import io
import json
from types import SimpleNamespace

import numpy as np
import pytest
from behavior.tasks import check_task

from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError
from bert_tf.config.section import build_section
from bert_tf.config.sections import EvaluateConfig
from bert_tf.tasks.question_answering.metrics import how_tuned
from bert_tf.tasks.question_answering.task import QuestionAnsweringTask
from bert_tf.tasks.registry import task_from_settings
from bert_tf.tasks.running.evaluation import evaluate
from bert_tf.tasks.running.finetuning import finetune

FILLER = "it was a very , very fine film . " * 3
CONTEXTS = {
    f"{FILLER}Paris is the capital of France.": [("what is the capital of France?", "Paris")],
    f"Lima is the capital of Peru. {FILLER}": [("what is the capital of Peru?", "Lima")],
    f"it is Shanghai, a City in China. {FILLER}": [
        ("where is Shanghai?", "China"),
        ("what city is in China?", "Shanghai"),
    ],
}


def squad_document(unanswerable):
    paragraphs = []
    for context, asked in CONTEXTS.items():
        qas = [
            {
                "id": question,
                "question": question,
                "answers": [{"text": answer, "answer_start": context.index(answer)}],
            }
            for question, answer in asked
        ]
        paragraphs.append({"context": context, "qas": qas})
    if unanswerable:
        paragraphs[0]["qas"].append({"id": "none", "question": "where is it ?", "answers": []})
    return {"data": [{"paragraphs": paragraphs}]}


def encoded(config, tokenizer, console):
    task, source = QuestionAnsweringTask.from_training(config, console)
    return task.encode(source, tokenizer, training=True)


@pytest.mark.slow
@pytest.mark.parametrize("unanswerable", [False, True])
def test_task(small_config, tokenizer, tmp_path, quiet_console, unanswerable):
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(squad_document(unanswerable)))
    config = small_config(
        task="qa", train=str(path), max_seq_length=32, doc_stride=8, max_query_length=12
    )
    check_task(*QuestionAnsweringTask.from_training(config, quiet_console), tokenizer)


@pytest.fixture
def fit(small_config, tokenizer, tmp_path, quiet_console):
    """Fits a task on questions with random scores; returns the task, what it predicts and its
    metrics."""

    def make(document, **values):
        path = tmp_path / "rows.json"
        path.write_text(json.dumps(document))
        limits = {"max_seq_length": 64, "max_query_length": 12}
        config = small_config(task="qa", train=str(path), **limits, **values)
        task, source = QuestionAnsweringTask.from_training(config, quiet_console)
        data = task.encode(source, tokenizer, training=False)
        shape = (len(data.rows), 64)
        generator = np.random.default_rng(0)
        outputs = {
            name: generator.normal(size=shape).astype(np.float32)
            for name in ("start_logits", "end_logits")
        }
        outputs["start_logits"][:, 0] += 3.0  # so that 0 leaves most questions unanswered
        reduced = task.reduce(data, np.arange(len(data.rows)), outputs)
        fitted = task.fitted(data, reduced)
        return fitted, fitted.measure(source, fitted.predict(data, reduced))

    return make


def repeated(document, *, answered, unanswered):
    """Return the document with each question as often as its kind says, by ids of their own."""
    for paragraph in document["data"][0]["paragraphs"]:
        paragraph["qas"] = [
            {**question, "id": f"{question['id']} {number}"}
            for question in paragraph["qas"]
            for number in range(answered if question["answers"] else unanswered)
        ]
    return document


@pytest.mark.parametrize(("answered", "unanswered"), [(3, 9), (1, 30)])
def test_a_null_threshold_is_not_tuned_on_a_few_questions(fit, answered, unanswered):
    document = repeated(squad_document(unanswerable=True), answered=answered, unanswered=unanswered)
    task, results = fit(document)
    assert task.null_score_diff_threshold == results.metrics["null_threshold"] == 0.0
    assert task.tune_null_threshold is False
    assert not any("tuned" in fact for fact in task.card().facts)
    asked = sum(bool(row["answers"]) for row in results.predictions)
    source = SimpleNamespace(answers=[row["answers"] for row in results.predictions])
    assert how_tuned(source).startswith(
        f"0, not tuned: the evaluation rows have {asked} questions with an answer and {unanswered} "
        "without, and tuning needs at least 10 of each"
    )


def test_the_null_threshold_is_tuned_for_f1(fit):
    document = repeated(squad_document(unanswerable=True), answered=3, unanswered=10)
    task, results = fit(document)
    assert "tuned for F1 on evaluation rows" in str(task.card().facts)
    metrics = results.metrics
    assert metrics["f1"] == pytest.approx(metrics["best_f1"])
    assert metrics["f1"] > metrics["f1_untuned"]
    assert task.settings()["null_score_diff_threshold"] == metrics["null_threshold"]
    assert metrics["null_threshold"] > metrics["best_f1_thresh"]
    for row in results.predictions:
        is_null = row["predicted_null_odds"] > metrics["null_threshold"]
        assert (row["predicted_answer"] == "") == is_null
        listed = row["predicted_nbest"]
        assert len(listed) == 21  # n_best_size spans and no answer
        assert sum(entry["start"] is None for entry in listed) == 1
        if not is_null:
            first = next(entry for entry in listed if entry["start"] is not None)
            places = (row["predicted_start"], row["predicted_end"])
            assert (first["start"], first["end"]) == places
            assert first["text"] == row["predicted_answer"]


def test_a_null_threshold_that_is_given_stays(fit):
    task, results = fit(squad_document(unanswerable=True), null_score_diff_threshold=-1.5)
    assert task.null_score_diff_threshold == results.metrics["null_threshold"] == -1.5


def test_without_unanswerable_questions_there_is_no_threshold(fit):
    task, results = fit(squad_document(unanswerable=False))
    assert task.null_score_diff_threshold == 0.0
    assert results.metrics.keys() == {"exact_match", "f1"}


def test_a_task_of_an_earlier_release_keeps_its_rules():
    settings = {
        "task": "qa",
        "columns": {"question": "q", "context": "c", "answer": "a", "answer_start": "s"},
        **dict.fromkeys(("max_seq_length", "doc_stride", "max_query_length"), 64),
        "max_answer_length": 9,
        "n_best_size": 5,
        "null_score_diff_threshold": 0.5,
        "may_be_unanswerable": True,
    }
    task = task_from_settings(settings, "m")
    rules = task.host().rules
    assert (rules.null_threshold, rules.sentence_margin) == (0.5, 0.0)


@pytest.mark.slow  # trains to the end
@pytest.mark.parametrize("unanswerable", [False, True])
def test_a_few_questions_are_learned_by_heart(small_config, tmp_path, quiet_console, unanswerable):
    path = tmp_path / "train.json"
    path.write_text(json.dumps(squad_document(unanswerable)))
    config = small_config(
        task="qa",
        train=str(path),
        eval=str(path),
        epochs=40,
        max_seq_length=32,
        doc_stride=8,
        max_query_length=12,
    )
    result = finetune(config, quiet_console)
    assert len(result.train.rows) > len(result.train.source) >= 4
    assert result.task.settings()["may_be_unanswerable"] is unanswerable
    assert result.best["exact_match"] == result.best["f1"] == 100.0

    output = {"model": str(tmp_path / "run"), "data": str(path), "output": "x"}
    _, _, results = evaluate(build_section(EvaluateConfig, output), quiet_console)
    assert results.metrics["loss"] < 0.2
    assert results.metrics["f1"] == 100.0
    for row in results.predictions:
        context = next(
            c for c, asked in CONTEXTS.items() if row["id"] in dict(asked) or not row["answers"]
        )
        if row["answers"]:
            begin, end = row["predicted_start"], row["predicted_end"]
            assert context[begin:end] == row["predicted_answer"] == row["answers"][0]
        else:
            assert row["predicted_answer"] == ""
            assert row["predicted_start"] is None
        assert 0.5 < row["predicted_score"] <= 1.0

    with (tmp_path / "without_starts.jsonl").open("w") as stream:
        for paragraph in squad_document(unanswerable)["data"][0]["paragraphs"]:
            for entry in paragraph["qas"]:
                answers = [answer["text"] for answer in entry["answers"]]
                row = {"question": entry["question"], "context": paragraph["context"]}
                stream.write(json.dumps({**row, "answer": answers}) + "\n")
    output["data"] = str(tmp_path / "without_starts.jsonl")
    log = io.StringIO()
    every_batch = build_section(EvaluateConfig, {**output, "batch_tokens": 64})
    _, _, measured = evaluate(every_batch, Console(log, log_seconds=0))
    assert "loss" not in measured.metrics
    assert measured.metrics["f1"] == 100.0
    rows = len(results.predictions)
    progress = [line for line in log.getvalue().splitlines() if line.startswith("evaluating")]
    numbers = [int(line.split()[1]) for line in progress]
    assert numbers == sorted(numbers)
    assert len(numbers) > rows, "several windows a question"
    assert progress[-1] == f"evaluating: {rows} of {rows} rows"

    without_loss = dataclasses.replace(config, eval=output["data"], best_metric="loss")
    with pytest.raises(UsageError, match="--best-metric loss: .* so there is no loss; choose one"):
        finetune(without_loss, quiet_console)


@pytest.mark.slow
def test_an_evaluation_shows_its_end(small_config, tmp_path, quiet_console):
    """Though a log shows a line every 15 s."""
    path = tmp_path / "rows.csv"
    path.write_text("text,label\n" + "good film,good\nbad film,bad\n" * 40)
    finetune(
        small_config(task="classification", train=str(path), epochs=0.1, eval_fraction=0),
        quiet_console,
    )
    log = io.StringIO()
    output = {"model": str(tmp_path / "run"), "data": str(path), "output": "x", "batch_tokens": 64}
    evaluate(build_section(EvaluateConfig, output), Console(log, log_seconds=1e9))
    shown = [line for line in log.getvalue().splitlines() if line.startswith("evaluating")]
    assert shown == ["evaluating: 16 of 80 rows", "evaluating: 80 of 80 rows"]


def test_a_table_gives_the_rows_that_squad_json_gives(
    small_config, tokenizer, tmp_path, quiet_console
):
    squad, table = tmp_path / "train.json", tmp_path / "train.jsonl"
    document = squad_document(unanswerable=False)
    squad.write_text(json.dumps(document))
    with table.open("w") as stream:
        for paragraph in document["data"][0]["paragraphs"]:
            for entry in paragraph["qas"]:
                answer = entry["answers"][0]
                row = {
                    "q": entry["question"],
                    "context": paragraph["context"],
                    "answer": answer["text"],
                    "answer_start": answer["answer_start"],
                }
                stream.write(json.dumps(row) + "\n")
    found = []
    for path, columns in ((squad, {}), (table, {"question_column": "q"})):
        config = small_config(
            task="qa", train=str(path), max_seq_length=32, max_query_length=12, **columns
        )
        found.append(encoded(config, tokenizer, quiet_console))
    one, other = found
    assert one.rows.ids.tolist() == other.rows.ids.tolist()
    for name, values in one.targets.items():
        assert values.tolist() == other.targets[name].tolist()


def test_answers_that_hold_no_token_are_rejected(small_config, tokenizer, tmp_path, quiet_console):
    context = "red \u0301 blue"
    rows = [("what ?", "red", 0), ("what ?", "\u0301", 4)]
    path = tmp_path / "train.csv"
    lines = [f"{question},{context},{answer},{start}" for question, answer, start in rows]
    path.write_text("\n".join(["question,context,answer,answer_start", *lines]))
    config = small_config(task="qa", train=str(path), max_seq_length=32, max_query_length=8)
    data = encoded(config, tokenizer, quiet_console)
    assert [str(reject) for reject in data.source.rejects] == [
        f"{path}:3: answer has no tokens (question 'line 3': '\u0301')"
    ]
    assert len(data.source) == 1


def test_models_without_a_task_are_refused():
    with pytest.raises(UsageError, match=r"m: is not fine-tuned .* run bert-pipeline finetune"):
        task_from_settings(None, "m")
    with pytest.raises(UsageError, match="task 'poetry' is not known; known are classification"):
        task_from_settings({"task": "poetry"}, "m")
    with pytest.raises(UsageError, match="task.json is incomplete"):
        task_from_settings({"task": "qa"}, "m")
