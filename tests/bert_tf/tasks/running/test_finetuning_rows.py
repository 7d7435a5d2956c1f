"""The rows of a fine-tuning: from two files, or some of one held out."""

import io
import json

import numpy as np
import pytest

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError
from bert_tf.tasks.base.task import accept_any_rows
from bert_tf.tasks.running.finetuning_rows import Truncation, read_rows
from bert_tf.weights.model_directory import read_model_directory

ROWS = [
    (f"{adverb} {word} {thing}", "good" if word in ("good", "fine") else "bad")
    for adverb in ("very", "not", "the", "a", "is")
    for word in ("good", "bad", "fine", "red")
    for thing in ("film", "city", "capital", "paris", "lima")
]


@pytest.fixture
def read(small_config, small_model, tokenizer, tmp_path):
    """Read rows of (text, label) as those of training, and return them by side, and the log."""

    def read(rows, check=accept_any_rows, **values):
        path = tmp_path / "train.csv"
        path.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in rows))
        config = small_config(task="classification", train=str(path), **values)
        log = io.StringIO()
        init = read_model_directory(small_model)
        _, found = read_rows(config, init, tokenizer, Console(log), check)
        return found, log.getvalue()

    return read


def lines(data):
    columns = data.source.columns
    return set(zip(columns["text"], columns["label"], strict=True))


def test_the_same_rows_are_held_out_in_any_order_with_any_seed(read):
    found, log = read(ROWS, eval_fraction=0.2)
    assert found.held_out
    assert lines(found.train) | lines(found.evaluation) == set(ROWS)
    assert not lines(found.train) & lines(found.evaluation)
    rows = len(found.evaluation.source)
    assert f"no --eval: {rows} of 100 rows ({rows}.0%) are held out for evaluation" in log
    again, _ = read(ROWS[::-1], eval_fraction=0.2, seed=7)
    assert lines(again.evaluation) == lines(found.evaluation)
    assert {label for _, label in lines(again.evaluation)} == {"good", "bad"}


def test_weights_of_labels_are_those_of_the_rows_that_are_trained_on(
    small_config, small_model, tokenizer, tmp_path
):
    path = tmp_path / "train.csv"
    path.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in ROWS[:70]))
    for task_name, labels, options in (
        ("classification", "label_weights", {"class_weights": "balanced"}),
        ("multilabel", "label_frequencies", {}),
    ):
        config = small_config(task=task_name, train=str(path), eval_fraction=0.3, **options)
        init = read_model_directory(small_model)
        task, found = read_rows(config, init, tokenizer, Console(io.StringIO()), accept_any_rows)
        assert found.held_out
        # Those of several labels are a JSON list.
        gold = [label.strip('[]"') for _, label in lines(found.train)]
        counts = np.array([gold.count(label) for label in task.labels])
        assert counts.sum() == len(found.train.source)
        expected = counts.sum() / (2 * counts) if labels == "label_weights" else counts / len(gold)
        np.testing.assert_allclose(getattr(task, labels), expected)


def test_scale_of_numbers_is_that_of_the_rows_that_are_trained_on(
    small_config, small_model, tokenizer, tmp_path
):
    path = tmp_path / "train.csv"
    rows = [f"{text},{number}" for number, (text, _) in enumerate(ROWS)]
    path.write_text("\n".join(["text,label", *rows, ""]))
    config = small_config(task="regression", train=str(path), eval_fraction=0.3)
    init = read_model_directory(small_model)
    task, found = read_rows(config, init, tokenizer, Console(io.StringIO()), accept_any_rows)
    trained = [float(label) for label in found.train.source.columns["label"]]
    assert task.target_mean == pytest.approx(np.mean(trained))
    assert task.target_scale == pytest.approx(np.std(trained))
    assert found.train.targets["target"].mean() == pytest.approx(0, abs=1e-6)


def test_none_are_held_out_if_there_is_a_file_or_nobody_wants_it(read, tmp_path):
    found, log = read(ROWS, eval_fraction=0)
    assert (len(found.train.source), found.evaluation, found.held_out) == (100, None, False)
    path = tmp_path / "eval.csv"
    path.write_text("text,label\ngood film,good\n")
    found, again = read(ROWS, eval=str(path))
    assert [len(data.source) for data in (found.train, found.evaluation)] == [100, 1]
    assert not found.held_out
    assert "held out" not in log + again


@pytest.mark.parametrize("count", [20, 40])
def test_of_few_rows_a_fifth_is_held_out(read, count):
    found, _ = read(ROWS[:count])
    assert found.held_out
    assert 5 <= len(found.evaluation.source) <= count // 2
    assert {label for _, label in lines(found.train)} == {"good", "bad"}
    again, _ = read(ROWS[:count][::-1], seed=3)
    assert lines(again.evaluation) == lines(found.evaluation)


def test_too_few_rows_are_not_evaluated_on_unless_that_is_needed(read):
    found, log = read(ROWS[:8])
    assert (len(found.train.source), found.evaluation, found.held_out) == (8, None, False)
    assert "warning:" in log
    assert "8 usable rows of 8 different texts, too few to hold out 5" in log
    with pytest.raises(InputError, match=r"train.csv: 8 usable rows .*; give --eval FILE"):
        read(ROWS[:8], early_stop_evals=2)


def test_rows_that_leak_and_texts_with_two_labels_are_warned_about(read, tmp_path):
    path = tmp_path / "eval.csv"
    path.write_text(
        "text,label\nred sun,bad\n" + "".join(f"{a.upper()} ,{b}\n" for a, b in ROWS[:9])
    )
    _, log = read([*ROWS, (ROWS[1][0], "bad"), (ROWS[0][0], "good")], eval=str(path))
    assert "eval.csv: 9 of 10 rows repeat the texts of a row of" in log
    assert "up to case and spacing, the first at line 3, so metrics are too high" in log
    assert "train.csv: 1 text with several labels in its 102 rows, the first at line 3" in log
    _, log = read(ROWS)
    assert "warning" not in log


def test_a_file_is_checked_as_a_whole(read):
    """Held-out rows do not change the fraction of rejected ones."""
    seen = []
    read([*ROWS, ("", "good")], seen.extend)
    assert [(len(file), len(file.rejects)) for file in seen] == [(100, 1)]


def test_questions_on_a_context_stay_together(small_config, small_model, tokenizer, tmp_path):
    path = tmp_path / "train.jsonl"
    rows = [
        {"question": question, "context": f"the city {color} {word}", "answer": "city"}
        for color in ("red", "blue", "green", "fine", "bad", "good")
        for word in ("film", "paris", "lima", "china", "peru")
        for question in ("what ?", "where ?")
    ]
    path.write_text("".join(json.dumps({**row, "answer_start": 4}) + "\n" for row in rows))
    values = {"max_query_length": 12, "eval_fraction": 0.3}
    config = small_config(task="qa", train=str(path), **values)
    init, console = read_model_directory(small_model), Console(io.StringIO())
    _, found = read_rows(config, init, tokenizer, console, accept_any_rows)
    train, held_out = found.train.source, found.evaluation.source
    assert len(train) + len(held_out) == 60
    assert set(train.contexts) | set(held_out.contexts) == {row["context"] for row in rows}
    assert not set(train.contexts) & set(held_out.contexts)
    for source in (train, held_out):
        assert np.bincount(source.context_index).tolist() == [2] * len(source.contexts)
        for line, index in zip(source.lines, source.context_index, strict=True):
            assert rows[line - 1]["context"] == source.contexts[index]


def test_tokens_of_questions_that_are_cut_are_counted_once(
    small_config, small_model, tokenizer, tmp_path
):
    path = tmp_path / "train.jsonl"
    words = "where is the capital of france in the good film it is in not very very city ?"
    rows = [
        {"question": question, "context": "the city is red " * 30, "answer": "city"}
        for question in ("where ?", words)
    ]
    path.write_text("".join(json.dumps({**row, "answer_start": 4}) + "\n" for row in rows))
    values = {"max_query_length": 12, "max_seq_length": 32, "eval": str(path)}
    config = small_config(task="qa", train=str(path), **values)
    init, log = read_model_directory(small_model), io.StringIO()
    _, found = read_rows(config, init, tokenizer, Console(log), accept_any_rows)
    lost = len(words.split()) - 12
    assert Truncation.of(found.train).rows_cut == 1
    assert Truncation.of(found.train).tokens_lost == lost
    assert f"1 of 2 rows (50.0%) are too long and lose {lost} of" in log.getvalue()


@pytest.mark.parametrize(("long", "warned"), [(0, None), (4, False), (8, True)])
def test_rows_that_are_cut_are_counted_and_many_warned_about(read, long, warned):
    rows = [*ROWS, *((f"{text} {'film ' * 9}", label) for text, label in ROWS[:long])]
    found, log = read(rows, eval_fraction=0, max_seq_length=10)
    truncation = Truncation.of(found.train)
    assert (truncation.rows_cut, truncation.tokens_lost) == (long, long * 4)
    assert truncation.tokens == sum(len(text.split()) + 2 for text, _ in rows)
    assert ("too long" in log) == bool(long)
    assert ("warning" in log) == bool(warned)
