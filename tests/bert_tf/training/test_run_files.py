"""Files of a run that more than one process has worked on."""

import io

import numpy as np
import pytest

from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError
from bert_tf.training.run_files import RunFiles


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


class Mirror:
    """Storage that fails as it is told to."""

    def __init__(self, place, errors):
        self.place = place
        self.errors = list(errors)
        self.calls = 0

    def publish(self):
        self.calls += 1
        error = self.errors.pop(0) if self.errors else None
        if error is not None:
            raise error


@pytest.fixture
def make_mirrored(tmp_path):
    def make(*errors):
        mirror, said = Mirror(tmp_path / "there", errors), io.StringIO()
        files = RunFiles(
            tmp_path / "here",
            writes=True,
            keep_checkpoints=2,
            console=Console(said),
            mirror=mirror,
        )
        return files, mirror, said

    return make


def save(files, step):
    files.save(step=step, tensors={"model/0000": np.zeros(3)}, state={})


def test_storage_that_fails_for_a_while_does_not_end_the_run(make_mirrored):
    files, mirror, said = make_mirrored(OSError("unavailable"), None, OSError("gone"))
    save(files, 5)
    assert said.getvalue() == (
        f"warning: {mirror.place}: cannot be written (unavailable); "
        "trying again with the next checkpoint\n"
    )
    save(files, 10)
    files.publish_rest()
    assert mirror.calls == 2
    save(files, 15)
    files.publish_rest()
    files.publish_rest()
    assert mirror.calls == 4


def test_a_run_does_not_end_well_without_being_published(make_mirrored):
    files, _, _ = make_mirrored(OSError("unavailable"), OSError("still unavailable"))
    save(files, 5)
    with pytest.raises(OSError, match="still unavailable"):
        files.publish_rest()


def test_a_run_that_was_taken_over_ends_at_once(make_mirrored):
    files, _, _ = make_mirrored(UsageError("another process started writing to it"))
    with pytest.raises(UsageError, match="another process"):
        save(files, 5)


def test_a_state_that_cannot_be_published_is_not_said_to_be_there(make_mirrored):
    files, mirror, said = make_mirrored(OSError("unavailable"))
    assert files.save_aside(step=5, tensors={}, state={}) is None
    assert "the state at the failure is not kept" in said.getvalue()
    assert files.save_aside(step=5, tensors={}, state={}) == mirror.place / "failed/step-00000005"
