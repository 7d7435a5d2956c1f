"""Keys of the data jobs whose defaults follow from others."""

import pytest

from bert_tf.base.errors import ConfigError
from bert_tf.config.section import build_section
from bert_tf.config.sections import PreprocessConfig, VocabConfig

REQUIRED = {"input": ["a.txt"], "vocab": "v.txt", "output": "o"}


@pytest.mark.parametrize(
    ("values", "predictions"),
    [
        ({}, 20),
        ({"max_seq_length": 64}, 20),
        ({"max_seq_length": 16}, 13),
        ({"max_seq_length": 512}, 77),
        ({"masked_lm_prob": 0.3}, 39),
        ({"masked_lm_prob": 1.0}, 125),
        ({"max_seq_length": 512, "max_predictions_per_seq": 20}, 20),
    ],
)
def test_a_sequence_has_room_for_the_fraction_that_is_masked(values, predictions):
    config = build_section(PreprocessConfig, {**REQUIRED, **values})
    assert config.max_predictions_per_seq == predictions


def test_predictions_that_do_not_fit_are_refused():
    with pytest.raises(ConfigError, match="max_predictions_per_seq: 20 does not fit"):
        build_section(
            PreprocessConfig, {**REQUIRED, "max_seq_length": 16, "max_predictions_per_seq": 20}
        )


def test_accents_are_kept_once():
    with pytest.raises(
        ConfigError, match="keep_accents: only applies to lowercasing; --cased keeps"
    ):
        build_section(PreprocessConfig, {**REQUIRED, "lowercase": False, "keep_accents": True})


@pytest.mark.parametrize(("extend", "lowercase"), [({}, True), ({"extend": "v.txt"}, None)])
def test_a_vocabulary_that_is_extended_decides_on_its_casing(extend, lowercase):
    config = build_section(VocabConfig, {"input": ["a.txt"], "output": "o.txt", **extend})
    assert config.lowercase is lowercase
