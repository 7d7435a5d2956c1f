"""Masks that `train` draws itself, from the data's own vocabulary."""

import pytest

from bert_tf.base.errors import UsageError
from bert_tf.config.section import build_section
from bert_tf.config.sections import TrainConfig
from bert_tf.data.records.dataset_info import PretrainingData
from bert_tf.data.text.vocab_file import SPECIAL_TOKENS
from bert_tf.pretraining.phases import dynamic_masking


def test_a_vocabulary_of_specials_alone_is_refused(tmp_path):
    config = build_section(TrainConfig, {"data": str(tmp_path), "output": "run", "size": "tiny"})
    data = PretrainingData(
        directory=str(tmp_path),
        max_seq_length=16,
        max_predictions_per_seq=2,
        masking="dynamic",
        vocab_size=len(SPECIAL_TOKENS),
        vocab_sha256="",
        lowercase=True,
        train_shards=(),
    )
    (tmp_path / "vocab.txt").write_text("\n".join([*SPECIAL_TOKENS, "a"]))
    assert dynamic_masking(config, data).rules.replacements.tolist() == [5]
    (tmp_path / "vocab.txt").write_text("\n".join(SPECIAL_TOKENS))
    with pytest.raises(UsageError, match=r"vocab.txt: has no entry but \[PAD\]"):
        dynamic_masking(config, data)
