"""Phases of the train job: one schedule on records of several lengths."""

import os
import signal

import numpy as np
import pytest
from behavior.pretraining_runs import BATCH, LENGTH, VOCAB, losses, train, write_data

from bert_tf.base.errors import StoppedEarly, UsageError
from bert_tf.pretraining import evaluation as training
from bert_tf.training.metrics_log import read_metrics
from bert_tf.weights.model_directory import read_model_directory

pytestmark = pytest.mark.slow  # trains, and compiles the step each time


@pytest.fixture(scope="module")
def phases(tmp_path_factory):
    """Eight updates on short rows, four of smaller batches on rows of twice the length."""
    folder = tmp_path_factory.mktemp("phases")
    return [
        {"data": str(write_data(folder / "short")), "steps": 8},
        {
            "data": str(write_data(folder / "long", length=2 * LENGTH)),
            "steps": 4,
            "batch_size": 2,
            "gradient_accumulation_steps": 2,
        },
    ]


PHASE_KEYS = {"steps": 12, "eval_every": 100, "packing": "off", "ema_decay": 0.9}


@pytest.fixture(scope="module")
def whole(phases, model_config, tmp_path_factory):
    run = tmp_path_factory.mktemp("whole") / "run"
    return run, *train(None, run, phases=phases, model_config=model_config, **PHASE_KEYS)


def test_phases_continue_with_one_schedule_on_longer_rows(whole):
    run, manifest, said = whole
    assert manifest["counts"] == {"steps": 12, "examples": 8 * BATCH + 4 * 2}
    assert [phase["steps"] for phase in manifest["phases"]] == [8, 4]
    lines = read_metrics(run / "metrics.jsonl")
    rates = [line["learning_rate"] for line in lines if line["split"] == "train"]
    assert rates[1:] == pytest.approx([1e-4 * (12 - step) / 11 for step in range(1, 12)])
    assert [line["step"] for line in lines if line["split"] == "eval"] == [8, 12]
    assert (manifest["metrics"]["best"]["phase"], manifest["metrics"]["best"]["step"]) == (2, 12)
    assert "phase 2: 8 training records; 4 steps of 2 make 1.00 epochs" in said
    assert "phase 2 of 2 from step 8" in said


def test_a_run_stopped_between_phases_ends_as_one_that_was_not(
    whole, phases, model_config, tmp_path, monkeypatch
):
    """Equal to the last bit, averaged weights included."""
    keep_if_best = training.BestModelKeeper.keep_if_best

    def keep_and_stop(self, found, metrics, notes, **errors):
        keep_if_best(self, found, metrics, notes, **errors)
        if found["step"] == 8:
            os.kill(os.getpid(), signal.SIGTERM)

    keys = {"model_config": model_config, "phases": phases, **PHASE_KEYS}
    monkeypatch.setattr(training.BestModelKeeper, "keep_if_best", keep_and_stop)
    with pytest.raises(StoppedEarly, match="stopped at step 8 of 12"):
        train(None, tmp_path / "parts", **keys)
    train(None, tmp_path / "parts", **keys)
    assert losses(tmp_path / "parts") == losses(whole[0])
    ours, theirs = (read_model_directory(run).tensors for run in (tmp_path / "parts", whole[0]))
    for name in theirs:
        np.testing.assert_array_equal(ours[name], theirs[name])


def test_phases_that_do_not_fit_are_refused(phases, model_config, tmp_path):
    other = write_data(tmp_path / "other", vocab=[*VOCAB[:-1], "another"])
    wrong = [phases[0], {"data": str(other), "steps": 4}]
    with pytest.raises(UsageError, match="made with another vocabulary or casing than those in"):
        train(None, tmp_path / "run", model_config=model_config, phases=wrong)
    odd = [phases[0], {**phases[1], "batch_size": 3}]
    with pytest.raises(UsageError, match="phase 2: --batch-size 3 cannot be divided .* use 4"):
        train(None, tmp_path / "run", model_config=model_config, phases=odd)
