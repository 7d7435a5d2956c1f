"""Vectors of layers, poolings and tokens, which batches must not change.

Those of real weights are compared with sentence-transformers' in tests/parity.
"""

from pathlib import Path

import numpy as np
import pytest
from behavior.engines import check_engine
from behavior.examples import fewer_examples
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.embeddings.embedder import Embedder, tokenize_rows
from bert_tf.embeddings.settings import EmbedderSettings
from bert_tf.models.encoder import BertEncoder
from bert_tf.weights.model_directory import (
    load_weights,
    read_model_directory,
    write_model_directory,
)

GOLDEN = Path(__file__).parents[2] / "golden"
TOLERANCE = 1e-5
TINY = GOLDEN / "models" / "encoder"
WORDS = st.lists(st.sampled_from([f"w{number}" for number in range(35)]), min_size=1, max_size=9)
TEXTS = st.lists(WORDS.map(" ".join), min_size=1, max_size=12)


def settings(**values) -> EmbedderSettings:
    defaults = {"pooling": "mean", "normalize": False, "max_seq_length": 12}
    return EmbedderSettings(**{**defaults, **values})


@pytest.fixture(scope="module")
def tiny() -> dict[str, Embedder]:
    """Return embedders of a random encoder by the kind of their vectors."""
    return {
        "mean": Embedder(TINY, settings()),
        "unit": Embedder(TINY, settings(normalize=True)),
        "tokens": Embedder(TINY, settings(tokens=True)),
    }


@pytest.mark.slow  # compiles for two shapes
@pytest.mark.parametrize("tokens", [False, True])
def test_on_gpus_full_batches_of_few_shapes_give_the_same_vectors(monkeypatch, tokens):
    texts = [" ".join(["w1", "w2", "w3"] * count) for count in range(1, 9)]
    longest = settings(max_seq_length=22, tokens=tokens)
    expected = Embedder(TINY, longest).predict({"text": texts})
    monkeypatch.setattr("bert_tf.embeddings.embedder.has_accelerator", lambda: True)
    monkeypatch.setattr("bert_tf.data.rows.encoded_rows.COMPILED_LENGTHS", (8, 24))
    embedder = Embedder(TINY, longest)
    forward, shapes = embedder._forward, []
    embedder._forward = lambda *batch: shapes.append(batch[0].shape) or forward(*batch)
    got = embedder.predict({"text": texts}, batch_tokens=3)
    assert {tuple(shape) for shape in shapes} == {(2, 22), (6, 8)}
    for name, values in expected.items():
        for left, right in zip(got[name], values, strict=True):
            if values.dtype != object or name == "token_embeddings":
                np.testing.assert_allclose(left, right, atol=TOLERANCE)
            else:
                np.testing.assert_array_equal(left, right)


def states_of(text: str) -> np.ndarray:
    """Every layer's output for one text without padding, [layers + 1, tokens, hidden]."""
    directory = read_model_directory(TINY)
    encoder = BertEncoder(directory.config)
    encoder.build_weights()
    load_weights(encoder, directory)
    ids = [directory.vocab.index(word) for word in ["[CLS]", *text.split(), "[SEP]"]]
    states = encoder(np.array([ids], np.int32), output_hidden_states=True)["hidden_states"]
    return np.concatenate([np.asarray(state) for state in states])


@pytest.mark.slow  # encodes every text of many lists alone
@fewer_examples(0.1)
@given(texts=TEXTS, batch_tokens=st.integers(1, 200))
def test_padding_and_batches_change_no_vector_and_no_order(tiny, texts, batch_tokens):
    together = tiny["mean"].predict({"text": texts}, batch_tokens=batch_tokens)["embedding"]
    alone = [tiny["mean"].predict({"text": [text]})["embedding"][0] for text in texts]
    np.testing.assert_allclose(together, alone, rtol=0, atol=TOLERANCE)


@pytest.mark.slow
@fewer_examples(0.3)
@given(texts=TEXTS)
def test_normalized_vectors_have_norm_one_and_the_same_direction(tiny, texts):
    unit = tiny["unit"].predict({"text": texts})["embedding"]
    plain = tiny["mean"].predict({"text": texts})["embedding"]
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), 1, rtol=1e-6)
    norms = np.linalg.norm(plain, axis=1, keepdims=True)
    np.testing.assert_allclose(unit * norms, plain, rtol=0, atol=TOLERANCE)


@pytest.mark.slow
@fewer_examples(0.3)
@given(texts=TEXTS)
def test_every_row_is_counted_once_as_it_is_done(tiny, texts):
    done = []
    tiny["mean"].predict({"text": texts}, batch_tokens=24, on_rows=done.append)
    assert sum(done) == len(texts)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layers", "combination", "pooling", "expected"),
    [
        ((-1,), "mean", "max", lambda states: states[2]),
        ((0,), "mean", "cls", lambda states: states[0]),
        ((1, -1), "mean", "mean", lambda states: (states[1] + states[2]) / 2),
        ((-2, 2), "concat", "max", lambda states: np.concatenate([states[1], states[2]], axis=1)),
    ],
)
def test_layers_are_those_of_the_encoder(layers, combination, pooling, expected):
    text = "w1 w7 w2"
    states = expected(states_of(text))
    options = {"layers": layers, "layer_combination": combination}
    pooled = {"mean": states.mean(0), "cls": states[0], "max": states.max(0)}[pooling]
    embedder = Embedder(TINY, settings(pooling=pooling, **options))
    got = embedder.predict({"text": [text, "w3 " * 9]})["embedding"][0]
    np.testing.assert_allclose(got, pooled, rtol=0, atol=TOLERANCE)
    got = Embedder(TINY, settings(tokens=True, **options)).predict({"text": ["w3 " * 9, text]})
    np.testing.assert_allclose(got["token_embeddings"][1], states[1:-1], rtol=0, atol=TOLERANCE)


def test_tokens_come_with_their_places_in_the_text_and_long_texts_are_cut(tiny):
    texts = ["w1  w2?", "é😀 w3", "w4 " * 30]
    got = tiny["tokens"].predict({"text": texts})
    assert got["tokens"][0] == ["w1", "w2", "[UNK]"]
    for text, starts, ends, tokens in zip(
        texts, got["token_starts"], got["token_ends"], got["tokens"], strict=True
    ):
        slices = [text[start:end] for start, end in zip(starts, ends, strict=True)]
        for token, part in zip(tokens, slices, strict=True):
            assert token in (part, "[UNK]")
    assert "w3" in got["tokens"][1]
    assert got["text_tokens"].tolist()[::2] == [5, 32]
    assert len(got["tokens"][2]) == 10
    assert got["token_embeddings"][2].shape == (10, 8)


def test_texts_are_cut_in_parts_of_a_block(tiny, monkeypatch):
    texts = ["w1  w2?", "", "w4 " * 30, "é😀 w3", "w5"]
    tokenizer = tiny["tokens"].tokenizer
    whole = tokenize_rows(tokenizer, texts, max_seq_length=12)
    monkeypatch.setattr("bert_tf.embeddings.embedder._BATCH_TEXTS", 2)
    parts = tokenize_rows(tokenizer, texts, max_seq_length=12)
    for name in ("lengths", "starts", "ends"):
        np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name))
    np.testing.assert_array_equal(parts.rows.ids, whole.rows.ids)
    np.testing.assert_array_equal(parts.rows.offsets, whole.rows.offsets)
    assert not len(tokenize_rows(tokenizer, [], max_seq_length=12).rows)


@pytest.mark.slow
@pytest.mark.parametrize("made", ["mean", "tokens"])
def test_engine(tiny, tmp_path, made):
    directory = read_model_directory(TINY)
    encoder = BertEncoder(directory.config)
    encoder.build_weights()
    for variable in encoder.weights:
        variable.assign(np.full(variable.shape, np.nan, np.float32))
    write_model_directory(tmp_path / "m", encoder, vocab=directory.vocab, lowercase=True, task=None)
    texts = ["w1 w2 w3", "", "w4", "w5 w6 " * 20, "w1 w2 w3", "not a word"]
    diverged = Embedder(tmp_path / "m", tiny[made].settings)
    check_engine(tiny[made], {"text": texts}, diverged=diverged)
