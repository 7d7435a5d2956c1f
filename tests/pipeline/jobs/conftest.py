"""Records and a model for runs of `train`, see `pretraining_runs`."""

import pytest


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    from behavior.pretraining_runs import write_data

    return write_data(tmp_path_factory.mktemp("records") / "data")


@pytest.fixture(scope="module")
def padded_data(tmp_path_factory):
    """More than half of every row is padding."""
    from behavior.pretraining_runs import LENGTH, write_data

    return write_data(tmp_path_factory.mktemp("padded") / "data", length=2 * LENGTH)


@pytest.fixture(scope="module")
def model_config(tmp_path_factory):
    from behavior.pretraining_runs import write_model_config

    return write_model_config(tmp_path_factory.mktemp("config"))
