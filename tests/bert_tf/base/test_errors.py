"""The message about a path that is no folder."""

from bert_tf.base.errors import missing_folder_error


def test_a_file_in_place_of_a_folder_is_called_one(tmp_path):
    path = tmp_path / "model"
    assert str(missing_folder_error(path, "model")) == f"{path}: no such model; check the path"
    path.touch()
    assert str(missing_folder_error(path, "model")) == f"{path}: is a file; expected a model"
