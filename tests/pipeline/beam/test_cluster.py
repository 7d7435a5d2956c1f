"""Jobs on runners that are not in this process: their failures and their end."""

import io
import signal
import socket
import threading

import apache_beam as beam
import grpc
import pytest
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.runners.runner import PipelineState

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError, RunnerFailed, UsageError
from pipeline.beam import cluster
from pipeline.beam.cluster import (
    CheckInstallations,
    check_versions,
    drop_errors_of_closed_connections,
    run_on_cluster,
)
from pipeline.beam.workers import last_cause, user_error


class Job:
    """A pipeline whose job ends as told, or runs until it is canceled."""

    def __init__(self, outcome=PipelineState.DONE, *, during=lambda: None):
        self.outcome = outcome
        self.during = during
        self.canceled = False

    def run(self):
        self.during()
        return self

    def wait_until_finish(self):
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome

    def cancel(self):
        self.canceled = True

    @property
    def state(self):
        return PipelineState.DRAINED if self.canceled else PipelineState.RUNNING


def run(job):
    log = io.StringIO()
    try:
        run_on_cluster(job, "flink", Console(log))
    finally:
        job.log = log.getvalue()


JAVA = """Pipeline x failed in state FAILED: java.lang.RuntimeException: Error
\tat org.apache.flink.Job.run(Job.java:1)
Caused by: org.apache.flink.JobExecutionException: Job execution failed.
\tat org.apache.flink.Job.run(Job.java:2)
Caused by: java.lang.OutOfMemoryError: Java heap space
\tat java.base/java.util.Arrays.copyOf(Arrays.java:3)
"""


def test_a_job_that_is_done_is_no_error():
    job = Job()
    run(job)
    assert job.log == ""


def test_a_failure_of_the_runner_is_its_last_cause_in_one_line():
    with pytest.raises(RunnerFailed) as caught:
        run(Job(RuntimeError(JAVA)))
    assert str(caught.value) == (
        "the flink job failed: java.lang.OutOfMemoryError: Java heap space; see the runner's web "
        "UI or log"
    )
    with pytest.raises(RunnerFailed, match="ended as UPDATED"):
        run(Job(PipelineState.UPDATED))
    assert last_cause("") == "no reason given"
    assert last_cause("Pipeline x_1 failed in state FAILED: short of buffers") == "short of buffers"


def test_threads_whose_connection_is_closed_end_in_silence(monkeypatch):
    reported = []
    monkeypatch.setattr(threading, "excepthook", lambda failure: reported.append(failure.exc_type))
    drop_errors_of_closed_connections()
    hook = threading.excepthook
    drop_errors_of_closed_connections()
    assert threading.excepthook is hook, "of many pipelines, each adds nothing"

    def fail(kind):
        raise kind

    for kind in (grpc.RpcError, ZeroDivisionError):
        thread = threading.Thread(target=fail, args=(kind,))
        thread.start()
        thread.join()
    assert reported == [ZeroDivisionError]


@pytest.mark.parametrize(
    "failure",
    [
        "ModuleNotFoundError: No module named 'pipeline.beam.cluster'",
        "AttributeError: Can't get attribute '_New' on <module 'pipeline.beam.files' from 'x.py'>",
    ],
)
def test_a_worker_with_another_version_is_one_line(failure):
    text = f"Traceback (most recent call last):\n  File\n{failure}"
    with pytest.raises(UsageError, match="the workers of the flink job lack bert-pipeline, or"):
        run(Job(RuntimeError(text)))


def test_what_a_worker_raised_is_not_the_runners():
    text = "Traceback (most recent call last):\n  File\nbert_tf.base.errors.InputError: a: b"
    with pytest.raises(InputError, match="^a: b$"):
        run(Job(RuntimeError(text)))
    bug = RuntimeError("Traceback (most recent call last):\n  File\nZeroDivisionError: by zero")
    with pytest.raises(RuntimeError) as caught:
        run(Job(bug))
    assert caught.value is bug


def test_a_stopped_process_cancels_its_job():
    job = Job(KeyboardInterrupt("stopped"))
    with pytest.raises(KeyboardInterrupt):
        run(job)
    assert job.canceled
    assert job.log.splitlines() == ["canceling the flink job", "the flink job is canceled"]


@pytest.fixture
def interruptible():
    """Ctrl-C raises `KeyboardInterrupt`, also where the tests run in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_so_it_does_where_the_signal_came_during_the_submission():
    """The submission takes Ctrl-C for itself, as Beam's job servers do."""

    def during():
        signal.raise_signal(signal.SIGINT)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    job = Job(during=during)
    with pytest.raises(KeyboardInterrupt):
        run(job)
    assert job.canceled
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_job_that_cannot_be_canceled_is_said(monkeypatch):
    job = Job(KeyboardInterrupt("stopped"))

    def cancel():
        raise RuntimeError("connection refused")

    job.cancel = cancel
    with pytest.raises(KeyboardInterrupt):
        run(job)
    assert "could not be canceled (connection refused); it may still be running" in job.log


# Workers with other versions than the submitter's end a job in one line.


def test_the_same_versions_pass():
    with beam.Pipeline(runner=FnApiRunner()) as pipeline:
        _ = pipeline | CheckInstallations()


def test_what_differs_is_one_line(monkeypatch):
    here = {"python": "3.11", "apache-beam": "2.77.0", "tensorflow": "2.21.0"}
    monkeypatch.setattr(cluster, "_compared_versions", lambda: here)
    with pytest.raises(UsageError) as caught:
        check_versions("laptop", {**here, "python": "3.12", "apache-beam": "2.78.0"})
    assert str(caught.value) == (
        f"worker {socket.gethostname()} has python 3.11, apache-beam 2.77.0, but the job was "
        "submitted from laptop with python 3.12, apache-beam 2.78.0; install the same versions on "
        "all workers"
    )


def test_a_job_with_another_worker_fails(monkeypatch):
    pipeline = beam.Pipeline(runner=FnApiRunner())
    with monkeypatch.context() as other:
        other.setattr(cluster, "_compared_versions", lambda: {"python": "3.9"})
        _ = pipeline | CheckInstallations()
    with pytest.raises(Exception, match="3.9") as caught:
        pipeline.run().wait_until_finish()
    assert isinstance(user_error(caught.value), UsageError)
