"""A pipeline on a runner other than the local one: its end, its cancellation, its failures."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import apache_beam as beam
import grpc
from apache_beam.runners.runner import PipelineResult, PipelineState

from bert_tf.base.console import Console
from bert_tf.base.errors import BertPipelineError, RunnerFailed, UsageError
from pipeline.beam.cluster.flink_rest import FlinkJob
from pipeline.beam.cluster.worker_errors import (
    failure_in,
    last_cause,
    missing_module_in,
    user_error,
)

_SECONDS_TO_CANCEL = 60.0
_PAUSE = 0.5


def run_on_cluster(
    pipeline: beam.Pipeline, runner: str, console: Console, flink: FlinkJob | None = None
) -> None:
    """Runs a pipeline to its end, and cancels it on the cluster if this process is stopped.

    Args:
        pipeline: built.
        runner: its name in `RunnerConfig`, for messages.
        console: shows what a stopped process leaves on the cluster.
        flink: the job by Flink's own interface, if it has one.

    Raises:
        UsageError, InputError: what a worker raised for the user.
        RunnerFailed: the job failed for another reason.
    """
    result: PipelineResult | None = None
    try:
        with _signals_after():  # so that whoever submitted a job can cancel it
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
        raise RunnerFailed(f"the {runner} job ended as {state}; see the runner's pages or log")


def drop_errors_of_closed_connections() -> None:
    """Has threads that read from a runner end in silence when it hangs up.

    Beam leaves such threads behind at the end of a job, done or not; what made a job fail is raised
    in the main thread.
    """
    report = threading.excepthook

    def report_others(failure: threading.ExceptHookArgs) -> None:
        if not issubclass(failure.exc_type, grpc.RpcError):
            report(failure)

    threading.excepthook = report_others


def _failure_of(error: Exception, runner: str) -> BertPipelineError | None:
    """What a runner raised, for the user; None if it is what failed in a worker's Python."""
    failure = user_error(error)
    missing = missing_module_in(str(error))
    if failure is None and missing is not None:
        return UsageError(
            f"the workers of the {runner} job have no bert-pipeline, or another version of it "
            f"({missing}); install the version of this machine on all of them"
        )
    if failure is None and failure_in(str(error)) is None:
        cause = last_cause(str(error))
        return RunnerFailed(f"the {runner} job failed: {cause}; see the runner's pages or log")
    return failure


def _cancel(result: PipelineResult, runner: str, console: Console, flink: FlinkJob | None) -> None:
    """Cancels a job and waits, for a bounded time, until the cluster has ended it."""
    console.info(f"canceling the {runner} job")
    try:
        if flink is not None:
            flink.cancel()
        result.cancel()
        deadline = time.monotonic() + _SECONDS_TO_CANCEL
        while flink.is_running() if flink else not PipelineState.is_terminal(result.state):
            if time.monotonic() > deadline:
                console.warn(f"the {runner} job has not ended yet; look at the runner's pages")
                return
            time.sleep(_PAUSE)
    except Exception as error:
        console.warn(
            f"the {runner} job could not be canceled ({last_cause(str(error))}); it may still "
            "run: look at the runner's pages"
        )
        return
    console.info(f"the {runner} job is canceled")


@contextmanager
def _signals_after() -> Iterator[None]:
    """Handles SIGTERM and Ctrl-C when the block has ended; a second one at once.

    The handlers are those of before, whatever the block has set: Beam's job servers take Ctrl-C for
    themselves, so that it would not end the process.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    waiting: list[int] = []

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def remember(number: int, frame: FrameType | None) -> None:
        waiting.append(number)
        if len(waiting) > 1:
            restore()
            signal.raise_signal(number)

    for number in before:
        signal.signal(number, remember)
    try:
        yield
    finally:
        restore()
    if waiting:
        signal.raise_signal(waiting[0])
