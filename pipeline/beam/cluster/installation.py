"""Compares what is installed on the workers of a cluster with what submitted the job.

Other versions tokenize or clean otherwise, or fail far from the cause; which worker does what is
chance, and so the result would be.
"""

from __future__ import annotations

import platform
import socket
from collections.abc import Iterator

import apache_beam as beam

from bert_tf.base.errors import UsageError
from pipeline.beam.installed_versions import NOT_INSTALLED, installed_versions

# What results follow from, and what jobs are sent by.
_COMPARED = ("bert-pipeline", "apache-beam", "numpy", "pyarrow", "tensorflow", "tensorflow-text")
# Enough for some to reach every worker that a runner starts with.
_CHECKS = 1024


class CheckInstallations(beam.PTransform):
    """Fails a job, as it begins, whose workers have other versions than this process."""

    def expand(self, pipeline: beam.Pipeline) -> beam.PCollection[None]:
        """Spreads checks over the workers; the result is empty."""
        submitted = (socket.gethostname(), _compared_versions())
        return (
            pipeline
            | "ListChecks" >> beam.Create(range(_CHECKS))
            | "SpreadChecks" >> beam.Reshuffle()
            | "CheckInstallation" >> beam.ParDo(_CheckInstallation(*submitted))
        )


class _CheckInstallation(beam.DoFn):
    def __init__(self, host: str, versions: dict[str, str]):
        self._host = host
        self._versions = versions

    def setup(self) -> None:
        check_versions(self._host, self._versions)

    def process(self, check: int) -> Iterator[None]:
        yield from ()


def check_versions(host: str, versions: dict[str, str]) -> None:
    """Compares the versions in this process, a worker, with the submitter's.

    Args:
        host: the submitter's name.
        versions: of what is installed there.

    Raises:
        UsageError: they are not the same.
    """
    here = _compared_versions()
    different = [name for name in versions if versions[name] != here.get(name)]
    if different:
        own, others = (
            ", ".join(f"{name} {each.get(name, NOT_INSTALLED)}" for name in different)
            for each in (here, versions)
        )
        raise UsageError(
            f"worker {socket.gethostname()} has {own}, but the job was submitted from {host} with "
            f"{others}; install the same versions on all workers"
        )


def _compared_versions() -> dict[str, str]:
    versions = installed_versions(_COMPARED)
    # Patch releases of Python pickle and compute alike.
    versions["python"] = ".".join(platform.python_version_tuple()[:2])
    return versions
