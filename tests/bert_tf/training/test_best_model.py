"""Which models are kept in `best/`: the rank of metrics, phases, runs without evaluation."""

import math

import pytest

from bert_tf.training import best_model
from bert_tf.training.best_model import BestModel, BestModelKeeper, EarlyStop


def kept_steps(monkeypatch, path, metric, evaluations, *, notes=None, writes=True):
    """The steps whose models are written when these (found, metrics) come up one by one."""
    written, notes = [], {} if notes is None else notes

    def write(folder, model, *, vocab, lowercase, task, restore):
        assert (folder, model, vocab, lowercase, task, restore) == (
            path,
            "model",
            ["[PAD]"],
            True,
            None,
            None,
        )
        written.append(step)

    monkeypatch.setattr(best_model, "write_model_directory", write)
    keeper = BestModelKeeper(
        path, "model", metric=metric, vocab=["[PAD]"], lowercase=True, writes=writes
    )
    for found, metrics in evaluations:
        step = found["step"]
        keeper.keep_if_best(found, metrics, notes)
    return written, notes.get("best")


def lines(metric, values):
    return [({"step": step}, {metric: value}) for step, value in enumerate(values, 1)]


@pytest.mark.parametrize(
    ("metric", "values", "kept"),
    [
        ("mlm_loss", [3.0, 4.0, 3.0, 2.0], [1, 4]),
        ("loss", [3.0, 4.0, 3.0, 2.0], [1, 4]),
        ("accuracy", [0.3, 0.4, 0.4, 0.2], [1, 2]),
        ("accuracy", [math.nan, 0.4, math.nan, 0.5], [1, 2, 4]),
        ("loss", [math.nan, 3.0, math.nan, 2.0], [1, 2, 4]),
    ],
)
def test_the_lowest_loss_or_the_highest_of_anything_else(
    metric, values, kept, monkeypatch, tmp_path
):
    written, best = kept_steps(monkeypatch, tmp_path, metric, lines(metric, values))
    assert written == kept
    assert best == {"step": kept[-1], metric: values[kept[-1] - 1]}


def test_the_loss_decides_among_equals(monkeypatch, tmp_path):
    evaluations = [
        ({"step": step}, {"accuracy": 0.5, "loss": loss})
        for step, loss in enumerate([2.0, 3.0, 1.0], 1)
    ]
    assert kept_steps(monkeypatch, tmp_path, "accuracy", evaluations)[0] == [1, 3]


@pytest.mark.parametrize(
    ("metric", "value", "end"), [("accuracy", 1.0, 3), ("f1", 100.0, 3), ("accuracy", 0.5, None)]
)
def test_a_perfect_metric_whose_loss_falls_is_no_improvement(
    metric, value, end, monkeypatch, tmp_path
):
    notes, stop, ends = {}, EarlyStop(2), None
    for step in range(1, 9):
        evaluation = ({"step": step}, {metric: value, "loss": 1 / step})
        written, best = kept_steps(monkeypatch, tmp_path, metric, [evaluation], notes=notes)
        assert (written, best["step"]) == ([step], step), "it is kept nevertheless"
        stop.count(step, notes, evaluation[1])
        if ends is None and stop.reason(notes):
            ends = step
            assert stop.reason(notes) == "no better evaluation in 2 since step 1"
    assert ends == end


def test_every_phase_starts_anew(monkeypatch, tmp_path):
    evaluations = [
        ({"step": 1, "phase": 1}, {"mlm_loss": 1.0}),
        ({"step": 2, "phase": 2}, {"mlm_loss": 5.0}),
        ({"step": 3, "phase": 2}, {"mlm_loss": 6.0}),
        ({"step": 4, "phase": 2}, {"mlm_loss": 4.0}),
    ]
    assert kept_steps(monkeypatch, tmp_path, "mlm_loss", evaluations)[0] == [1, 2, 4]


def test_without_evaluation_the_newest_is_kept_until_there_is_one(monkeypatch, tmp_path):
    evaluations = [({"step": 1}, {}), ({"step": 2}, {}), *lines("accuracy", [0, 0, 0.1, 0])[2:]]
    written, best = kept_steps(monkeypatch, tmp_path, "accuracy", evaluations)
    assert written == [1, 2, 3]
    assert best == {"step": 3, "accuracy": 0.1}


def test_a_resumed_run_compares_with_what_its_checkpoint_notes(monkeypatch, tmp_path):
    notes = {"best": {"step": 1, "accuracy": 0.5}}
    evaluations = lines("accuracy", [0, 0.4, 0.6])[1:]
    assert kept_steps(monkeypatch, tmp_path, "accuracy", evaluations, notes=notes)[0] == [3]


@pytest.mark.parametrize("writes", [True, False])
def test_a_resumed_run_without_its_best_model_keeps_the_next_one(writes, monkeypatch, tmp_path):
    notes = {"best": {"step": 1, "accuracy": 0.5}}
    written, best = kept_steps(
        *(monkeypatch, tmp_path / "best", "accuracy", lines("accuracy", [0, 0.4, 0.3])[1:]),
        notes=notes,
        writes=writes,
    )
    assert (written, best) == ([2] if writes else [], {"step": 2, "accuracy": 0.4})


def test_workers_that_only_train_along_note_the_best_but_write_nothing(monkeypatch, tmp_path):
    evaluations = lines("accuracy", [0.1, 0.2])
    written, best = kept_steps(monkeypatch, tmp_path, "accuracy", evaluations, writes=False)
    assert (written, best["step"]) == ([], 2)


@pytest.mark.parametrize(
    ("best", "metric", "words"),
    [
        (
            {"step": 6, "accuracy": 0.5},
            "accuracy",
            "the model of epoch 1.5 (step 6), with the highest accuracy: 0.5000",
        ),
        (
            {"step": 6, "phase": 2, "mlm_loss": 2.5},
            "mlm_loss",
            "the model of epoch 1.5 (step 6) of phase 2, with the lowest mlm_loss: 2.5000",
        ),
        (
            {"step": 6},
            "loss",
            "the model of the last epoch (step 6); there was no evaluation to choose by",
        ),
    ],
)
def test_words_on_the_best_model(best, metric, words):
    assert str(BestModel.of_notes(best, metric=metric, steps_per_epoch=4)) == words
