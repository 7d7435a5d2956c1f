"""`train` on several workers: the losses of one, and a worker that is lost and started again."""

import os

import pytest
from behavior.training_workers import (
    COUNT_IN_INTERPRETERS,
    check_lost_worker,
    training_workers,
)

pytestmark = pytest.mark.slow  # starts processes that train together

COUNT = int(os.environ.get(COUNT_IN_INTERPRETERS, "2"))  # `make workers-test` has four


def test_a_lost_worker_ends_all_and_they_resume(data, tmp_path):
    run = tmp_path / "run"
    with training_workers(tmp_path, count=COUNT, data=data, output=run) as start:
        check_lost_worker(start, count=COUNT, data=data, run=run, folder=tmp_path)
