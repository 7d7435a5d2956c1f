"""The failures of worker processes, as they report them and as they are understood."""

import queue
import traceback
from types import SimpleNamespace

import apache_beam as beam
import pytest
from apache_beam.portability.api import beam_fn_api_pb2
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.runners.worker import sdk_worker

from bert_tf.base.errors import InputError, StoppedEarly, UsageError
from pipeline.beam.worker_process import leave_user_errors_to_the_submitter
from pipeline.beam.workers import failure_in, system_error, user_error


def test_an_error_meant_for_the_user_is_found_in_text():
    text = (
        "Traceback ...\nbert_tf.config.errors.InputError: a: b\n\nDuring handling ...\n"
        "bert_tf.base.errors.InputError: a: b [while running 'x']"
    )
    found = user_error(RuntimeError(text))
    assert isinstance(found, InputError)
    assert str(found) == "a: b"
    assert user_error(RuntimeError("something else")) is None
    assert user_error(RuntimeError("bert_tf.base.errors.Path: x")) is None


def test_a_job_that_was_stopped_in_a_worker_is_one_that_was_stopped():
    found = user_error(RuntimeError("bert_tf.base.errors.StoppedEarly: saved in x"))
    assert isinstance(found, StoppedEarly)
    assert (str(found), found.exit_code) == ("saved in x", 143)


def traceback_of(error):
    """Return Beam's text: it adds the step to the message or, if it cannot, wraps the error."""

    def fail(number):
        raise error

    try:
        with beam.Pipeline(runner=FnApiRunner()) as pipeline:
            _ = pipeline | beam.Create([0]) | beam.Map(fail)
    except Exception:
        return traceback.format_exc()


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (
            OSError(28, "No space left on device", "/data/x"),
            ("OSError", "[Errno 28] No space left on device: '/data/x'"),
        ),
        (ValueError("broken\nin two lines"), ("ValueError", "broken")),
        (ValueError(), ("ValueError", "")),
        (RuntimeError("a: b"), ("RuntimeError", "a: b")),
        (UsageError("a: b"), ("bert_tf.base.errors.UsageError", "a: b")),
    ],
)
def test_the_failure_at_the_end_of_a_traceback_is_found(error, failure):
    assert failure_in(traceback_of(error)) == failure


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left", "/it's/x"), PermissionError(13, "No"), OSError("odd")]
)
def test_an_error_of_the_system_is_made_again_of_its_text(error):
    again = system_error(*failure_in(traceback_of(error)))
    assert (again.errno, again.filename) == (error.errno, error.filename)
    assert str(again) == str(error)
    assert system_error("ValueError", "broken") is None


def test_a_message_is_no_traceback():
    assert failure_in("ValueError: broken") is None
    assert failure_in("") is None


@pytest.mark.parametrize(
    ("error", "is_printed"),
    [
        (InputError("a.gz: cut short"), False),
        (OSError(28, "No space left on device", "a.gz"), False),
        (ValueError("odd"), True),
    ],
)
def test_a_worker_prints_only_what_the_submitter_does_not_say(
    error, is_printed, monkeypatch, capsys
):
    def fail():
        raise error

    monkeypatch.setattr(sdk_worker, "print", print, raising=False)
    leave_user_errors_to_the_submitter(sdk_worker)
    harness = SimpleNamespace(_responses=queue.Queue())
    request = beam_fn_api_pb2.InstructionRequest(instruction_id="1")
    sdk_worker.SdkHarness._execute(harness, fail, request)
    assert str(error) in harness._responses.get().error
    assert (f"{type(error).__name__}: {error}" in capsys.readouterr().err) == is_printed
