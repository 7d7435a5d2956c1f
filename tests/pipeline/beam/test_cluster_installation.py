"""Workers with other versions than the submitter's end a job in one line."""

import socket

import apache_beam as beam
import pytest
from apache_beam.runners.portability.fn_api_runner import FnApiRunner

from bert_tf.base.errors import UsageError
from pipeline.beam import cluster
from pipeline.beam.cluster import CheckInstallations, check_versions
from pipeline.beam.workers import user_error


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
