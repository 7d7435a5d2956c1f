"""Multiple choice from rows to an exported model."""

import csv
import io
import itertools
import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from behavior.tasks import check_exported_predictions, check_task
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, label_ranking_average_precision_score

from bert_tf.base.console import Console
from bert_tf.base.errors import ConfigError
from bert_tf.tasks.base.task_data import ROW_WEIGHTS
from bert_tf.tasks.multiple_choice.options import trial_choices
from bert_tf.tasks.multiple_choice.task import MultipleChoiceTask, choice_values
from bert_tf.tasks.registry import task_of_weights
from bert_tf.weights.model_directory import load_all_weights, read_model_directory
from pipeline.cli.main import main

GOLDEN = Path(__file__).parents[3] / "golden" / "models" / "multiple_choice"
CITIES = {"china": "shanghai", "peru": "lima", "france": "paris"}


def rows_of(sentences):
    """Yield a row for each order of the cities and each country; every other one lacks a city."""
    for text in sentences:
        for cities in itertools.permutations(CITIES.values()):
            for number, (country, city) in enumerate(CITIES.items()):
                choices = list(cities)
                if number % 2:
                    choices.remove(next(other for other in choices if other != city))
                yield {
                    "context": text.format(country),
                    "question": "the capital is",
                    "choices": choices,
                    "label": choices.index(city),
                }


@pytest.fixture
def write(tmp_path):
    def write_rows(name, rows):
        path = tmp_path / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    return write_rows


@pytest.mark.slow
@pytest.mark.parametrize("question", [None, "question"])
def test_it_does_what_every_task_does(small_config, write, tokenizer, question):
    rows = list(rows_of(["it is {}", "very very good {0} . it is the city of {0}"]))[:11]
    path = str(write("train.jsonl", rows))
    config = small_config(
        task="multiple-choice", train=path, question_column=question, max_seq_length=20
    )
    task, source = MultipleChoiceTask.from_training(config, Console(io.StringIO()))
    assert source.counts.min() == 2 and source.counts.max() == 3
    measured = check_task(task, source, tokenizer)
    for row, prediction in zip(rows, measured.predictions, strict=True):
        assert prediction["label"] == row["label"]
        assert prediction["predicted_text"] == row["choices"][prediction["predicted_choice"]]


def test_the_loss_of_a_batch_equals_huggingface():
    """HuggingFace takes the same rows; here a row and a choice of padding are added."""
    directory = read_model_directory(GOLDEN)
    task = task_of_weights(directory)
    assert task.declaration.name == "multiple-choice"
    model = task.build_model(directory.config, policy="float32")
    model.build_weights()
    load_all_weights(model, directory)
    expected = np.load(GOLDEN / "expected.npz")
    batch = {ROW_WEIGHTS: np.array([1, 0], np.float32)}
    batch["right_choice"] = np.append(expected["input/right_choice"], 0).astype(np.int32)
    for name in ("input_word_ids", "input_mask", "input_type_ids"):
        choices = expected[f"input/{name}"][None]
        batch[name] = np.pad(choices, ((0, 1), (0, 1), (0, 0)))
    batch = {name: tf.constant(values) for name, values in batch.items()}
    outputs = task.outputs(model, batch, training=False, dropout_key=None)
    loss = task.loss_parts(outputs, batch).losses["loss"] / task.weights(batch)["loss"]
    np.testing.assert_allclose(loss, expected["loss"], rtol=1e-5)
    np.testing.assert_allclose(
        outputs["logits"][:1, :-1], expected["output/logits"], rtol=0, atol=1e-5
    )


def test_a_sequence_is_the_context_and_the_question_with_a_choice(tokenizer, small_config, write):
    row = {"context": "the film", "question": "it is", "choices": ["good", "not bad"], "label": 1}
    config = small_config(
        task="multiple-choice", train=str(write("t.jsonl", [row])), question_column="question"
    )
    task, source = MultipleChoiceTask.from_training(config, Console(io.StringIO()))
    rows = task.encode(source, tokenizer, training=True).rows
    words = [
        " ".join(tokenizer.vocab[token] for token in rows.ids[begin:end])
        for begin, end in itertools.pairwise(rows.offsets)
    ]
    assert words == [
        "[CLS] the film [SEP] it is good [SEP]",
        "[CLS] the film [SEP] it is not bad [SEP]",
    ]
    assert rows.second_starts.tolist() == [4, 4]
    assert next(iter(task.describe({"training": source}))) == (
        "  training: 2 choices per row; 0.5000 are right by chance"
    )


def test_too_short_sequences_are_refused(small_config):
    with pytest.raises(ConfigError, match="beside \\[CLS\\] and \\[SEP\\]; use at least 5"):
        small_config(task="multiple-choice", train="t.jsonl", max_seq_length=4)


@pytest.mark.parametrize("text", ["", "a", "ab", "abc"])
def test_trial_choices_can_be_scored(text):
    choices = trial_choices("choices", text)
    assert 2 <= len(choices) <= 4
    assert all(choice.strip() for choice in choices)
    assert trial_choices("context", text) == text


@pytest.mark.slow  # fine-tunes, exports and scores
def test_from_training_rows_to_scored_files(write, small_model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("train.jsonl", rows_of(["it is {}", "the country is {}", "{} is good"]))
    held_out = list(rows_of(["was it {}"]))[:8]
    write("dev.jsonl", held_out)
    bad = [{**held_out[0], "choices": ["lima"]}, {**held_out[0], "choices": ["lima", ""]}]
    write("new.jsonl", [*({**row, "label": None} for row in held_out), *bad])
    with (tmp_path / "new.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["context", "asked", "a", "b"])
        for row in held_out:
            other = next(city for city in row["choices"] if city != row["choices"][row["label"]])
            right = row["choices"][row["label"]]
            writer.writerow([row["context"], row["question"], other, right])
        writer.writerow(["it is peru", "the capital is", "lima", ""])

    def run(line):
        with pytest.raises(SystemExit) as exited:
            main(line.split())
        assert exited.value.code == 0

    run(
        f"finetune multiple-choice --train train.jsonl --eval dev.jsonl --init {small_model} "
        "--question-column question --output run --max-seq-length 32 "
        "--epochs 12 --batch-size 8 --learning-rate 3e-3 "
        "--set finetune.precision=float32 --set finetune.checkpoint_minutes=0"
    )
    run("evaluate --model run --data dev.jsonl --output measured")
    run("export --run run --output model")
    run("evaluate --model model --data dev.jsonl --output measured-export")
    check_exported_predictions(tmp_path / "measured", tmp_path / "measured-export")
    run("score --model model --input new.jsonl --output scored.jsonl")
    run(
        "score --model model --input new.csv --output scored.csv --question-column asked "
        "--choices-column a --choices-column b"
    )

    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["metrics"]["best"]["accuracy"] == 1.0
    assert manifest["counts"]["eval"]["rows_out"] == 8
    assert manifest["counts"]["eval"]["sequences"] == sum(len(row["choices"]) for row in held_out)
    for folder in ("measured", "measured-export"):
        metrics = json.loads((tmp_path / folder / "metrics.json").read_text())
        assert (metrics["accuracy"], metrics["mean_reciprocal_rank"]) == (1, 1)
    scored = [json.loads(line) for line in (tmp_path / "scored.jsonl").read_text().splitlines()]
    for row, found in zip(held_out, scored, strict=True):
        assert found["predicted_choice"] == row["label"]
        assert found["predicted_text"] == row["choices"][row["label"]]
        assert 1 / len(row["choices"]) < found["predicted_score"] <= 1
    rejects = (tmp_path / "scored.jsonl.rejects.jsonl").read_text().splitlines()
    assert [(json.loads(line)["line"], json.loads(line)["reason"]) for line in rejects] == [
        (9, "fewer than two choices"),
        (10, "a choice is empty"),
    ]
    with (tmp_path / "scored.csv").open(newline="") as stream:
        cells = list(csv.DictReader(stream))
    assert [row["predicted_choice"] for row in cells] == ["1"] * len(held_out)
    assert all(row["predicted_text"] == row["b"] for row in cells)
    (reject,) = (tmp_path / "scored.csv.rejects.jsonl").read_text().splitlines()
    assert json.loads(reject)["reason"] == "column 'b' is empty"
    card = (tmp_path / "model" / "README.md").read_text()
    assert "\n---\n\n# Multiple choice model\n" in card
    assert "AutoModelForMultipleChoice" in card


# Measures of choices, as scikit-learn defines them.


@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(2, 5))
def test_metrics_equal_scikit_learn(seed, rows, choices):
    generator = np.random.default_rng(seed)
    probabilities = generator.integers(0, 4, (rows, choices)) / 3  # with ties
    right = generator.integers(0, choices, rows)
    chosen = probabilities.argmax(axis=1)
    found = choice_values(right, chosen, probabilities, np.full(rows, choices))
    found = {name: values.mean() for name, values in found.items()}
    assert found["accuracy"] == accuracy_score(right, chosen)
    relevant = np.eye(choices)[right]
    expected = label_ranking_average_precision_score(relevant, probabilities)
    assert found["mean_reciprocal_rank"] == pytest.approx(expected)


def test_what_fills_a_row_up_has_no_rank():
    probabilities = np.array([[0.0, 1.0, 0.0, 0.0]])
    found = choice_values(np.array([0]), np.array([1]), probabilities, np.array([2]))
    assert {name: [*values] for name, values in found.items()} == {
        "accuracy": [False],
        "mean_reciprocal_rank": [0.5],
    }
