"""What counts as an exported model, and how rows are dealt to calls."""

import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.base.errors import InputError, UsageError
from bert_tf.export.exported_model import ExportedModel, check_is_exported, read_task, similar_rows


@given(st.lists(st.integers(0, 3_000_000), max_size=700))
def test_every_row_is_in_one_call_and_calls_are_small(sizes):
    sizes = np.array(sizes, np.int64)
    calls = similar_rows(sizes)
    assert sorted(np.concatenate(calls)) == list(range(len(sizes)))
    ordered = sizes[np.concatenate(calls)]
    assert (np.diff(ordered) <= 0).all()
    for call in calls:
        assert len(call) <= 256
        assert len(call) <= 1 or sizes[call].sum() <= 1 << 20


def test_a_run_is_told_to_be_exported(tmp_path):
    (tmp_path / "best").mkdir()
    with pytest.raises(UsageError, match="is a run, not an exported model; run bert-pipeline expo"):
        check_is_exported(tmp_path)


def test_other_folders_are_refused(tmp_path):
    with pytest.raises(UsageError, match=r"it has no saved_model\.pb"):
        check_is_exported(tmp_path)
    with pytest.raises(UsageError, match="no such model directory"):
        check_is_exported(tmp_path / "absent")


def test_a_damaged_saved_model_is_named(tmp_path):
    (tmp_path / "saved_model.pb").write_bytes(b"no protobuf")
    with pytest.raises(InputError, match="the SavedModel cannot be loaded"):
        ExportedModel(tmp_path)


def test_a_damaged_task_is_named(tmp_path):
    assert read_task(tmp_path) is None
    (tmp_path / "task.json").write_text("{")
    with pytest.raises(InputError, match=r"task\.json: damaged"):
        read_task(tmp_path)


def test_a_model_is_loaded_from_a_folder_whose_name_is_a_pattern(classifier, tmp_path):
    """TensorFlow takes the path of a SavedModel's variables for one."""
    _, exported = classifier
    folder = shutil.copytree(exported.path, tmp_path / "model[1]*")
    rows = {"text": ["the river"], "text_pair": ["is it ?"]}
    again = ExportedModel(folder).predict(rows)
    np.testing.assert_array_equal(again["probabilities"], exported.predict(rows)["probabilities"])
