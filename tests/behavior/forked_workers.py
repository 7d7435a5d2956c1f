"""Worker processes of Beam that are forks of the tests, in which nothing is imported again.

Forks hash texts alike, so an output that depends on the order of a set is not found with them.
`tests/pipeline/beam/test_runner.py`, the commands of `tests/end_to_end`, and the tests that hold
the promises of `docs/reproducibility.md` start real ones.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from behavior.forks import Fork

_PROGRAM = """
from pipeline.beam.worker_process import main

main([])
"""
_SECONDS = 900.0  # guards against hanging only


class _Worker(Fork):
    """The part of `subprocess.Popen` that Beam uses."""

    def __init__(self, command: str, *, shell: bool, env: dict[str, str]):
        assert shell and "pipeline.beam.worker_process" in command
        super().__init__(_PROGRAM, env=env)

    def wait(self) -> None:
        self.communicate(_SECONDS)

    def poll(self) -> int | None:
        return self.returncode


def fork_workers(patches: pytest.MonkeyPatch) -> None:
    """Have Beam's local runner fork its workers."""
    from apache_beam.runners.portability import local_job_service

    patches.setattr(local_job_service, "subprocess", SimpleNamespace(Popen=_Worker))
