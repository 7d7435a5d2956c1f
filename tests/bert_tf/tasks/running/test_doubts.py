"""Warnings of models that learned nothing, or have not improved for long."""

from types import SimpleNamespace

import pytest
from sklearn.metrics import accuracy_score, f1_score

from bert_tf.data.tables.file_rows import Table
from bert_tf.tasks.base.prediction_rows import TaskResults
from bert_tf.tasks.classification.task import ClassificationTask
from bert_tf.tasks.running.doubts import Comparison, compared, learning_doubts, not_improved


def doubts(loss, chance, eval_loss=None, eval_chance=None):
    evaluated = eval_loss is not None
    result = SimpleNamespace(
        train=SimpleNamespace(chance_loss=chance),
        evaluation=SimpleNamespace(chance_loss=eval_chance) if evaluated else None,
        training=SimpleNamespace(
            train={} if loss is None else {"loss": loss},
            eval={"loss": eval_loss} if evaluated else None,
        ),
    )
    return list(learning_doubts(result))


@pytest.mark.parametrize(
    "losses",
    [
        (0.69, 0.6931),
        (0.75, 0.6931),
        (0.69, 0.6931, 0.695, 0.6931),
        (0.69, 0.6931, 0.4, None),
    ],
)
def test_at_chance(losses):
    (line,) = doubts(*losses)
    assert (
        f"ended at {losses[0]:.4f}, no better than a model that ignores the texts (0.6931)" in line
    )
    assert "learning rate" in line and "labels that do not belong to their rows" in line


@pytest.mark.parametrize(
    "losses",
    [(0.5, 0.6931), (None, 0.6931), (0.7, None), (0.5, 0.6931, 3.0, 0.6931)],
)
def test_below_chance_or_unknown(losses):
    assert not doubts(*losses)


def test_a_short_run_whose_evaluation_shows_that_it_learned():
    assert not doubts(0.69, 0.6931, 0.6, 0.6931)


@pytest.mark.parametrize(
    ("value", "error", "is_better"),
    [(0.55, 0.1, False), (0.65, 0.1, True), (0.5, 0.0, False), (0.51, None, True)],
)
def test_a_model_is_of_use_if_it_is_better_by_more_than_its_error(value, error, is_better):
    found = Comparison(
        metric="accuracy",
        value=value,
        error=error,
        baseline=0.5,
        prediction="always predicting 'billing'",
    )
    assert found.is_better is is_better
    assert found.as_json()["is_better"] is is_better


def test_a_useless_model_is_said_with_what_to_try():
    found = Comparison(
        metric="accuracy", value=0.308, error=0.0906, baseline=0.3, prediction="always 'a'"
    )
    line = found.doubt(rows=26, steps=27)
    assert line.startswith(
        "accuracy 0.308 ± 0.091 (26 rows) is no better than always 'a' (0.300): the model is of no "
        "use. Try more --epochs (27 steps were made, and a new head needs about 300), a "
    )
    assert "--epochs" not in found.doubt(rows=26, steps=300)


@pytest.mark.parametrize(
    ("improved", "epochs", "said"),
    [(4, 18, True), (9, 18, True), (10, 18, False), (1, 3, False), (1, 4, True), (18, 18, False)],
)
def test_a_run_that_has_not_improved_for_half_of_it_says_since_when(improved, epochs, said):
    line = not_improved("accuracy", improved_epoch=improved, epochs=epochs)
    assert (line is not None) is said
    if said:
        assert line.startswith(f"accuracy has not improved since epoch {improved} of {epochs}, nor")


TABLE = {"text_column": "text", "text_pair_column": None, "label_column": "label"}


def table_of(labels):
    columns = {"text": ["x"] * len(labels), "label": labels}
    return Table(source="t", columns=columns, lines=list(range(len(labels))), rejects=[])


def test_the_most_frequent_label_of_training_is_measured_on_the_evaluation_rows():
    task = ClassificationTask(**TABLE, max_seq_length=8, labels=("a", "b", "c"))
    found = task.baseline(table_of([*"abbbc"]), table_of([*"aabbc"]))
    assert found.prediction == "always predicting 'b'"
    assert found.metrics["accuracy"] == accuracy_score([*"aabbc"], ["b"] * 5)
    expected = f1_score([*"aabbc"], ["b"] * 5, average="macro", zero_division=0)
    assert found.metrics["macro_f1"] == pytest.approx(expected)
    result = SimpleNamespace(
        task=task,
        train=SimpleNamespace(source=table_of([*"abbbc"])),
        evaluation=SimpleNamespace(source=table_of([*"aabbc"])),
        results=TaskResults(metrics={"accuracy": 0.4}, predictions=[], errors={"accuracy": 0.2}),
    )
    comparison = compared(result, "accuracy")
    assert (comparison.baseline, comparison.is_better) == (0.4, False)
    assert compared(result, "loss") is None, "which has no baseline"
    assert compared(SimpleNamespace(results=None), "accuracy") is None
