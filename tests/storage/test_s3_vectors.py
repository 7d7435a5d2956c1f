"""`embed`, `search` and `summarize` with inputs and outputs on S3."""

import pytest
from behavior.stored_vectors import check_same_outputs, jobs_by_output, make_outputs

from pipeline.beam.storage import use_storage_options

pytestmark = pytest.mark.slow  # starts a server, and runs whole jobs


def test_the_bytes_are_those_of_local_outputs(folder, options, tmp_path):
    names = jobs_by_output(tmp_path)
    make_outputs(tmp_path, names)

    def forget_options():
        use_storage_options([])

    use_storage_options(options)
    make_outputs(folder, names, before_each=forget_options, options=options)
    use_storage_options(options)
    check_same_outputs(folder, tmp_path)
