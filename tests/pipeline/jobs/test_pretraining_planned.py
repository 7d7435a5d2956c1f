"""What `train` says before it trains: the plan of a dry run, and memory that will not suffice."""

import pytest
import tensorflow as tf
from pretraining_runs import losses, train

from bert_tf.base.errors import RunnerFailed
from bert_tf.pretraining import accumulation, plan
from bert_tf.training.devices.machine_memory import Memory
from bert_tf.training.loop import TrainingLoop

OUT_OF_MEMORY = "OOM when allocating tensor with shape[4,12,16]"
FULL_DISK = "events.out.tfevents; No space left on device"


def test_a_dry_run_says_what_a_step_takes_and_writes_nothing(data, model_config, tmp_path):
    found, said = train(data, tmp_path / "run", model_config=model_config, dry_run=True)
    assert found["steps"] == 12
    assert found["memory"]["total"] == pytest.approx(sum(found["memory"]["step"].values()), abs=6)
    assert found["memory"]["available"] > 0
    assert "memory of a step: about 0.91 GB (libraries 0.91" in said
    assert not (tmp_path / "run").exists()


def test_a_step_that_is_not_likely_to_fit_is_told_with_two_keys(
    data, model_config, tmp_path, monkeypatch
):
    little = Memory(total=10**9, available=10**8)
    monkeypatch.setattr(plan, "memory_for_steps", lambda: little)
    keys = {"model_config": model_config, "dry_run": True, "gradient_accumulation_steps": 2}
    _, said = train(data, tmp_path / "run", **keys)
    assert (
        "a step takes about 0.91 GB of memory, and 0.10 GB are available here: raise "
        "gradient_accumulation_steps (now 2), which computes the same batch from fewer rows at a "
        "time, or lower batch_size (now 4)"
    ) in said


@pytest.mark.slow
@pytest.mark.parametrize(("words", "raised"), [(OUT_OF_MEMORY, RunnerFailed), (FULL_DISK, None)])
def test_a_step_that_did_not_fit_is_one_line(
    data, model_config, tmp_path, monkeypatch, words, raised
):
    error = tf.errors.ResourceExhaustedError(None, None, words)

    def run(self):
        raise error

    monkeypatch.setattr(TrainingLoop, "run", run)
    with pytest.raises(raised or type(error)) as caught:
        train(data, tmp_path / "run", model_config=model_config)
    if raised is not None:
        assert "a step did not fit into the memory; it takes about 0.91 GB: raise" in str(
            caught.value
        )


@pytest.mark.slow  # trains, and compiles the step each time
def test_micro_batches_that_are_found_give_the_losses_of_as_many(
    data, model_config, tmp_path, monkeypatch
):
    keys = {"model_config": model_config, "steps": 6}
    given, _ = train(data, tmp_path / "two", gradient_accumulation_steps=2, **keys)

    def peak(model, shape, arithmetic, *, micro_batches, pool_bytes):
        return 10**9 if micro_batches > 1 else None

    monkeypatch.setattr(accumulation, "peak_of_step", peak)
    monkeypatch.setattr(accumulation, "_SURE", 0.0)
    found, said = train(data, tmp_path / "auto", gradient_accumulation_steps="auto", **keys)
    assert "gradient accumulation: 2 micro-batches" in said
    assert losses(tmp_path / "auto") == losses(tmp_path / "two")
    for manifest in (given, found):
        assert manifest["gradient_accumulation_steps"] == 2
    assert found["config"]["gradient_accumulation_steps"] == "auto"
