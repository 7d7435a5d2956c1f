"""Packing: every sequence in one row, none beyond its room, and nothing lost."""

import numpy as np
import pytest
from behavior.examples import fewer_examples
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.data.records.packed_records import (
    PackedShape,
    assign_rows,
    choose_packed_shape,
    pack_features,
)

LENGTH, PREDICTIONS = 16, 4


@st.composite
def sequences(draw):
    """Lengths and predictions of some sequences."""
    pairs = draw(
        st.lists(st.tuples(st.integers(1, LENGTH), st.integers(0, PREDICTIONS)), min_size=1)
    )
    lengths, predictions = np.array(pairs).T
    return lengths, np.minimum(lengths, predictions)


def make_features(lengths, predictions, seed=0):
    """Return unpacked features with any ids, weights in front, and any values behind them."""
    random = np.random.default_rng(seed)
    rows = len(lengths)
    mask = (np.arange(LENGTH) < lengths[:, None]).astype(np.int32)
    weights = (np.arange(PREDICTIONS) < predictions[:, None]).astype(np.float32)
    return {
        "input_word_ids": random.integers(1, 100, (rows, LENGTH)).astype(np.int32) * mask,
        "input_mask": mask,
        "input_type_ids": random.integers(0, 2, (rows, LENGTH)).astype(np.int32) * mask,
        "masked_lm_positions": (random.integers(0, 99, weights.shape) % lengths[:, None]).astype(
            np.int32
        ),
        "masked_lm_ids": random.integers(1, 100, weights.shape).astype(np.int32),
        "masked_lm_weights": weights,
        "next_sentence_labels": random.integers(0, 2, rows).astype(np.int32),
    }


@given(sequences(), st.randoms())
def test_rows_hold_what_they_have_room_for_however_sequences_come(measures, random):
    lengths, predictions = measures
    shape = choose_packed_shape(lengths, predictions, max_seq_length=LENGTH)
    rows, count = assign_rows(lengths, predictions, shape)
    assert set(rows) == set(range(count))
    assert np.bincount(rows, lengths).max() <= LENGTH
    assert np.bincount(rows, predictions).max() <= shape.predictions
    assert np.bincount(rows).max() <= shape.sequences
    order = np.array(random.sample(range(len(lengths)), len(lengths)))
    assert assign_rows(lengths[order], predictions[order], shape)[1] == count


@pytest.mark.parametrize(
    ("lengths", "predictions", "room"),
    [([64, 64], [10, 10], (22, 2)), ([96, 16, 32], [14, 2, 5], (21, 8))],
)
def test_the_room_of_rows(lengths, predictions, room):
    shape = choose_packed_shape(np.array(lengths), np.array(predictions), max_seq_length=128)
    assert (shape.predictions, shape.sequences) == room


@pytest.mark.parametrize(("full_fraction", "shortest", "longest"), [(0.4, 8, 60), (0.0, 5, 40)])
def test_rows_are_nearly_full(full_fraction, shortest, longest):
    random = np.random.default_rng(0)
    lengths = random.integers(shortest, longest, 1024)
    lengths[random.random(1024) < full_fraction] = 128
    predictions = np.maximum(1, np.rint(lengths * 0.15)).astype(np.int64)
    shape = choose_packed_shape(lengths, predictions, max_seq_length=128)
    _, count = assign_rows(lengths, predictions, shape)
    assert lengths.sum() / (count * 128) > 0.96


def test_a_row_is_laid_out_as_documented():
    lengths, none = np.array([3, 2]), np.array([0, 0])
    features = make_features(lengths, none)
    features["input_word_ids"][0, :3], features["input_word_ids"][1, :2] = [7, 8, 9], [5, 6]
    shape = PackedShape(tokens=6, predictions=1, sequences=2)
    packed = pack_features(features, np.array([0, 0]), 1, shape)
    assert packed["input_word_ids"].tolist() == [[7, 8, 9, 5, 6, 0]]
    assert packed["input_mask"].tolist() == [[1, 1, 1, 1, 1, 0]]
    assert packed["position_ids"].tolist() == [[0, 1, 2, 0, 1, 0]]
    assert packed["sequence_ids"].tolist() == [[1, 1, 1, 2, 2, 0]]
    assert packed["cls_positions"].tolist() == [[0, 3]]
    assert packed["next_sentence_weights"].tolist() == [[1.0, 1.0]]


@given(sequences(), st.integers(0, 9))
@fewer_examples(0.83)
def test_every_sequence_is_found_again(measures, seed):
    lengths, predictions = measures
    features = make_features(lengths, predictions, seed)
    shape = choose_packed_shape(lengths, predictions, max_seq_length=LENGTH)
    rows, count = assign_rows(lengths, predictions, shape)
    packed = pack_features(features, rows, count, shape)
    assert packed["next_sentence_weights"].sum() == packed["sequence_ids"].max(1).sum()
    found = []
    for row in range(count):
        for slot in np.flatnonzero(packed["next_sentence_weights"][row]):
            here = packed["sequence_ids"][row] == slot + 1
            start = int(packed["cls_positions"][row, slot])
            assert np.flatnonzero(here)[0] == start
            assert packed["position_ids"][row, here].tolist() == list(range(here.sum()))
            targets = packed["masked_lm_weights"][row] > 0
            positions = packed["masked_lm_positions"][row]
            targets &= here[positions]
            found.append(
                (
                    packed["input_word_ids"][row, here].tolist(),
                    packed["input_type_ids"][row, here].tolist(),
                    (positions[targets] - start).tolist(),
                    packed["masked_lm_ids"][row, targets].tolist(),
                    int(packed["next_sentence_labels"][row, slot]),
                )
            )
    expected = [
        (
            features["input_word_ids"][i, :length].tolist(),
            features["input_type_ids"][i, :length].tolist(),
            features["masked_lm_positions"][i, :targets].tolist(),
            features["masked_lm_ids"][i, :targets].tolist(),
            int(features["next_sentence_labels"][i]),
        )
        for i, (length, targets) in enumerate(zip(lengths, predictions, strict=True))
    ]
    assert sorted(found) == sorted(expected)
