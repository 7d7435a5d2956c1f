"""What every engine reads of an exported folder."""

import pytest

from bert_tf.base.errors import InputError
from bert_tf.engines.exported_folder import read_task


def test_a_damaged_task_is_named(tmp_path):
    assert read_task(tmp_path) is None
    (tmp_path / "task.json").write_text("{")
    with pytest.raises(InputError, match=r"task\.json: damaged"):
        read_task(tmp_path)
