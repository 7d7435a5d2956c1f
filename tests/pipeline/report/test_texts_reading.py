"""Readings of a model: predictions, neighbors, attention, for texts of any length."""

import keras
import numpy as np
import pytest
from behavior.small_models import write_classifier, write_encoder
from scipy.special import softmax
from sklearn.metrics.pairwise import cosine_similarity

from bert_tf.base.errors import UsageError
from bert_tf.config.bert import BertConfig
from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.models.encoder import attention_maps
from bert_tf.models.heads import BertClassifier, BertMaskedLM
from bert_tf.tasks.fill_mask.task import FillMaskTask, MaskColumns
from bert_tf.weights.model_directory import (
    load_all_weights,
    read_model_directory,
    write_model_directory,
)
from pipeline.report.texts_reading import TextReader

pytestmark = pytest.mark.slow

VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "rome", "is", "in", "it", "##aly", "."]


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(5)
    config = BertConfig(
        vocab_size=len(VOCAB),
        hidden_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=9,
        initializer_range=0.7,
    )
    made = BertMaskedLM(config, dtype="float32")
    made.build_weights()
    return made


@pytest.fixture(scope="module")
def reader(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "best"
    write_model_directory(folder, model, vocab=VOCAB, lowercase=True, task=None)
    return TextReader(folder.parent)


def expected(model, text):
    """Probabilities of the vocabulary at each mask, as the export of fill-mask is checked with."""
    task = FillMaskTask(columns=MaskColumns(text="text"), max_seq_length=9, top_k=len(VOCAB))
    tokenizer = WordPieceTokenizer(VOCAB, lowercase=True)
    (masks,) = task.host_predictions(model, tokenizer, {"text": [text]})["predicted_tokens"]
    scores = [{each["token"]: each["score"] for each in candidates} for candidates in masks]
    return np.array([[of_mask[word] for word in VOCAB] for of_mask in scores])


def test_masks_are_filled_as_by_fill_mask(reader, model):
    text = "Rome is [MASK] [MASK]."
    reading = reader.read(text, most=3)
    assert reading.tokens == ["[CLS]", "rome", "is", "[MASK]", "[MASK]", ".", "[SEP]"]
    assert [guess.position for guess in reading.guesses] == [3, 4]
    for guess, probabilities in zip(reading.guesses, expected(model, text), strict=True):
        best = np.argsort(-probabilities)[:3]
        assert [word for word, _ in guess.candidates] == [VOCAB[each] for each in best]
        found = [probability for _, probability in guess.candidates]
        np.testing.assert_allclose(found, probabilities[best], rtol=1e-4)
        assert guess.probability is None


def test_without_masks_each_token_is_masked_by_itself(reader, model):
    reading = reader.read("rome in italy", most=1)
    tokens = ["rome", "in", "it", "##aly"]
    assert list(reading.tokens[1:-1]) == tokens
    for guess, hidden in zip(
        reading.guesses[:2], ("[MASK] in italy", "rome [MASK] italy"), strict=False
    ):
        (probabilities,) = expected(model, hidden)
        own = probabilities[VOCAB.index(tokens[guess.position - 1])]
        assert guess.probability == pytest.approx(own, rel=1e-4)
    assert [guess.position for guess in reading.guesses] == [1, 2, 3, 4]


def test_only_the_first_tokens_are_looked_at_but_every_mask(reader):
    short = reader.read("rome in it is", most=1, first=3)
    assert [guess.position for guess in short.guesses] == [1, 2] == list(short.neighbors)
    masked = reader.read("rome in it is [MASK]", most=1, first=3)
    assert [guess.position for guess in masked.guesses] == [5]
    assert reader.read("rome " * 8 + "[MASK]", most=1).guesses == [], "the mask is cut off"


def test_neighbors_are_by_cosine_and_no_special_tokens(reader, model):
    reading = reader.read("rome is rome", most=3)
    assert list(reading.neighbors) == [1, 2], "a token is listed once"
    table = model.encoder.embeddings.word_embeddings.numpy()
    similarity = cosine_similarity(table)[VOCAB.index("rome")]
    others = [each for each in np.argsort(-similarity) if VOCAB[each] != "rome" and each > 4][:3]
    words, values = zip(*reading.neighbors[1], strict=True)
    assert list(words) == [VOCAB[each] for each in others]
    np.testing.assert_allclose(values, similarity[others], rtol=1e-5)


def test_a_long_text_is_cut_and_says_so(reader):
    reading = reader.read("rome " * 20, most=1)
    assert (len(reading.tokens), reading.is_cut) == (9, True)
    assert reading.attention.shape == (2, 2, 9, 9)
    np.testing.assert_allclose(reading.attention.sum(axis=-1), 1.0, rtol=1e-5)
    assert not reader.read("rome", most=1).is_cut


def test_a_pair_is_read_as_rows_of_pairs_are(reader, model):
    reading = reader.read("rome is", "in [MASK]", most=2)
    assert reading.tokens == ["[CLS]", "rome", "is", "[SEP]", "in", "[MASK]", "[SEP]"]
    assert reading.second_start == 4
    ids = np.array([[VOCAB.index(token) for token in reading.tokens]], np.int32)
    types = np.array([[0, 0, 0, 0, 1, 1, 1]], np.int32)
    logits = model(
        {
            "input_word_ids": ids,
            "input_mask": np.ones_like(ids),
            "input_type_ids": types,
            "masked_lm_positions": np.array([[5]], np.int32),
        }
    ).numpy()[0, 0]
    odds = np.exp(logits - logits.max())
    (guess,) = reading.guesses
    assert guess.position == 5
    found = [probability for _, probability in guess.candidates]
    np.testing.assert_allclose(found, np.sort(odds / odds.sum())[::-1][:2], rtol=1e-4)
    np.testing.assert_array_equal(
        reading.attention, attention_maps(model.encoder, ids, types)[:, 0]
    )
    assert [guess.position for guess in reader.read("rome", "is", most=1).guesses] == [1, 3]
    cut = reader.read("rome " * 9, "in it", most=1)
    assert (cut.is_cut, len(cut.tokens), cut.second_start) == (True, 9, 6)
    with pytest.raises(UsageError, match=r"--text-pair '': has no tokens"):
        reader.read("rome", "", most=1)


def test_a_fine_tuned_model_predicts_a_pair(tmp_path):
    labels = ["no", "yes", "maybe"]
    task = {
        "task": "classification",
        "labels": labels,
        "columns": {"text": "premise", "text_pair": "claim", "label": "label"},
        "max_seq_length": 16,
    }
    folder = write_classifier(tmp_path / "m", vocab=VOCAB, task=task, seed=1, initializer_range=0.7)
    reader = TextReader(folder)
    reading = reader.read("rome is", "in italy", most=1)
    assert reading.guesses is None
    ids = np.array([[VOCAB.index(token) for token in reading.tokens]], np.int32)
    classifier = BertClassifier(read_model_directory(folder).config, len(labels), dtype="float32")
    classifier.build_weights()
    load_all_weights(classifier, read_model_directory(folder))
    types = (np.arange(ids.shape[1]) >= reading.second_start).astype(np.int32)[None]
    batch = {"input_word_ids": ids, "input_mask": np.ones_like(ids), "input_type_ids": types}
    (expected,) = softmax(classifier(batch).numpy(), axis=-1)
    found = {each.name: each.probability for each in reading.predictions if each.probability}
    np.testing.assert_allclose([found[label] for label in labels], expected, atol=1e-5)
    (predicted,) = [each.value for each in reading.predictions if each.name == "predicted_label"]
    assert predicted == labels[int(np.argmax(expected))]
    assert reader.read("rome is", most=1).predictions == [], "the task takes two texts"


def test_a_model_without_a_head_makes_no_predictions(tmp_path):
    reader = TextReader(write_encoder(tmp_path / "m", vocab=VOCAB, seed=1))
    assert reader.read("rome", most=1).guesses is None
    with pytest.raises(UsageError, match=r"--text '\\t': has no tokens; give a text"):
        reader.read("\t", most=1)
