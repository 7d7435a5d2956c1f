"""Masks that `train` draws itself, from the data's own vocabulary."""

import dataclasses

import pytest

from bert_tf.base.errors import ConfigError, UsageError
from bert_tf.config.section import build_section
from bert_tf.config.sections import TrainConfig
from bert_tf.data.records.dataset_info import PretrainingData
from bert_tf.data.text.vocab_file import SPECIAL_TOKENS
from bert_tf.pretraining.phases import dynamic_masking, pretraining_phases


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
        dynamic_masking(config, dataclasses.replace(data))


def train_config(**values):
    given = {"data": "data", "output": "run", "size": "tiny", "steps": 100, **values}
    return build_section(TrainConfig, given)


def records(masking):
    return PretrainingData(
        directory="data",
        max_seq_length=16,
        max_predictions_per_seq=2,
        masking=masking,
        vocab_size=8,
        vocab_sha256="",
        lowercase=True,
        train_shards=(),
    )


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ({"masking_schedule": [0.3]}, "masking_schedule: has 1 fractions"),
        ({"masking_schedule": [0.3, 0.15], "max_minutes": 5}, "needs the number of steps"),
        ({"masking_schedule": [0.3, 0.15], "masked_lm_prob": 0.2}, "leave one of them out"),
        ({"mask_replacements": [0.8, 0.1]}, r"is \[0.8, 0.1\]; give three fractions"),
        ({"mask_replacements": [0.8, 0.1, 0.2]}, "with the sum 1"),
    ],
)
def test_faulty_masks_are_refused_in_a_line(values, fault):
    with pytest.raises(ConfigError, match=fault) as raised:
        train_config(**values)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "values", [{"masking_schedule": [0.3, 0.15]}, {"mask_replacements": [1, 0, 0]}]
)
def test_masks_of_masked_records_cannot_be_changed(values):
    with pytest.raises(UsageError, match=rf"train.{next(iter(values))}: .* masked already"):
        dynamic_masking(train_config(**values), records("token"))


def test_phases_share_a_schedule_by_their_steps():
    phases = [{"data": "a", "steps": 30}, {"data": "b", "steps": 10}]
    config = build_section(
        TrainConfig,
        {"phases": phases, "output": "run", "size": "tiny", "masking_schedule": [0.3, 0.1]},
    )
    found = pretraining_phases(config, [records("dynamic")] * 2)
    assert [phase.masking_schedule for phase in found] == [
        pytest.approx((0.3, 0.15)),
        pytest.approx((0.15, 0.1)),
    ]
    assert pretraining_phases(train_config(), [records("dynamic")])[0].masking_schedule is None
