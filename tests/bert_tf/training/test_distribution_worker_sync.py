"""What workers decide alike; their means are tried for real in test_loop_replicas.py."""

import signal

import pytest

from bert_tf.training import distribution
from bert_tf.training.distribution import WorkerSync
from bert_tf.training.timeline import StepTimer

TERM, INT = signal.SIGTERM, signal.SIGINT


@pytest.fixture
def two_workers(monkeypatch):
    """Gives what each of two workers gets, who were asked to stop by these signals."""
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
    own = [{"accuracy": 1.0, "loss": 2.5}, {"accuracy": 0.9, "loss": float("nan")}, {}]
    own[2] = {"accuracy": 0.8, "loss": 2.4}
    sent = []
    for rank in range(workers):
        worker = WorkerSync(rank)
        worker.mean = lambda numbers: sent.append(numbers) or numbers
        worker.of_chief(own[rank])
    means = [sum(numbers) / workers for numbers in zip(*sent, strict=True)]
    for rank in range(workers):
        worker = WorkerSync(rank)
        worker.mean = lambda numbers: means
        assert worker.of_chief(own[rank]) == own[0]


@pytest.mark.parametrize(
    ("stops", "answer"),
    [((None, None), None), ((TERM, None), TERM), ((None, INT), INT), ((INT, TERM), TERM)],
)
def test_workers_stop_for_the_same_signal(two_workers, stops, answer):
    assert two_workers(*stops) == [answer, answer]
