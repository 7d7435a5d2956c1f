"""The pretraining losses: packed rows and single ones must agree."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.config.bert import BertConfig
from bert_tf.data.records.packed_records import assign_rows, choose_packed_shape, pack_features
from bert_tf.models.heads import BertPretrainingModel
from bert_tf.pretraining.loss import PretrainingLoss

LENGTH = 24
PREDICTIONS = 4
ROWS = 12
VOCAB = 40
CONFIG = BertConfig(
    vocab_size=VOCAB,
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=32,
    max_position_embeddings=LENGTH,
    initializer_range=0.5,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(0)
    model = BertPretrainingModel(CONFIG, dtype="float32")
    model.build_weights()
    return model


@pytest.fixture(scope="module")
def features():
    """Rows of 3 to 24 tokens with 1 to 4 targets."""
    random = np.random.default_rng(0)
    lengths = random.integers(3, LENGTH + 1, ROWS)
    mask = (np.arange(LENGTH) < lengths[:, None]).astype(np.int32)
    targets = np.minimum(random.integers(1, PREDICTIONS + 1, ROWS), lengths)
    return {
        "input_word_ids": random.integers(5, VOCAB, (ROWS, LENGTH)).astype(np.int32) * mask,
        "input_mask": mask,
        "input_type_ids": (np.arange(LENGTH) > lengths[:, None] // 2).astype(np.int32) * mask,
        "masked_lm_positions": np.stack(
            [random.permutation(LENGTH)[:PREDICTIONS] % length for length in lengths]
        ).astype(np.int32),
        "masked_lm_ids": random.integers(5, VOCAB, (ROWS, PREDICTIONS)).astype(np.int32),
        "masked_lm_weights": (np.arange(PREDICTIONS) < targets[:, None]).astype(np.float32),
        "next_sentence_labels": random.integers(0, 2, ROWS).astype(np.int32),
    }


def pack(features):
    lengths = features["input_mask"].sum(axis=1)
    targets = features["masked_lm_weights"].sum(axis=1).astype(np.int64)
    shape = choose_packed_shape(lengths, targets, max_seq_length=LENGTH)
    rows, count = assign_rows(lengths, targets, shape)
    assert count <= ROWS * 2 // 3
    return pack_features(features, rows, count, shape)


def sums_and_gradients(model, features):
    batch = {name: tf.constant(rows) for name, rows in features.items()}
    loss = PretrainingLoss()
    with tf.GradientTape() as tape:
        parts = loss(model, batch, training=True, dropout_key=tf.constant([1, 2]))
        total = tf.add_n(list(parts.losses.values()))
    variables = [variable.value for variable in model.trainable_variables]
    weights = {name: float(value) for name, value in loss.weights(batch).items()}
    metrics = {name: [float(number) for number in pair] for name, pair in parts.metrics.items()}
    losses = {name: float(value) for name, value in parts.losses.items()}
    gradients = [tf.convert_to_tensor(g).numpy() for g in tape.gradient(total, variables)]
    return losses, weights, metrics, gradients


@pytest.mark.slow
def test_packed_sequences_have_the_losses_and_gradients_they_have_alone(model, features):
    losses, weights, metrics, gradients = sums_and_gradients(model, features)
    packed = sums_and_gradients(model, pack(features))
    assert packed[0] == pytest.approx(losses, rel=1e-5)
    assert packed[1] == weights == {
        "mlm_loss": features["masked_lm_weights"].sum(), "nsp_loss": ROWS,
    }  # fmt: skip
    assert packed[2] == metrics
    for ours, theirs in zip(packed[3], gradients, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


def test_sequences_of_a_row_do_not_see_each_other(model, features):
    packed = pack(features)
    other = dict(packed)
    first = packed["sequence_ids"] == 1
    other["input_word_ids"] = np.where(first, packed["input_word_ids"], 7)
    outputs = model({name: tf.constant(rows) for name, rows in packed.items()})
    changed = model({name: tf.constant(rows) for name, rows in other.items()})
    np.testing.assert_array_equal(outputs["nsp_logits"][:, 0], changed["nsp_logits"][:, 0])
    seconds = packed["next_sentence_weights"][:, 1] > 0
    differences = outputs["nsp_logits"][:, 1] - changed["nsp_logits"][:, 1]
    assert np.abs(differences.numpy()[seconds]).max(axis=1).min() > 1e-3
