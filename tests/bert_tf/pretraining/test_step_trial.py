"""The trial of a step: real steps in processes of their own, for runs that are long enough."""

import dataclasses
import io
import math

import pytest
from behavior.forks import run_forked

from bert_tf.base.console import Console
from bert_tf.base.errors import RunnerFailed
from bert_tf.config.bert import sized_config
from bert_tf.config.section import build_section
from bert_tf.config.sections.pretraining import TrainConfig
from bert_tf.pretraining import step_trial as module
from bert_tf.pretraining.phases import PretrainingPhase
from bert_tf.pretraining.step_trial import StepShape, measure_ways, step_trial, try_steps
from bert_tf.training.arithmetic import Arithmetic, PrecisionPolicy

BERT = sized_config("tiny", 100).replace(num_hidden_layers=1)
SHAPE = StepShape(rows=4, length=16, predictions=2)
DIVIDED = Arithmetic(precision=PrecisionPolicy("float32", False), shards=2)
WHOLE = Arithmetic(precision=PrecisionPolicy("float32", True), shards=1)


@dataclasses.dataclass(frozen=True)
class Data:
    max_seq_length: int
    max_predictions_per_seq: int = 20


def phase(steps, *, length=128, batch_size=32, accumulation_steps=1):
    return PretrainingPhase(
        name="",
        data=Data(length),
        steps=steps,
        batch_size=batch_size,
        accumulation_steps=accumulation_steps,
        learning_rate=None,
        warmup_steps=0,
    )


def train_config(**values):
    return build_section(TrainConfig, {"data": "-", "output": "-", "size": "base", **values})


@pytest.fixture
def in_forks(monkeypatch):
    """Trials are forks of the tests, where nothing is imported again."""

    def run(command, *, env, **_):
        return run_forked(f"from {command[2]} import _main\n_main()", command[3], env=env)

    monkeypatch.setattr(module.subprocess, "run", run)


@pytest.mark.slow  # compiles steps
def test_every_way_has_its_seconds_and_a_failure_is_told(in_forks):
    said = io.StringIO()
    console = Console(said)
    broken = Arithmetic(precision=PrecisionPolicy("no policy", False), shards=1)
    seconds = measure_ways([DIVIDED, WHOLE], BERT, SHAPE, console)
    assert all(0 < each < math.inf for each in seconds)
    assert said.getvalue() == ""
    assert measure_ways([broken], BERT, SHAPE, console) == [math.inf]
    assert "a trial of the training step failed (1: ValueError: " in said.getvalue()


def test_a_trial_that_does_not_end_is_ended(monkeypatch):
    monkeypatch.setattr(module, "_TIMEOUT_SECONDS", 0.01)
    said = io.StringIO()
    assert measure_ways([WHOLE], BERT, SHAPE, Console(said)) == [math.inf]
    assert "failed (it did not end within 0.01 seconds)" in said.getvalue()
    with pytest.raises(RunnerFailed, match=r"failed \(it did not end within 0\.01 seconds\)"):
        try_steps([WHOLE], BERT, SHAPE)


def test_a_trial_is_for_long_runs_and_of_the_most_work(monkeypatch):
    console = Console(io.StringIO())
    tried = []
    monkeypatch.setattr(module, "measure_ways", lambda *given: tried.append(given) or [])
    base = sized_config("base", 30522)
    assert step_trial(train_config(), base, [phase(10)], console) is None
    assert step_trial(train_config(max_minutes=5.0), base, [phase(100_000)], console) is None
    phases = [phase(90_000), phase(60_000, length=512, batch_size=16, accumulation_steps=4)]
    trial = step_trial(train_config(), base, phases, console)
    assert trial([DIVIDED]) == []
    [(ways, shape_of_model, shape, _)] = tried
    assert ways == [DIVIDED]
    assert shape_of_model == base.replace(num_hidden_layers=3)
    assert shape == StepShape(rows=4, length=512, predictions=20)


PLAIN = Arithmetic(precision=PrecisionPolicy("float32", False), shards=1)
LARGE = StepShape(rows=64, length=128, predictions=2)
LARGE_MODEL = sized_config("tiny", 1000).replace(num_hidden_layers=1)


@pytest.mark.slow  # starts a process that loads TensorFlow
def test_a_trial_says_its_peak(monkeypatch):
    """The trial has a process of its own, whose peak is not that of the tests."""
    monkeypatch.setenv("TF_CPU_ALLOCATOR_USE_BFC", "true")
    monkeypatch.setenv("TF_CPU_BFC_MEM_LIMIT_IN_MB", "1024")
    (tried,) = try_steps([PLAIN], LARGE_MODEL, LARGE, micro_batches=2, seconds=0.0)
    assert 0.5e9 < tried.peak_bytes < 2e9
    assert tried.count == 1


@pytest.mark.slow  # traces a step
def test_a_trial_says_none_where_the_pool_is_too_small(monkeypatch, in_forks):
    monkeypatch.setenv("TF_CPU_ALLOCATOR_USE_BFC", "true")
    monkeypatch.setenv("TF_CPU_BFC_MEM_LIMIT_IN_MB", "16")
    assert try_steps([PLAIN], LARGE_MODEL, LARGE) == [None]


def test_a_part_of_a_batch_has_four_rows_or_as_many_as_the_operations_allow():
    base = sized_config("base", 30522)
    shape = StepShape(rows=64, length=128, predictions=20)
    assert shape.part(base, 1.0).rows == 4
    assert shape.part(base, 1e20) == shape
    part = shape.part(base, 1e12)
    assert 4 < part.rows < 64 and part.rows % 4 == 0
    assert StepShape(rows=2, length=128, predictions=20).part(base, 1.0).rows == 2
