"""A run of the train job that was interrupted, or is to have more steps."""

import os
import signal

import pytest
from behavior.pretraining_runs import losses, train

from bert_tf.base.errors import StoppedEarly, UsageError
from bert_tf.pretraining import evaluation as training

pytestmark = pytest.mark.slow  # trains, and compiles the step each time


@pytest.mark.parametrize("packing", ["off", "on"])
def test_an_interrupted_run_ends_with_the_losses_of_one_that_was_not(
    packing, padded_data, model_config, tmp_path, monkeypatch
):
    """Dropout is on, and the interruption falls inside an epoch."""
    data = padded_data
    keep_if_best = training.BestModelKeeper.keep_if_best

    def keep_and_stop(self, found, metrics, notes, **errors):
        keep_if_best(self, found, metrics, notes, **errors)
        if found["step"] == 3:
            os.kill(os.getpid(), signal.SIGTERM)

    keys = {"model_config": model_config, "eval_every": 3, "packing": packing, "batch_size": 6}
    train(data, tmp_path / "whole", **keys)
    monkeypatch.setattr(training.BestModelKeeper, "keep_if_best", keep_and_stop)
    with pytest.raises(StoppedEarly, match="stopped at step 3 of 12"):
        train(data, tmp_path / "parts", **keys)
    if packing == "off":
        started = {**keys, "model_config": None, "init": str(tmp_path / "parts"), "steps": 1}
        _, said = train(data, tmp_path / "started", **started)
        assert "its run is unfinished, at step 3 of 12; taking its best model so far" in said
    manifest, said = train(data, tmp_path / "parts", resume=True, **keys)
    assert "resumed from" in said
    assert losses(tmp_path / "parts") == losses(tmp_path / "whole")
    assert manifest["counts"]["steps"] == 12


def test_more_steps_extend_a_run(data, model_config, tmp_path, monkeypatch):
    """A finished one; one that is killed on the way from there to more; and no other way."""
    keys = {"model_config": model_config, "eval_every": 3, "checkpoint_every": 3}
    run = tmp_path / "run"
    manifest, _ = train(data, run, steps=6, **keys)
    assert manifest["extended_from"] == []
    first = losses(run)

    def kill(self, found, metrics, notes, **errors):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(training.BestModelKeeper, "keep_if_best", kill)
        with pytest.raises(MemoryError):
            train(data, run, steps=9, **keys)
    assert not (run / "manifest.json").exists(), "it would vouch for what may have changed"
    manifest, said = train(data, run, steps=12, **keys)
    assert f"{run}: found a run with fewer steps; extending it" in said
    assert "extended from 6 to 12 steps: from here on, learning rates are those of a run" in said
    assert (manifest["config"]["steps"], manifest["counts"]["steps"]) == (12, 12)
    assert manifest["extended_from"] == [6]
    assert losses(run)[:6] == first
    assert [loss["step"] for loss in losses(run)] == [*range(1, 13)]
    with pytest.raises(UsageError, match="steps: 12 then, 6 now, and it cannot be shortened"):
        train(data, run, steps=6, **keys)
    with pytest.raises(UsageError, match=r"seed: 1 then, 2 now\); choose another"):
        train(data, run, steps=20, seed=2, **keys)
    with pytest.raises(UsageError, match="max_minutes: 0.0 then, 5.0 now"):
        train(data, run, steps=20, max_minutes=5, **keys)
