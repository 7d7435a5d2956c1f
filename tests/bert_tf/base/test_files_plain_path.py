"""Folders whose names are patterns: TensorFlow reads what lies in them all the same."""

from pathlib import Path

import pytest
import tensorflow as tf

from bert_tf.base.files import plain_path


@pytest.mark.parametrize("name", ["model[1]", "a*b", "what?", "back\\slash", "plain"])
def test_a_checkpoint_is_found_by_its_plain_path(tmp_path, name):
    folder = tmp_path / name
    folder.mkdir()
    tf.raw_ops.SaveV2(
        prefix=str(folder / "ckpt"), tensor_names=["a"], shape_and_slices=[""], tensors=[[1.0, 2.0]]
    )
    with plain_path(folder) as plain:
        assert tf.train.load_checkpoint(str(plain / "ckpt")).get_tensor("a").tolist() == [1.0, 2.0]
    assert (plain == folder) == (name == "plain")
    assert plain.exists() == (name == "plain")
    assert len(list(folder.iterdir())) == 2


def test_a_relative_folder_is_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a[1]").mkdir()
    (tmp_path / "a[1]" / "file").touch()
    with plain_path("a[1]") as plain:
        assert [path.name for path in Path(plain).iterdir()] == ["file"]
