"""Record bytes against protobuf, tf.io.parse_example, TFRecordWriter and google-crc32c."""

import itertools

import google_crc32c
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.base.errors import InputError
from bert_tf.data.examples.features import (
    RowFormat,
    pair_lengths,
    pretraining_features,
    unmasked_features,
)
from bert_tf.data.examples.masking import masking_rules
from bert_tf.data.examples.segments import PAIR
from bert_tf.data.records.dataset_info import (
    FEATURE_NAMES,
    TOKEN_COUNTS_FILE,
    encode_records,
    file_names,
    read_token_counts,
    shard_name,
    write_token_counts,
)
from bert_tf.data.records.example_bytes import frame_examples
from bert_tf.data.records.parsing import feature_spec, unmasked_feature_spec


def record_bytes(frames: np.ndarray, offsets: np.ndarray) -> list[bytes]:
    return [frames[start + 12 : end - 4].tobytes() for start, end in itertools.pairwise(offsets)]


def as_protobufs(features: dict[str, np.ndarray]) -> list[tf.train.Example]:
    examples = []
    for row in range(len(next(iter(features.values())))):
        example = tf.train.Example()
        for name, values in features.items():
            feature = example.features.feature[name]
            kind = feature.float_list if values.dtype == np.float32 else feature.int64_list
            kind.value.extend(values[row].tolist())
        examples.append(example)
    return examples


@pytest.mark.slow
@given(data=st.data(), rows=st.integers(1, 5))
def test_protobuf_reads_any_features(data, rows):
    names = data.draw(st.lists(st.text("abÄz_", min_size=1), min_size=1, max_size=5, unique=True))
    features = {}
    for name in names:
        width = data.draw(st.integers(1, 150))
        if data.draw(st.booleans()):
            values = data.draw(
                st.lists(st.floats(width=32, allow_nan=False), min_size=rows, max_size=rows)
            )
            kind = np.float32
        else:
            values = data.draw(st.lists(st.integers(0, 2**31 - 1), min_size=rows, max_size=rows))
            kind = np.int32
        features[name] = np.tile(np.array(values, kind)[:, None], (1, width))
        features[name][:, width // 2 :] = 0
    frames, offsets = frame_examples(features)
    read = [tf.train.Example.FromString(record) for record in record_bytes(frames, offsets)]
    assert read == as_protobufs(features)


@pytest.mark.parametrize("size", [1, 7, 8, 9, 31, 1000])
def test_checksums_equal_google_crc32c(size):
    values = np.random.default_rng(size).integers(0, 256, (1, size), np.int32)
    frame = frame_examples({"a": values})[0].tobytes()
    for data, checksum in ((frame[:8], frame[8:12]), (frame[12:-4], frame[-4:])):
        crc = google_crc32c.value(data)
        masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
        assert int.from_bytes(checksum, "little") == masked


def test_frames_equal_those_of_tensorflow(tmp_path):
    frames, offsets = frame_examples({"a": np.arange(600, dtype=np.int32).reshape(3, 200)})
    with tf.io.TFRecordWriter(str(tmp_path / "theirs")) as writer:
        for record in record_bytes(frames, offsets):
            writer.write(record)
    assert (tmp_path / "theirs").read_bytes() == frames.tobytes()


def three_pairs() -> np.ndarray:
    pairs = np.zeros(3, PAIR)
    pairs["key"] = [1, 2, 3]
    pairs["first_start"], pairs["first_length"] = [0, 4, 2], [3, 1, 6]
    pairs["second_start"], pairs["second_length"] = [3, 0, 9], [5, 2, 1]
    pairs["label"] = [False, True, True]
    return pairs


@pytest.mark.parametrize("names", sorted(FEATURE_NAMES))
def test_pretraining_records_parse_as_their_spec(names):
    vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{i}" for i in range(300))]
    rules = masking_rules(
        vocab,
        max_seq_length=16,
        max_predictions_per_seq=4,
        masked_lm_prob=0.15,
        whole_word_mask=False,
    )
    tokens = np.arange(200, 220, dtype=np.int32)
    features = pretraining_features(
        tokens,
        three_pairs(),
        rules,
        RowFormat(max_seq_length=16, cls_id=2, sep_id=3, pad_id=0),
        max_predictions_per_seq=4,
    )
    frames, offsets = encode_records(features, names)
    parsed = tf.io.parse_example(record_bytes(frames, offsets), feature_spec(16, 4, names))
    by_file_name = {FEATURE_NAMES[names][name]: values for name, values in features.items()}
    assert record_bytes(frames, offsets) == [
        example.SerializeToString(deterministic=True) for example in as_protobufs(by_file_name)
    ]
    assert set(parsed) == set(FEATURE_NAMES[names].values())
    for name, values in features.items():
        assert (parsed[FEATURE_NAMES[names][name]].numpy() == values).all()
    assert parsed["next_sentence_labels"].numpy().tolist() == [[0], [1], [1]]
    assert features["input_mask"].sum(axis=1).tolist() == [11, 6, 10]
    assert features["input_type_ids"].tolist() == [
        [0] * 5 + [1] * 6 + [0] * 5,
        [0] * 3 + [1] * 3 + [0] * 10,
        [0] * 8 + [1] * 2 + [0] * 6,
    ]
    assert features["masked_lm_weights"].sum(axis=1).tolist() == [2.0, 1.0, 2.0]
    restored = features["input_word_ids"].copy()
    for row, (positions, ids, weights) in enumerate(
        zip(
            features["masked_lm_positions"],
            features["masked_lm_ids"],
            features["masked_lm_weights"],
            strict=True,
        )
    ):
        restored[row, positions[weights > 0]] = ids[weights > 0]
    assert restored.tolist() == [
        [2, 200, 201, 202, 3, 203, 204, 205, 206, 207, 3, 0, 0, 0, 0, 0],
        [2, 204, 3, 200, 201, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        [2, 202, 203, 204, 205, 206, 207, 3, 209, 3, 0, 0, 0, 0, 0, 0],
    ]


def test_token_counts_come_back(tmp_path):
    write_token_counts(np.array([0, 7, 2**40]), tmp_path)
    assert read_token_counts(tmp_path, 3).tolist() == [0, 7, 2**40]


@pytest.mark.parametrize("text", ["1\n2\n", "1\n2\n-3\n", "1\nx\n3\n", "1\n2\n" + "9" * 30])
def test_damaged_token_counts_are_refused(tmp_path, text):
    (tmp_path / TOKEN_COUNTS_FILE).write_text(text)
    with pytest.raises(InputError, match="expected one whole number per line"):
        read_token_counts(tmp_path, 3)


def test_shard_names():
    assert shard_name("train", 3, 64) == "train-00003-of-00064.tfrecord"
    assert shard_name("eval", 0, 1, compression="gzip") == "eval-00000-of-00001.tfrecord.gz"


@pytest.mark.parametrize("names", sorted(FEATURE_NAMES))
def test_unmasked_records_have_no_padding(names):
    vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{i}" for i in range(300))]
    begins_word = np.arange(len(vocab)) % 5 > 0
    pairs = three_pairs()
    pairs["second_length"][1] = 0
    features = unmasked_features(
        np.arange(200, 220, dtype=np.int32),
        pairs,
        begins_word,
        RowFormat(max_seq_length=16, cls_id=2, sep_id=3, pad_id=0),
    )
    lengths = pair_lengths(pairs)
    assert lengths.tolist() == [11, 3, 10]
    frames, offsets = encode_records(features, names, lengths=lengths)
    expected = [
        [2, 200, 201, 202, 3, 203, 204, 205, 206, 207, 3],
        [2, 204, 3],
        [2, 202, 203, 204, 205, 206, 207, 3, 209, 3],
    ]
    examples = []
    for ids, label in zip(expected, (0, 1, 1), strict=True):
        example = tf.train.Example()
        values = {
            file_names(names)["input_word_ids"]: ids,
            "word_starts": [int(begins_word[token]) for token in ids],
            "next_sentence_labels": [label],
        }
        for name, numbers in values.items():
            example.features.feature[name].int64_list.value.extend(numbers)
        examples.append(example.SerializeToString(deterministic=True))
    assert record_bytes(frames, offsets) == examples
    parsed = tf.io.parse_example(examples, unmasked_feature_spec(names))
    assert parsed[file_names(names)["input_word_ids"]].to_list() == expected
