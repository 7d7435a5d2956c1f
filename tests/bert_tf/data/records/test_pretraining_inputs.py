"""Batches of pretraining records: entered anywhere, packed or not, checked when they are read."""

import gzip
import itertools
import tempfile
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from behavior.examples import fewer_examples
from behavior.pretraining_shards import LENGTH, description, features, write_shards
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.base.errors import InputError, UsageError
from bert_tf.config.bert import BertConfig
from bert_tf.data.records.dataset_info import PretrainingData, encode_records
from bert_tf.data.records.epoch_records import (
    block_order,
    row_order,
)
from bert_tf.data.records.pretraining_inputs import PretrainingInputs, evaluation_batches


def numbers_of(batches):
    return [int(number) for batch in batches for number in batch["masked_lm_ids"][:, 0]]


@pytest.mark.slow  # reads whole epochs from many positions
@given(
    sizes=st.lists(st.integers(0, 9), min_size=1, max_size=4).filter(any),
    block_records=st.integers(1, 5),
    batch_size=st.integers(1, 7),
    first_step=st.integers(0, 12),
    seed=st.integers(-5, 2**63),
    compression=st.sampled_from(["none", "gzip"]),
)
@fewer_examples(0.25)
def test_any_position_is_entered_where_it_would_have_been_reached(
    sizes, block_records, batch_size, first_step, seed, compression
):
    with tempfile.TemporaryDirectory() as directory:
        inputs = PretrainingInputs(
            write_shards(directory, sizes, compression=compression),
            description(compression=compression),
            batch_size=batch_size,
            seed=seed,
            block_records=block_records,
        )
        total = sum(sizes)
        assert inputs.record_count == total
        steps = -(-2 * total // batch_size) + first_step
        read = numbers_of(inputs.batches(0).take(steps))
        for epoch in range(2):
            assert sorted(read[epoch * total : (epoch + 1) * total]) == list(range(total))
        later = numbers_of(inputs.batches(first_step).take(steps - first_step))
        assert later == read[first_step * batch_size :]
        position = inputs.position(first_step)
        assert position["epoch"] == first_step * batch_size // total
        assert position["records"] == total


@pytest.mark.slow
def test_sequences_longer_than_16_bits_count_are_measured(tmp_path):
    length, lengths = 1 << 16, (1 << 16, 40_000, 25_000)
    positions = np.arange(length)
    ids = np.tile(np.arange(length, dtype=np.int32) % 50, (3, 1))
    mask = np.array([positions < each for each in lengths], np.int32)
    values = {
        **features(0, 3),
        "input_word_ids": ids,
        "input_mask": mask,
        "input_type_ids": 0 * ids,
    }
    (tmp_path / "train").write_bytes(encode_records(values, "reference")[0].tobytes())
    inputs = PretrainingInputs(
        [str(tmp_path / "train")],
        description(max_seq_length=length),
        batch_size=2,
        seed=1,
        packing="on",
    )
    assert inputs.packing.tokens == sum(lengths)
    assert inputs.packing.block_rows.sum() == 2  # the first alone, and the others together


def test_epochs_seeds_and_blocks_have_orders_of_their_own():
    names = list(itertools.product((1, 2), (0, 1), (0, 1)))
    orders = [row_order(seed, epoch, block, 20) for seed, epoch, block in names]
    orders += [block_order(seed, epoch, 20) for seed, epoch, block in names if block == 0]
    assert len({tuple(order) for order in orders}) == 12


@pytest.mark.parametrize("names", ["reference", "model-garden"])
def test_a_batch_has_the_names_and_shapes_of_the_model(tmp_path, names):
    data = description(feature_names=names)
    paths = write_shards(tmp_path, [3], names=names)
    inputs = PretrainingInputs(paths, data, batch_size=3, seed=1)
    batch = next(iter(inputs.batches(0)))
    expected = features(0, 3)
    order = batch["masked_lm_ids"][:, 0].numpy()
    for name, rows in expected.items():
        rows = rows[order, 0] if name == "next_sentence_labels" else rows[order]
        np.testing.assert_array_equal(batch[name], rows)
        assert batch[name].dtype == (tf.float32 if name == "masked_lm_weights" else tf.int32)
        assert inputs.batches(0).element_spec[name].shape == rows.shape, "static shapes"


@pytest.mark.parametrize(("limit", "rows"), [(0, 7), (5, 5)])
def test_evaluation_reads_the_first_records_and_fills_the_last_batch(tmp_path, limit, rows):
    shards = [Path(path).name for path in write_shards(tmp_path, [4, 3])]
    records = description(tmp_path, eval_shards=shards)
    batches = list(evaluation_batches(records, batch_size=4, limit=limit))
    assert len(batches) == 2
    assert numbers_of(batches)[:rows] == list(range(rows))
    filling = tf.reduce_sum(tf.concat([batch["input_mask"] for batch in batches], 0), 1)[rows:]
    assert filling.numpy().tolist() == [0] * (8 - rows)


def test_a_shard_that_is_cut_off_is_named(tmp_path):
    [path] = write_shards(tmp_path, [3])
    Path(path).write_bytes(Path(path).read_bytes()[:-1])
    with pytest.raises(InputError, match=r"train-0: record 2 \(at byte \d+\) is cut off"):
        PretrainingInputs([path], description(), batch_size=1, seed=1)


def test_a_flipped_bit_is_found_when_its_block_is_read(tmp_path):
    [path] = write_shards(tmp_path, [40])
    content = bytearray(Path(path).read_bytes())
    content[-20] ^= 1
    Path(path).write_bytes(bytes(content))
    inputs = PretrainingInputs([path], description(), batch_size=40, seed=1, block_records=8)
    with pytest.raises(tf.errors.OpError):
        list(inputs.batches(0).take(1))
    assert "record 39 is damaged (its checksum is wrong)" in str(inputs.failure)


def test_records_of_other_lengths_than_the_manifest_says_are_refused(tmp_path):
    with pytest.raises(InputError, match="not match the manifest .max_seq_length 16"):
        PretrainingInputs(
            write_shards(tmp_path, [3]), description(max_seq_length=16), batch_size=1, seed=1
        )


def test_no_records_are_refused(tmp_path):
    with pytest.raises(InputError, match="no records in 2 training shards"):
        PretrainingInputs(write_shards(tmp_path, [0, 0]), description(), batch_size=1, seed=1)


def test_a_missing_shard_is_named(tmp_path):
    with pytest.raises(UsageError, match="absent: no such file, but the manifest"):
        PretrainingInputs([str(tmp_path / "absent")], description(), batch_size=1, seed=1)


def test_a_folder_without_manifest_is_no_data():
    with pytest.raises(UsageError, match="no manifest.json.*bert-pipeline preprocess"):
        PretrainingData.from_manifest("data", None)
    with pytest.raises(UsageError, match="the output of 'vocab', not pretraining data"):
        PretrainingData.from_manifest("data", {"command": "vocab"})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vocab_size": 40}, "vocab_size is 40, .* vocabulary of 50 entries"),
        ({"max_position_embeddings": 4}, "max_position_embeddings is 4, .* max_seq_length 8"),
        ({"type_vocab_size": 1}, "type_vocab_size is 1, .* two segments"),
    ],
)
def test_a_model_that_does_not_fit_is_refused(changes, message):
    config = BertConfig(**{"vocab_size": 50, "hidden_size": 8, "num_attention_heads": 2, **changes})
    with pytest.raises(UsageError, match=f"--size tiny: {message}"):
        description().check_model(config, "--size tiny")


def uneven_features(first, count):
    """Like `features`, but record i has 2 + i % 7 tokens."""
    made = features(first, count)
    lengths = 2 + np.arange(first, first + count) % 7
    made["input_mask"] = (np.arange(LENGTH) < lengths[:, None]).astype(np.int32)
    return made


def write_uneven(directory, sizes, *, compression="none"):
    paths, first = [], 0
    for index, size in enumerate(sizes):
        data = encode_records(uneven_features(first, size))[0].tobytes() if size else b""
        path = Path(directory) / f"uneven-{index}"
        path.write_bytes(gzip.compress(data) if compression == "gzip" else data)
        paths.append(str(path))
        first += size
    return paths


def packed_numbers(batch):
    """Numbers of the records in a packed batch: each has one target, which is its number."""
    return batch["masked_lm_ids"].numpy()[batch["masked_lm_weights"].numpy() > 0].tolist()


@pytest.mark.slow  # reads whole epochs from many positions
@given(
    sizes=st.lists(st.integers(0, 30), min_size=1, max_size=3).filter(any),
    block_records=st.integers(1, 12),
    batch_size=st.integers(1, 9),
    first_step=st.integers(0, 12),
    compression=st.sampled_from(["none", "gzip"]),
)
@fewer_examples(0.25)
def test_packed_rows_are_entered_anywhere_and_hold_each_record_once_an_epoch(
    sizes, block_records, batch_size, first_step, compression
):
    with tempfile.TemporaryDirectory() as directory:
        inputs = PretrainingInputs(
            write_uneven(directory, sizes, compression=compression),
            description(compression=compression),
            batch_size=batch_size,
            seed=3,
            block_records=block_records,
            packing="on",
        )
        rows_per_epoch = int(inputs.packing.block_rows.sum())
        steps = -(-2 * rows_per_epoch // inputs.rows) + first_step
        batches = list(inputs.batches(0).take(steps))
        rows = [
            [number for number, weight in zip(ids, weights, strict=True) if weight]
            for batch in batches
            for ids, weights in zip(
                batch["masked_lm_ids"].numpy(), batch["masked_lm_weights"].numpy(), strict=True
            )
        ]
        for epoch in range(2):
            of_epoch = rows[epoch * rows_per_epoch : (epoch + 1) * rows_per_epoch]
            assert sorted(itertools.chain(*of_epoch)) == list(range(sum(sizes)))
        read = [packed_numbers(batch) for batch in batches]
        later = inputs.batches(first_step).take(steps - first_step)
        assert [packed_numbers(batch) for batch in later] == read[first_step:]
        assert inputs.sequences_before(first_step) == sum(map(len, read[:first_step]))
        assert inputs.position(first_step)["rows"] == rows_per_epoch


def test_packed_batches_hold_about_as_many_sequences_and_are_shaped_statically(tmp_path):
    paths = write_uneven(tmp_path, [700])
    inputs = PretrainingInputs(
        paths, description(), batch_size=64, seed=1, packing="auto", row_multiple=4
    )
    assert inputs.packing.packing_efficiency > 0.95
    assert inputs.rows % 4 == 0
    assert abs(inputs.rows * inputs.packing.sequences_per_row / 64 - 1) < 0.1
    for name, spec in inputs.batches(0).element_spec.items():
        assert spec.shape.is_fully_defined() and spec.shape[0] == inputs.rows, name


def test_rows_that_are_full_are_not_packed_unless_asked_to(tmp_path):
    paths = write_shards(tmp_path, [20])
    made = {
        packing: PretrainingInputs(paths, description(), batch_size=4, seed=1, packing=packing)
        for packing in ("auto", "on", "off")
    }
    assert made["auto"].packing is None and made["off"].packing is None
    assert made["on"].packing.sequences_per_row == 1.0 and made["on"].rows == 4


def test_a_record_without_tokens_cannot_be_packed(tmp_path):
    made = uneven_features(0, 5)
    made["input_mask"][3] = 0
    path = tmp_path / "empty"
    path.write_bytes(encode_records(made)[0].tobytes())
    with pytest.raises(InputError, match="empty: record 3 is damaged, or not of 1 to 8 tokens"):
        PretrainingInputs([str(path)], description(), batch_size=1, seed=1, packing="auto")
