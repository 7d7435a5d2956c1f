"""A log holds the traceback of a failure, and the output of a job that was stopped."""

import os
import signal

import pytest

from bert_tf.base.errors import GraphWritten, InputError, StoppedEarly
from pipeline.outputs.job_log import JobLog


@pytest.fixture
def sent():
    """Yield a log, and a function that returns the lines it has sent since the last call."""
    reader, writer = os.pipe()
    yield JobLog(writer), lambda: os.read(reader, 1 << 16).decode()
    os.close(reader)
    os.close(writer)


def failed(error):
    try:
        raise error
    except type(error) as raised:
        return raised


def test_a_failure_leaves_its_traceback(sent):
    log, read = sent
    log.note_failure(failed(InputError("empty")))
    assert "Traceback" in read()


@pytest.mark.parametrize("error", [StoppedEarly("saved", signal.SIGINT), GraphWritten("saved")])
def test_what_is_no_failure_leaves_its_message_alone(sent, error):
    log, read = sent
    log.note_failure(failed(error))
    assert read()[1:].split(" ", 1)[1] == "saved\n"


def test_a_log_is_known_once_it_can_be_written(sent, tmp_path):
    log, read = sent
    (tmp_path / "a.job.log").write_text("dear diary\n")
    (tmp_path / "b.job.log").mkdir()
    for name in ("a", "b", "missing/c"):
        log.keep_beside(tmp_path / f"{name}.job.log", "vocab")
        assert log.path is None
    log.keep_beside(tmp_path / "job.log", "vocab")
    assert log.path == tmp_path / "job.log"
    assert read().count("UTC: bert-pipeline vocab") == 1
