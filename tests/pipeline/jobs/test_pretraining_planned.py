"""The output of `train` before it trains: the plan of a dry run, and too little memory."""

import pytest
import tensorflow as tf
from behavior.pretraining_runs import train

from bert_tf.base.errors import RunnerFailed
from bert_tf.config.bert import sized_config
from bert_tf.models.heads import BertPretrainingModel
from bert_tf.pretraining import plan
from bert_tf.pretraining.plan import parameter_count
from bert_tf.pretraining.step_trial import TriedStep
from bert_tf.training.loop import TrainingLoop
from bert_tf.training.memory import Memory

OUT_OF_MEMORY = "OOM when allocating tensor with shape[4,12,16]"
FULL_DISK = "events.out.tfevents; No space left on device"


@pytest.fixture
def trials(monkeypatch):
    """Set the bytes of trials by their rows, and keep the rows and micro-batches of each."""

    def of(bytes_of):
        asked = []

        def try_steps(ways, model, shape, *, micro_batches, seconds):
            asked.append((shape.rows, micro_batches))
            size = bytes_of(shape.rows // micro_batches)
            if size is None:
                return [None]
            return [TriedStep(seconds=1.0, start_seconds=1.0, count=1, peak_bytes=size)]

        monkeypatch.setattr(plan, "try_steps", try_steps)
        return asked

    return of


def test_weights_are_those_of_the_model():
    config = sized_config("tiny", 100)
    model = BertPretrainingModel(config)
    model.build_weights()
    assert parameter_count(config) == model.count_params()


@pytest.mark.slow  # starts a process that trains
def test_a_dry_run_says_what_a_step_takes_and_writes_nothing(data, model_config, tmp_path):
    found, said = train(data, tmp_path / "run", model_config=model_config, dry_run=True)
    assert found["steps"] == 12
    assert 0.4e9 < found["memory"]["total"] < 2e9
    assert found["memory"]["available"] > 0
    assert "memory of a step: " in said and " GB, measured by trials; " in said
    assert not (tmp_path / "run").exists()


def test_a_step_that_is_not_likely_to_fit_is_told_with_two_keys(
    data, model_config, tmp_path, monkeypatch, trials
):
    asked = trials(lambda rows: 910_000_000)
    little = Memory(total=10**9, available=10**8)
    monkeypatch.setattr(plan, "memory_for_steps", lambda: little)
    keys = {"model_config": model_config, "dry_run": True, "gradient_accumulation_steps": 2}
    _, said = train(data, tmp_path / "run", **keys)
    assert (
        "a step takes about 0.91 GB of memory, and 0.10 GB are available here: raise "
        "gradient_accumulation_steps (now 2), which computes the same batch from fewer rows at a "
        "time, or lower batch_size (now 4)"
    ) in said
    assert asked == [(4, 2)]
    trials(lambda rows: None)
    found, said = train(data, tmp_path / "run", **keys)
    assert found["memory"]["total"] is None
    assert (
        "a trial step did not fit into the memory; 0.1 of 1.0 GB are available here: raise" in said
    )


def test_a_large_batch_is_extrapolated_from_few_rows(
    data, model_config, tmp_path, trials, monkeypatch
):
    asked = trials(lambda rows: 10**9 + 10**6 * rows)
    monkeypatch.setattr(plan, "_TRIAL_FLOPS", 1.0)
    keys = {"model_config": model_config, "dry_run": True, "batch_size": 64, "packing": "off"}
    found, _ = train(data, tmp_path / "run", **keys)
    assert asked == [(4, 1), (8, 1)]
    assert found["memory"]["total"] == 10**9 + 64 * 10**6


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
        assert "a step did not fit into the memory: raise" in str(caught.value)


def test_a_dry_run_has_time_and_costs(data, model_config, tmp_path, trials):
    """12 steps of a second each."""
    trials(lambda rows: 10**8)
    keys = {"model_config": model_config, "dry_run": True, "price_per_hour": 600.0, "watts": 300.0}
    found, said = train(data, tmp_path / "run", **keys)
    assert found["seconds"] == 12
    assert found["cost"] == pytest.approx(2.0)
    assert found["kwh"] == pytest.approx(0.001)
    assert (
        "time here: about 0:00:12 for 12 steps, without evaluations (cost 2.00, 0.001 kWh)" in said
    )
    found, said = train(data, tmp_path / "run", model_config=model_config, dry_run=True)
    assert "cost" not in found and "cost" not in said
