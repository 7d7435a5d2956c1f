import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.base.errors import InputError, UsageError
from bert_tf.training.run_files import (
    CheckpointStore,
    assign_values,
    read_checkpoint,
    read_values,
    variables_by_name,
    write_checkpoint,
)

TENSORS = {"model/0000": np.arange(6, dtype=np.float32).reshape(2, 3)}


def save(store, step):
    return store.save(step=step, tensors=TENSORS, state={"notes": {"step": step}})


@pytest.fixture
def store(tmp_path, console):
    return CheckpointStore(tmp_path / "checkpoints", keep=2, writes=True, console=console)


@pytest.fixture
def reader(tmp_path, console):
    """Return the store of another worker, on the same folder."""
    return CheckpointStore(tmp_path / "checkpoints", keep=2, writes=False, console=console)


def damage(path):
    (path / "state.safetensors").write_bytes(b"")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_what_is_written_is_read(tmp_path):
    write_checkpoint(tmp_path / "one", step=7, tensors=TENSORS, state={"notes": {"a": 1}})
    checkpoint = read_checkpoint(tmp_path / "one")
    assert (checkpoint.step, checkpoint.state["notes"]) == (7, {"a": 1})
    np.testing.assert_array_equal(checkpoint.tensors["model/0000"], next(iter(TENSORS.values())))


def test_the_newest_are_kept(store, tmp_path):
    for step in (5, 10, 15):
        save(store, step)
    assert names(tmp_path / "checkpoints") == ["step-00000010", "step-00000015"]
    assert store.newest().step == 15


def test_no_checkpoint_is_none(store):
    assert store.newest() is None


@pytest.mark.parametrize("file", ["state.safetensors", "state.json"])
@pytest.mark.parametrize("fault", ["flipped", "cut", "missing"])
def test_a_damaged_checkpoint_is_named_and_the_one_before_used(store, console, file, fault):
    save(store, 5)
    path = save(store, 10) / file
    content = path.read_bytes()
    if fault == "missing":
        path.unlink()
    elif fault == "cut":
        path.write_bytes(content[:-9])
    else:
        position = content.index(b"notes") + 1 if file == "state.json" else len(content) - 3
        path.write_bytes(
            content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :]
        )
    assert store.newest().step == 5
    assert "step-00000010" in console.text
    assert "trying the one before" in console.text
    assert names(path.parents[1]) == ["damaged-step-00000010", "step-00000005"]


@pytest.mark.parametrize("file", ["state.safetensors", "state.json"])
def test_no_flipped_bit_changes_what_is_read(tmp_path, file):
    write_checkpoint(tmp_path / "one", step=7, tensors=TENSORS, state={"notes": {"a": 1}})
    whole = read_checkpoint(tmp_path / "one")
    content = (tmp_path / "one" / file).read_bytes()
    for bit in np.random.default_rng(1).choice(8 * len(content), 100):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        (tmp_path / "one" / file).write_bytes(flipped)
        try:
            read = read_checkpoint(tmp_path / "one")
        except InputError:
            continue
        # What was hit is the name of the key `checksum`.
        assert set(read.state) - set(whole.state) != set()
        assert {key: read.state[key] for key in whole.state} == whole.state


def test_only_damaged_checkpoints_are_an_error(store, reader):
    """Every time, to the workers that write and to those that do not."""
    path = save(store, 5)
    damage(path)
    for each in (store, reader, store):
        with pytest.raises(InputError, match="all checkpoints are damaged; start again"):
            each.newest()
    assert names(path.parent) == ["step-00000005"]


def test_a_worker_that_does_not_write_moves_nothing(store, reader, console):
    save(store, 5)
    path = save(store, 10)
    damage(path)
    before = names(path.parent)
    assert reader.newest().step == 5
    assert "step-00000010" in console.text
    assert names(path.parent) == before


@pytest.mark.parametrize("writer_is_first", [True, False])
def test_workers_that_find_damage_at_the_same_time_agree(
    store, reader, monkeypatch, writer_is_first
):
    """The other one looks between the first one's listing of the folder and its reading of it."""
    early, late = (store, reader) if writer_is_first else (reader, store)
    save(store, 5)
    path = save(store, 10)
    damage(path)
    found = early._folders()
    monkeypatch.setattr(early, "_folders", lambda: found)
    assert late.newest().step == 5
    assert early.newest().step == 5
    assert names(path.parent) == ["damaged-step-00000010", "step-00000005"]


def test_a_damaged_checkpoint_that_vanishes_is_passed_over(store, monkeypatch):
    save(store, 5)
    path = save(store, 10)
    found = store._folders()
    shutil.rmtree(path)
    monkeypatch.setattr(store, "_folders", lambda: found)
    assert store.newest().step == 5
    assert names(path.parent) == ["step-00000005"]


def test_values_go_back_into_variables_of_any_process(tmp_path):
    first = {"model": [keras.Variable([1.0, 2.0], name="a")], "other": [tf.Variable(3)]}
    write_checkpoint(
        tmp_path / "one", step=1, tensors=read_values(variables_by_name(first)), state={}
    )
    second = {"model": [keras.Variable([0.0, 0.0], name="a")], "other": [tf.Variable(0)]}
    assign_values(variables_by_name(second), read_checkpoint(tmp_path / "one"))
    np.testing.assert_array_equal(second["model"][0].numpy(), [1.0, 2.0])
    assert second["other"][0].numpy() == 3


def test_another_model_is_an_error(tmp_path):
    write_checkpoint(tmp_path / "one", step=1, tensors={"model/0000": np.zeros(3)}, state={})
    here = variables_by_name({"model": [keras.Variable([0.0, 0.0], name="a")]})
    with pytest.raises(UsageError, match=r"model/0000 is \[3\] in the checkpoint, \[2\] in"):
        assign_values(here, read_checkpoint(tmp_path / "one"))
