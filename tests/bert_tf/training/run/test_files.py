"""Files of a run that more than one process has worked on."""

import numpy as np
import pytest

from bert_tf.training.run.files import RunFiles


def folders(directory):
    return sorted(
        str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_dir()
    )


@pytest.fixture
def make_files(tmp_path, console):
    return lambda *, writes: RunFiles(tmp_path, writes=writes, keep_checkpoints=2, console=console)


def test_the_process_that_writes_removes_what_killed_ones_left(tmp_path, make_files):
    chief, worker = make_files(writes=True), make_files(writes=False)
    chief.save(step=5, tensors={"model/0000": np.zeros(3)}, state={})
    chief.save_aside(step=5, tensors={}, state={})
    (tmp_path / "best").mkdir()
    whole = folders(tmp_path)
    for name in (
        *("checkpoints/.step-00000010.17.partial", "checkpoints/.step-00000005.17.before"),
        *("failed/.step-00000008.17.partial", ".best.17.partial", ".best.18.before"),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "state.safetensors").write_bytes(b"half")
    left = folders(tmp_path)
    assert worker.newest_checkpoint().step == 5
    assert folders(tmp_path) == left
    assert chief.newest_checkpoint().step == 5
    assert folders(tmp_path) == whole


def test_a_checkpoint_that_was_to_be_replaced_and_was_not_is_used(tmp_path, make_files):
    make_files(writes=True).save(step=5, tensors={"model/0000": np.zeros(3)}, state={})
    path = tmp_path / "checkpoints" / "step-00000005"
    path.rename(path.with_name(".step-00000005.17.before"))
    assert make_files(writes=False).newest_checkpoint() is None
    assert make_files(writes=True).newest_checkpoint().step == 5
