"""A model without the words that no row has, and the same model with all of them again."""

import dataclasses
from pathlib import Path

import keras
import numpy as np
import pytest

from bert_tf.base.errors import UsageError
from bert_tf.models.encoder import BertEncoder
from bert_tf.weights.model_directory import (
    load_all_weights,
    load_weights,
    model_tensors,
    read_model_directory,
)
from bert_tf.weights.resizing import VocabularySubset

GOLDEN = Path(__file__).parents[2] / "golden" / "models"
IDS = np.array([[7, 9, 9], [12, 7, 2]])
WORDS = "bert.embeddings.word_embeddings.weight"


def encoder(directory):
    model = BertEncoder(directory.config)
    model.build_weights()
    load_all_weights(model, directory)
    return model


@pytest.fixture(scope="module")
def directory():
    return read_model_directory(GOLDEN / "encoder")


@pytest.fixture
def subset(directory):
    return VocabularySubset(directory, [IDS])


def test_it_has_the_special_tokens_and_the_words_of_the_rows(directory, subset):
    kept = {directory.vocab[index] for index in (7, 9, 12)}
    specials = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}
    assert set(subset.directory.vocab) == kept | specials
    tokens = [subset.directory.vocab[index] for index in subset.numbers(IDS).ravel()]
    assert tokens == [directory.vocab[index] for index in IDS.ravel()]


def test_the_model_computes_the_same(directory, subset):
    ones = np.ones_like(IDS)
    found = [
        encoder(part)(ids, ones)["sequence_output"]
        for part, ids in ((directory, IDS), (subset.directory, subset.numbers(IDS)))
    ]
    np.testing.assert_array_equal(*[keras.ops.convert_to_numpy(output) for output in found])


def test_trained_words_go_back_to_their_places(directory, subset):
    model = encoder(subset.directory)
    table = model.embeddings.word_embeddings
    table.assign(table + 1.0)
    config, tensors = subset.whole(model.config, model_tensors(model))
    assert config == directory.config
    before = directory.tensors[WORDS]
    moved = np.zeros(len(directory.vocab), bool)
    moved[[directory.vocab.index(token) for token in subset.directory.vocab]] = True
    np.testing.assert_array_equal(tensors[WORDS][~moved], before[~moved])
    np.testing.assert_array_equal(tensors[WORDS][moved], before[moved] + 1.0)
    assert tensors.keys() == model_tensors(model).keys()


def test_weights_of_another_shape_are_refused_as_without_it(directory):
    short = {**directory.tensors, WORDS: directory.tensors[WORDS][:10]}
    broken = dataclasses.replace(directory, tensors=short)
    model = BertEncoder(directory.config)
    model.build_weights()
    with pytest.raises(UsageError) as expected:
        load_weights(model, broken)
    with pytest.raises(UsageError) as found:
        load_weights(model, VocabularySubset(broken, [IDS]).directory)
    assert str(found.value) == str(expected.value)
