"""KerasHub loads the presets we write, and computes the outputs of our models."""

import dataclasses
import json
from pathlib import Path

import keras_hub
import numpy as np
import pytest

from bert_tf.base.errors import InputError, UsageError
from bert_tf.data.text.casing import KEEP_ACCENTS
from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.models.encoder import BertEncoder
from bert_tf.models.heads import BertClassifier
from bert_tf.weights.import_weights import architecture, read_source
from bert_tf.weights.keras_hub_preset import count_numbers, write_keras_hub_preset
from bert_tf.weights.model_directory import load_weights, read_model_directory

GOLDEN = Path(__file__).parents[2] / "golden" / "models"
# Keras 3 saves weights through a NumPy conversion that NumPy 2 warns of.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


def write(name, folder, **changes):
    """Write a golden model, by default with the GELU that KerasHub has."""
    directory = read_model_directory(GOLDEN / name)
    config = dataclasses.replace(directory.config, **{"hidden_act": "gelu_new", **changes})
    directory = dataclasses.replace(directory, config=config)
    notes = write_keras_hub_preset(
        folder,
        config=config,
        vocab=directory.vocab,
        lowercase=directory.lowercase,
        tensors=directory.tensors,
        max_seq_length=9,
    )
    return directory, notes


def loaded(model, directory):
    model.build_weights()
    load_weights(model, directory)
    return model


@pytest.fixture
def batch():
    generator = np.random.default_rng(0)
    ids, segments = generator.integers(0, 40, (3, 10)), generator.integers(0, 2, (3, 10))
    return ids, segments, (np.arange(10) < np.array([[10], [6], [3]])).astype(np.int32)


def theirs(model, batch):
    ids, segments, mask = batch
    return model({"token_ids": ids, "segment_ids": segments, "padding_mask": mask})


@pytest.mark.slow
@pytest.mark.parametrize("name", ["encoder_tanh_gelu", "classification", "question_answering"])
def test_keras_hubs_encoder_computes_what_ours_does(name, tmp_path, batch):
    directory, _ = write(name, tmp_path)
    outputs = theirs(keras_hub.models.BertBackbone.from_preset(str(tmp_path)), batch)
    has_pooler = name != "question_answering"
    ours = loaded(BertEncoder(directory.config, has_pooler=has_pooler), directory)
    ours = ours(batch[0], input_type_ids=batch[1], attention_mask=batch[2])
    is_token = batch[2][:, :, None] == 1  # on padding ours is 0
    outputs["sequence_output"] = np.where(is_token, outputs["sequence_output"], 0.0)
    for key, value in ours.items():
        np.testing.assert_allclose(outputs[key], value, atol=1e-5)


@pytest.mark.slow
def test_a_classifier_keeps_its_head_and_takes_text(tmp_path, batch):
    directory, notes = write("classification", tmp_path)
    assert not notes
    classifier = keras_hub.models.BertTextClassifier.from_preset(str(tmp_path))
    ours = loaded(BertClassifier(directory.config, 3), directory)
    inputs = dict(zip(("input_word_ids", "input_type_ids", "input_mask"), batch, strict=True))
    np.testing.assert_allclose(theirs(classifier, batch), ours(inputs), atol=1e-5)
    ids = classifier.preprocessor(["W3 w7"])["token_ids"]
    pieces = [directory.vocab[number] for number in np.asarray(ids)[0]]
    assert pieces == ["[CLS]", "w3", "w7", "[SEP]", *["[PAD]"] * 5]


def test_the_tokenizer_comes_along(tmp_path):
    directory, _ = write("encoder", tmp_path)
    tokenizer = keras_hub.models.BertTokenizer.from_preset(str(tmp_path))
    assert tokenizer.get_vocabulary() == directory.vocab
    assert tokenizer.lowercase == directory.lowercase


@pytest.mark.parametrize("lowercase", [True, False])
def test_the_tokenizer_gives_the_pieces_that_ours_gives(tmp_path, lowercase):
    directory = read_model_directory(GOLDEN / "encoder")
    vocab = [*directory.vocab[:-6], "cafe", "café", "Cafe", "Café", "no", "NO"]
    write_keras_hub_preset(
        tmp_path,
        config=dataclasses.replace(directory.config, hidden_act="gelu_new"),
        vocab=vocab,
        lowercase=lowercase,
        tensors=directory.tensors,
        max_seq_length=9,
    )
    tokenizer = keras_hub.models.BertTokenizer.from_preset(str(tmp_path))
    texts = ["Café café CAFÉ cafe\u0301 No NO", "wéiß w3", ""]
    ours = WordPieceTokenizer(vocab, lowercase=lowercase).tokenize(texts)
    assert tokenizer(texts) == ours.to_list()


def test_accents_are_kept_where_kerashub_keeps_them(tmp_path):
    write("encoder", tmp_path)
    path = tmp_path / "tokenizer.json"
    document = json.loads(path.read_text())
    for settings, expected in (
        ({"lowercase": True, "strip_accents": True}, True),
        ({"lowercase": True, "strip_accents": False}, KEEP_ACCENTS),
        ({"lowercase": False, "strip_accents": False}, False),
    ):
        path.write_text(json.dumps({**document, "config": {**document["config"], **settings}}))
        vocab = [*read_source(tmp_path).vocab[:-2], "cafe", "café"]
        theirs = keras_hub.models.BertTokenizer(vocabulary=vocab, **settings)
        lowercase = read_source(tmp_path).lowercase
        assert lowercase == expected
        texts = ["Café cafe", "café"]
        ours = WordPieceTokenizer(vocab, lowercase=lowercase).tokenize(texts)
        assert theirs(texts) == ours.to_list()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["encoder", "classification"])
def test_what_is_written_is_read_back(name, tmp_path):
    directory, _ = write(name, tmp_path)
    again = read_source(tmp_path)
    assert again.config == directory.config
    assert (again.vocab, again.lowercase) == (directory.vocab, directory.lowercase)
    assert architecture(again) == architecture(directory)
    assert again.tensors.keys() == directory.tensors.keys()
    for key, value in directory.tensors.items():
        np.testing.assert_array_equal(again.tensors[key], value)


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        ("encoder", {}, []),
        ("encoder", {"hidden_act": "gelu"}, ["exact GELU"]),
        ("encoder", {"attention_probs_dropout_prob": 0.0}, ["a single dropout rate, here 0.1"]),
        ("pretraining", {}, ["heads are left out"]),
        ("token_classification", {}, ["no pooler; the preset's is random", "heads are left out"]),
    ],
)
def test_what_a_preset_lacks_is_reported(name, changes, said, tmp_path):
    _, notes = write(name, tmp_path, **changes)
    assert len(notes) == len(said)
    assert all(part in note for part, note in zip(said, notes, strict=True))


def test_other_activations_are_refused(tmp_path):
    with pytest.raises(UsageError, match="hidden_act is 'relu'; KerasHub's BERT only has GELU"):
        write("encoder", tmp_path / "preset", hidden_act="relu")
    assert not (tmp_path / "preset").exists()


@pytest.mark.slow
def test_damage_to_the_layout_of_the_weights_is_named(tmp_path):
    """HDF5 has half a dozen kinds of errors for it."""
    write("encoder", tmp_path)
    content = (tmp_path / "model.weights.h5").read_bytes()
    damaged = 0
    for bit in np.random.default_rng(2).choice(8 * len(content), 400):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        (tmp_path / "model.weights.h5").write_bytes(flipped)
        try:
            count_numbers(tmp_path / "model.weights.h5")
        except InputError:
            damaged += 1
    assert damaged
