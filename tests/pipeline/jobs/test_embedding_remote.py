"""`embed`, `search` and `summarize` with inputs and outputs on other storage."""

import pytest
from behavior.remote_outputs import forget_process
from behavior.stored_vectors import check_same_outputs, make_outputs

from pipeline.beam.stored_path import path_of

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("files")]  # run whole jobs

MADE = ("embedded.parquet", "found.csv", "summarized.csv.gz")  # `make storage-test` makes all


def test_the_bytes_are_those_of_local_outputs(tmp_path):
    make_outputs(tmp_path, MADE)
    folder = path_of("folders://bucket/out")
    make_outputs(folder, MADE, before_each=forget_process)
    check_same_outputs(folder, tmp_path)
