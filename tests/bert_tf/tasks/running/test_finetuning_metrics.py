"""The metrics that a config may name are those that the tasks measure."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bert_tf.config.sections.finetuning import Recipe
from bert_tf.data.rows.encoded_rows import padded_length
from bert_tf.tasks.classification.metrics import classification_metrics
from bert_tf.tasks.question_answering.metrics import answer_metrics
from bert_tf.tasks.registry import TASKS, finetune_config
from bert_tf.tasks.running import finetuning
from bert_tf.tasks.running.finetuning import too_few_steps
from bert_tf.training import best_model
from bert_tf.training.arithmetic import PrecisionPolicy


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


def doubts(*, rows: int, batch_size: int, epochs: float, steps: int) -> list[str]:
    config: Any = SimpleNamespace(recipe=Recipe(epochs, batch_size, 5e-5))
    inputs: Any = SimpleNamespace(steps_per_epoch=steps / epochs)
    return list(too_few_steps(config, inputs, rows))


def test_a_few_dozen_rows_need_more_epochs():
    assert doubts(rows=40, batch_size=32, epochs=3.0, steps=6) == [
        "40 training rows in batches of 32 make 6 steps in 3 epochs, too few to learn from; give "
        "--epochs 50 for 100 steps, or a smaller --batch-size"
    ]


@pytest.mark.parametrize(
    ("rows", "steps", "epochs"), [(40, 20, 10), (6400, 600, 3), (400, 20, 1.5)]
)
def test_longer_runs_are_left_alone(rows, steps, epochs):
    assert not doubts(rows=rows, batch_size=32, epochs=epochs, steps=steps)


def test_the_epochs_that_it_names_are_enough():
    for rows in range(1, 200, 7):
        (line,) = doubts(rows=rows, batch_size=8, epochs=1.0, steps=1)
        epochs = int(line.split("--epochs ")[1].split()[0])
        steps_per_epoch = -(-rows // 8)
        assert 100 <= epochs * steps_per_epoch < 100 + steps_per_epoch


# How far the lengths of batches are padded.


@pytest.mark.parametrize(("is_accelerator", "multiple"), [(False, 1), (True, 8)])
def test_lengths_are_those_of_the_longest_rows_but_for_accelerators(
    is_accelerator, multiple, monkeypatch
):
    monkeypatch.setattr(finetuning, "has_accelerator", lambda: is_accelerator)
    precision = PrecisionPolicy("mixed_bfloat16", use_xla=False)
    assert finetuning.length_multiple(precision) == multiple


@pytest.mark.parametrize("most", [8, 25, 128, 384, 512])
def test_xla_compiles_at_most_eight_lengths_and_little_padding(most):
    lengths = finetuning.length_multiple(PrecisionPolicy("float32", use_xla=True))
    padded = {
        length: padded_length(np.array([length]), lengths, most) for length in range(1, most + 1)
    }
    assert len(set(padded.values())) <= 8
    for length, result in padded.items():
        assert length <= result <= max(32, 2 * length)
    assert padded_length(np.array([513]), lengths) == 1024
