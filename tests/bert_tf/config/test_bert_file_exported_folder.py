"""What every engine reads of an exported folder."""

import pytest

from bert_tf.base.errors import InputError
from bert_tf.config.bert_file import read_task


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "damaged"),
        ("[]", "expected a JSON object"),
        ("[" * 200_000, "nested too deeply"),
        (" " * ((64 << 20) + 1), "larger than 64 MiB"),
    ],
    ids=["cut short", "a list", "nested", "large"],
)
def test_a_damaged_task_is_named(tmp_path, content, message):
    assert read_task(tmp_path) is None
    (tmp_path / "task.json").write_text(content)
    with pytest.raises(InputError, match=rf"task\.json: .*{message}"):
        read_task(tmp_path)
