"""The keys of jobs that read tables."""

import pytest

from bert_tf.base.errors import ConfigError
from bert_tf.config.section import build_section
from bert_tf.config.sections import ScoreConfig
from bert_tf.tasks.registry import TASKS

SCORE = {"model": "m", "input": "a.csv", "output": "b.csv"}
FINETUNE = {"task": "classification", "train": "a.csv", "init": "m", "output": "run"}


@pytest.mark.parametrize(
    ("section", "values"), [(ScoreConfig, SCORE), (TASKS["classification"].options, FINETUNE)]
)
@pytest.mark.parametrize("encoding", ["klingon", "rot13", "base64"])
def test_what_is_no_encoding_of_text_is_refused(section, values, encoding):
    with pytest.raises(ConfigError, match=f"encoding: '{encoding}' is unknown; common ones"):
        build_section(section, {**values, "encoding": encoding})


@pytest.mark.parametrize("encoding", ["utf-8", "Latin-1", "cp1252", "UTF-16", "gb18030"])
def test_any_encoding_of_python_is_taken(encoding):
    assert build_section(ScoreConfig, {**SCORE, "encoding": encoding}).encoding == encoding
