"""The metrics that a config may name are those that the tasks measure."""

import numpy as np
import pytest

from bert_tf.tasks.classification.metrics import classification_metrics
from bert_tf.tasks.question_answering.metrics import answer_metrics
from bert_tf.tasks.registry import TASKS, finetune_config
from bert_tf.training import best_model


def test_every_task_has_metrics():
    assert all(task.options.metrics for task in TASKS.values())


def test_all_of_classification_are_named():
    measured = classification_metrics(np.array([0, 1]), np.array([0, 0]))
    assert set(TASKS["classification"].options.metrics) == measured.keys()


@pytest.mark.parametrize("version_2", [False, True])
def test_those_of_answers_that_are_always_there_are_named(version_2):
    measured = answer_metrics(["a"], [["a"]], version_2=version_2)
    assert set(TASKS["qa"].options.metrics) == {
        name for name in measured if "answerable" not in name
    }


@pytest.mark.parametrize(
    ("metric", "kept"), [(None, [1, 2, 3]), ("loss", [1, 4]), ("macro_f1", [1, 2])]
)
def test_the_metric_decides_and_the_loss_among_equals(tmp_path, monkeypatch, metric, kept):
    lines = [
        {"loss": 1.0, "accuracy": 0.5, "macro_f1": 0.1},
        {"loss": 2.0, "accuracy": 0.9, "macro_f1": 0.8},
        {"loss": 1.5, "accuracy": 0.9, "macro_f1": 0.7},
        {"loss": 0.5, "accuracy": 0.8, "macro_f1": 0.6},
    ]
    keys = {"task": "classification", "train": "t", "eval": "e", "init": "i", "output": "o"}
    config = finetune_config({**keys, "best_metric": metric})
    keeper = best_model.BestModelKeeper(
        tmp_path / "best",
        None,
        metric=config.selection_metric,
        vocab=[],
        lowercase=True,
        writes=True,
    )
    written, notes = [], {}
    monkeypatch.setattr(
        best_model, "write_model_directory", lambda *_, **__: written.append(len(written))
    )
    steps = []
    for step, line in enumerate(lines, 1):
        keeper.keep_if_best({"step": step}, line, notes)
        if len(written) > len(steps):
            assert notes["best"] == {"step": step, **line}
            steps.append(step)
    assert steps == kept
