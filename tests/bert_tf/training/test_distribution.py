"""Clusters by TF_CONFIG, and the requests to TensorFlow for TPUs, of which there are none here."""

import signal

import pytest
import tensorflow as tf
from behavior.packed_task import make_inputs, make_packed_loop
from behavior.regression_task import Numbers, make_loop

from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError
from bert_tf.training import distribution
from bert_tf.training.distribution import (
    WorkerSync,
    is_chief,
    is_chief_process,
    make_strategy,
    worker_count,
)
from bert_tf.training.timeline import StepTimer


@pytest.fixture
def asked(monkeypatch):
    """Call that reach TensorFlow; a resolver that knows one TPU of eight cores."""
    calls = []

    class Resolver:
        def __init__(self, tpu):
            calls.append(("resolve", tpu))
            if tpu == "nowhere":
                raise ValueError("Could not lookup TPU metadata")

    class Strategy:
        num_replicas_in_sync = 8

        def __init__(self, resolver):
            calls.append(("strategy", type(resolver)))

    monkeypatch.setattr(tf.distribute.cluster_resolver, "TPUClusterResolver", Resolver)
    monkeypatch.setattr(tf.distribute, "TPUStrategy", Strategy)
    monkeypatch.setattr(
        tf.config, "experimental_connect_to_cluster", lambda _: calls.append(("connect",))
    )
    monkeypatch.setattr(
        tf.tpu.experimental, "initialize_tpu_system", lambda _: calls.append(("initialize",))
    )
    return calls


@pytest.mark.parametrize(
    ("address", "resolved"), [(None, ""), ("grpc://10.0.0.2:8470",) * 2, ("my-tpu",) * 2]
)
def test_a_tpu_is_resolved_connected_and_initialized_in_order(asked, console, address, resolved):
    strategy = make_strategy("tpu", address, console)
    assert [call[0] for call in asked] == ["resolve", "connect", "initialize", "strategy"]
    assert asked[0] == ("resolve", resolved)
    assert "strategy tpu: 8 replicas" in console.text
    assert is_chief(strategy)
    assert worker_count(strategy) == 1


def test_a_tpu_that_is_not_there_is_a_usage_error(asked, console):
    with pytest.raises(UsageError, match="no TPU at nowhere .*; give its name or grpc://ADDRESS"):
        make_strategy("tpu", "nowhere", console)


def assert_xla_compiles_the_whole_step(loops, batches):
    """TPUs compile it so: two micro-batches, clipping, optimizer, averages, metrics."""
    plain, compiled = (loop.training_step._replica_step for loop in loops)
    compiled = tf.function(compiled, autograph=False, jit_compile=True)
    plain = tf.function(plain, autograph=False)
    for number, batch in enumerate(batches):
        assert all(tensor.shape.is_fully_defined() for tensor in batch.values())
        arguments = (batch, tf.constant(number), tf.constant(0.01), 2)
        expected = plain(*arguments).numpy()
        assert compiled(*arguments).numpy() == pytest.approx(expected, rel=1e-4)
    for name, variable in loops[0].variables.items():
        # An update is 0.01. Where gradients are rounding errors alone, as those of keys' biases,
        # it is the ratio of these to Adam's epsilon, which differs between processors.
        assert loops[1].variables[name].numpy() == pytest.approx(
            variable.numpy(), rel=1e-3, abs=1e-3
        ), name


@pytest.mark.slow  # XLA compiles a training step
def test_the_whole_step_compiles_under_xla_with_lamb():
    """The step of AdamW is that of BERT."""
    loops = [make_loop(optimizer="lamb", ema_decay=0.9, accumulation_steps=2) for _ in range(2)]
    assert_xla_compiles_the_whole_step(loops, Numbers().batches(0).take(3))


@pytest.mark.slow  # XLA compiles a training step of BERT
def test_berts_whole_step_compiles_under_xla_dropout_and_packing_included(tmp_path):
    arguments = {"dropout": 0.1, "ema_decay": 0.9, "accumulation_steps": 2}
    loops = [make_packed_loop(tmp_path, **arguments) for _ in range(2)]
    batches = make_inputs(tmp_path, "on", row_multiple=2).batches(0).take(2)
    assert_xla_compiles_the_whole_step(loops, batches)


def test_workers_need_their_names(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    with pytest.raises(UsageError, match="TF_CONFIG is not set; set it on every worker"):
        make_strategy("multi-worker", None, Console())
    monkeypatch.setenv("TF_CONFIG", "{")
    with pytest.raises(UsageError, match="TF_CONFIG is not valid JSON"):
        is_chief_process("multi-worker")


@pytest.mark.parametrize(
    ("cluster", "task", "chief"),
    [
        ('{"worker": ["a:1", "b:1"]}', '{"type": "worker", "index": 0}', True),
        ('{"worker": ["a:1", "b:1"]}', '{"type": "worker", "index": 1}', False),
        ('{"chief": ["a:1"], "worker": ["b:1"]}', '{"type": "chief", "index": 0}', True),
        ('{"chief": ["a:1"], "worker": ["b:1"]}', '{"type": "worker", "index": 0}', False),
    ],
)
def test_one_worker_is_the_chief(monkeypatch, cluster, task, chief):
    monkeypatch.setenv("TF_CONFIG", f'{{"cluster": {cluster}, "task": {task}}}')
    assert is_chief_process("multi-worker") == chief
    assert is_chief_process("default")


# What workers decide alike; their means are tried for real in test_loop_replicas.py.
TERM, INT = signal.SIGTERM, signal.SIGINT


@pytest.fixture
def two_workers(monkeypatch):
    """Return a function: the decisions of two workers that got these signals to stop."""
    monkeypatch.setattr(distribution, "worker_count", lambda strategy: 2)

    def agreed(*stops):
        sent = []
        for stop in stops:
            worker = WorkerSync(None)
            worker.mean = lambda numbers: sent.append(numbers) or numbers
            worker.clock(StepTimer(0.0, 1), step=3, stop=stop)
        means = [sum(numbers) / 2 for numbers in zip(*sent, strict=True)]
        answers = []
        for stop in stops:
            worker = WorkerSync(None)
            worker.mean = lambda numbers: means
            answers.append(worker.clock(StepTimer(0.0, 1), step=3, stop=stop)[1])
        return answers

    return agreed


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_workers_get_the_numbers_of_the_chief(monkeypatch, workers):
    monkeypatch.setattr(distribution, "worker_count", lambda strategy: workers)
    monkeypatch.setattr(distribution, "is_chief", lambda strategy: strategy == 0)
    own = [
        ({"accuracy": 1.0, "loss": 2.5}, {"accuracy": 0.01}),
        ({"accuracy": 0.9, "loss": float("nan")}, {"accuracy": 0.02}),
        ({"accuracy": 0.8, "loss": 2.4}, {"accuracy": 0.03}),
    ]
    calls = []
    for rank in range(workers):
        worker = WorkerSync(rank)
        worker.first = lambda numbers: calls.append(numbers) or [1.0, 2.5, 0.01]
        assert worker.of_chief(*own[rank]) == own[0]
        assert worker.of_chief({}, {}) == ({}, {})
    expected = [[*metrics.values(), *errors.values()] for metrics, errors in own]
    assert str(calls) == str(expected[:workers] if workers > 1 else []), "one message, none empty"


@pytest.mark.parametrize(
    ("stops", "answer"),
    [((None, None), None), ((TERM, None), TERM), ((None, INT), INT), ((INT, TERM), TERM)],
)
def test_workers_stop_for_the_same_signal(two_workers, stops, answer):
    assert two_workers(*stops) == [answer, answer]
