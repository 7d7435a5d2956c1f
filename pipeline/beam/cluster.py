"""Pipelines on clusters: submission, cancellation, failures, and the versions of their workers."""

from __future__ import annotations

import atexit
import functools
import json
import platform
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apache_beam as beam
import grpc
from apache_beam.options.pipeline_options import JobServerOptions, PipelineOptions
from apache_beam.runners.runner import PipelineResult, PipelineState

from bert_tf.base.console import Console
from bert_tf.base.errors import BertPipelineError, RunnerFailed, UsageError, handling_signals
from pipeline.beam.workers import (
    NOT_INSTALLED,
    failure_in,
    installed_versions,
    last_cause,
    missing_module_in,
    user_error,
)

_SECONDS_TO_CANCEL = 60.0  # that a job may take to end
_PAUSE = 0.5  # seconds between two questions for its state
_FLINK_MASTER = "--flink_master"
_FLINK_SECONDS = 10.0  # that Flink's API may take to answer
_FLINK_ENDED = ("FINISHED", "CANCELED", "FAILED")
# Packages that results depend on, and that jobs are sent with.
_COMPARED = ("bert-pipeline", "apache-beam", "numpy", "pyarrow", "tensorflow", "tensorflow-text")
# Enough for some to reach every worker that a runner starts with.
_CHECKS = 1024
_JAVA_SCRIPT = """#!{python}
import os, sys
os.setsid()
os.execvp({java!r}, [{java!r}, *sys.argv[1:]])
"""


def run_on_cluster(
    pipeline: beam.Pipeline, runner: str, console: Console, flink: FlinkJob | None = None
) -> None:
    """Run a built pipeline to its end; cancel it on the cluster if this process is stopped.

    Args:
        pipeline: with all transforms.
        runner: its name in messages.
        flink: to cancel it by Flink's own API; None for other runners.

    Raises:
        BertPipelineError: a worker raised it for the user.
        RunnerFailed: the job failed for another reason.
    """
    result: PipelineResult | None = None
    try:
        with _signals_after():  # until `result` is known, by which the job can be canceled
            result = pipeline.run()
        state = result.wait_until_finish()
    except Exception as error:
        failure = _failure_of(error, runner)
        if failure is None:
            raise
        raise failure from error
    except BaseException:
        if result is not None:
            _cancel(result, runner, console, flink)
        raise
    if state != PipelineState.DONE:
        raise RunnerFailed(f"the {runner} job ended as {state}; see the runner's web UI or log")


def drop_errors_of_closed_connections() -> None:
    """Silence errors in threads that Beam leaves behind, of connections and of workers."""
    report = threading.excepthook
    if getattr(report, "__name__", "") == "report_others":  # of an earlier pipeline of this process
        return

    def report_others(failure: threading.ExceptHookArgs) -> None:
        is_of_worker = failure.thread is not None and failure.thread.name == "run_worker"
        if not is_of_worker and not issubclass(failure.exc_type, grpc.RpcError):
            report(failure)

    threading.excepthook = report_others


def _failure_of(error: Exception, runner: str) -> BertPipelineError | None:
    """Return the error for the user inside a runner's error; None for a fault of this project."""
    failure = user_error(error)
    if failure is not None:
        return failure
    missing = missing_module_in(str(error))
    if missing is not None:
        return UsageError(
            f"the workers of the {runner} job lack bert-pipeline, or have another version of it "
            f"({missing}); install the version of this machine on all of them"
        )
    if failure_in(str(error)) is not None:
        return None
    cause = last_cause(str(error))
    return RunnerFailed(f"the {runner} job failed: {cause}; see the runner's web UI or log")


def _cancel(result: PipelineResult, runner: str, console: Console, flink: FlinkJob | None) -> None:
    """Cancel a job and wait, for a bounded time, until the cluster has ended it."""
    console.info(f"canceling the {runner} job")
    try:
        if flink is not None:
            flink.cancel()
        result.cancel()
        deadline = time.monotonic() + _SECONDS_TO_CANCEL
        while flink.running() if flink else not PipelineState.is_terminal(result.state):
            if time.monotonic() > deadline:
                console.warn(f"the {runner} job has not ended yet; see the runner's web UI")
                return
            time.sleep(_PAUSE)
    except Exception as error:
        console.warn(
            f"the {runner} job could not be canceled ({last_cause(str(error))}); it may still be "
            "running: see the runner's web UI"
        )
        return
    console.info(f"the {runner} job is canceled")


@contextmanager
def _signals_after() -> Iterator[None]:
    """Handle SIGTERM and Ctrl-C, which job servers take over, after the block."""
    waiting: list[signal.Signals] = []

    def remember(number: signal.Signals, restore: Callable[[], None]) -> None:
        waiting.append(number)
        if len(waiting) > 1:
            restore()
            signal.raise_signal(number)

    with handling_signals(remember):
        yield
    if waiting:
        signal.raise_signal(waiting[0])


class FlinkJob:
    """All jobs of one name on a Flink cluster, by Flink's REST API.

    Beam's job server acknowledges a cancellation while the cluster continues the job. Methods raise
    OSError if the cluster does not answer.

    Args:
        master: `host:port` or a URL.
        name: of the jobs.
    """

    def __init__(self, master: str, name: str):
        self._url = (master if "://" in master else f"http://{master}").rstrip("/")
        self._name = name

    def cancel(self) -> None:
        for job in self.running():
            self._request(f"/jobs/{job}?mode=cancel", method="PATCH")

    def running(self) -> list[str]:
        jobs = json.loads(self._request("/jobs/overview"))["jobs"]
        return [
            job["jid"]
            for job in jobs
            if job["name"] == self._name and job["state"] not in _FLINK_ENDED
        ]

    def _request(self, path: str, method: str = "GET") -> Any:
        request = urllib.request.Request(self._url + path, method=method)
        with urllib.request.urlopen(request, timeout=_FLINK_SECONDS) as response:
            return response.read()


def flink_job(options: Sequence[str], name: str) -> FlinkJob | None:
    """Return the job on the Flink cluster that options name; None if they name none."""
    master = ""  # the last one counts
    for option in options:
        key, _, value = option.partition("=")
        if key == _FLINK_MASTER:
            master = value
    is_cluster = bool(master) and not master.startswith("[")  # not [local] or [auto]
    return FlinkJob(master, name) if is_cluster else None


class CheckInstallations(beam.PTransform):
    """Fails a job early if workers have other versions, which tokenize or clean differently."""

    def expand(self, pipeline: beam.Pipeline) -> beam.PCollection[None]:
        return (
            pipeline
            | "ListChecks" >> beam.Create([socket.gethostname()] * _CHECKS)
            | "SpreadChecks" >> beam.Reshuffle()
            | "CheckInstallation" >> beam.Map(check_versions, _compared_versions())
        )


def check_versions(host: str, versions: dict[str, str]) -> None:
    """Raise UsageError if this process, a worker, has other versions than the submitter.

    Args:
        host: that submitted the job.
        versions: installed there, by package.
    """
    own_versions = _compared_versions()
    different = [name for name in versions if versions[name] != own_versions.get(name)]
    if different:
        own = ", ".join(f"{name} {own_versions.get(name, NOT_INSTALLED)}" for name in different)
        others = ", ".join(f"{name} {versions[name]}" for name in different)
        raise UsageError(
            f"worker {socket.gethostname()} has {own}, but the job was submitted from {host} with "
            f"{others}; install the same versions on all workers"
        )


@functools.cache
def _compared_versions() -> dict[str, str]:
    versions = installed_versions(_COMPARED)
    # Patch releases of Python pickle and compute alike.
    versions["python"] = ".".join(platform.python_version_tuple()[:2])
    return versions


def let_job_server_outlive_ctrl_c(options: PipelineOptions) -> None:
    """Start Beam's job server in Java, for Flink and Spark, in a session of its own.

    Ctrl-C reaches the whole process group, but the server has to cancel the job first.
    """
    server = options.view_as(JobServerOptions)
    folder = tempfile.mkdtemp(prefix="bert-pipeline-java-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    script = Path(folder) / "java"
    script.write_text(
        _JAVA_SCRIPT.format(python=sys.executable, java=server.job_server_java_launcher),
        encoding="utf-8",
    )
    script.chmod(0o700)
    server.job_server_java_launcher = str(script)
