"""Keys of single jobs: defaults that follow from others, encodings, grids of settings."""

import pytest

from bert_tf.base.errors import ConfigError
from bert_tf.config.section import build_section
from bert_tf.config.sections import PreprocessConfig, ScoreConfig, VocabConfig
from bert_tf.config.sections.finetuning import parse_grid
from bert_tf.tasks.registry import TASKS

PREPROCESS = {"input": ["a.txt"], "vocab": "v.txt", "output": "o"}


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
    config = build_section(PreprocessConfig, {**PREPROCESS, **values})
    assert config.max_predictions_per_seq == predictions


def test_predictions_that_do_not_fit_are_refused():
    with pytest.raises(ConfigError, match="max_predictions_per_seq: 20 does not fit"):
        build_section(
            PreprocessConfig, {**PREPROCESS, "max_seq_length": 16, "max_predictions_per_seq": 20}
        )


def test_accents_are_kept_once():
    with pytest.raises(
        ConfigError, match="keep_accents: only applies to lowercasing; --cased keeps"
    ):
        build_section(PreprocessConfig, {**PREPROCESS, "lowercase": False, "keep_accents": True})


@pytest.mark.parametrize(("extend", "lowercase"), [({}, True), ({"extend": "v.txt"}, None)])
def test_a_vocabulary_that_is_extended_decides_on_its_casing(extend, lowercase):
    config = build_section(VocabConfig, {"input": ["a.txt"], "output": "o.txt", **extend})
    assert config.lowercase is lowercase


# Encodings of the jobs that read tables.

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


# Grids of settings as text.


def test_every_combination():
    found = parse_grid("learning-rate=3e-5,5e-5 epochs=2,3,4")
    assert found == [
        {"learning_rate": rate, "epochs": epochs}
        for rate in ("3e-5", "5e-5")
        for epochs in ("2", "3", "4")
    ]
    assert parse_grid("") == [{}]


def test_the_published_grid():
    """README of google-research/bert: these batch sizes and learning rates."""
    found = {(each["batch_size"], each["learning_rate"]) for each in parse_grid("published")}
    assert found == {
        (size, rate)
        for size in ("8", "16", "32", "64", "128")
        for rate in ("3e-4", "1e-4", "5e-5", "3e-5")
    }


@pytest.mark.parametrize("text", ["published batch_size=16", "batch_size=16 published"])
def test_it_can_be_restricted(text):
    assert {each["batch_size"] for each in parse_grid(text)} == {"16"}
    assert len(parse_grid(text)) == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("publish", "expected published or key=value,value, got 'publish'"),
        ("epochs=", "got 'epochs='"),
        ("=3", "got '=3'"),
        ("epochs=3,,4", "got 'epochs=3,,4'"),
        ("epochs=3,3", "has a value twice"),
        ("epochs=2 batch_size=8 epochs=3", "epochs is given twice; list its values with commas"),
    ],
)
def test_other_texts_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        parse_grid(text)
