import dataclasses
import gzip
import itertools
import tempfile
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from behavior.examples import fewer_examples
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.base.errors import InputError, UsageError
from bert_tf.config.bert import BertConfig
from bert_tf.data.examples.masking import masking_rules
from bert_tf.data.records.dataset_info import PretrainingData, encode_records
from bert_tf.data.records.epoch_records import (
    DynamicMasking,
    MaskingSchedule,
    block_order,
    row_order,
)
from bert_tf.data.records.pretraining_inputs import PretrainingInputs, evaluation_batches

LENGTH, PREDICTIONS = 8, 2


def description(directory="data", **changes):
    values = {
        "directory": str(directory),
        "max_seq_length": LENGTH,
        "max_predictions_per_seq": PREDICTIONS,
        "vocab_size": 50,
        "vocab_sha256": "0",
        "lowercase": True,
        "train_shards": ("train-00000-of-00001.tfrecord",),
        **changes,
    }
    return PretrainingData(**values)


def features(first, count):
    """Record whose first masked id is their number."""
    numbers = np.arange(first, first + count, dtype=np.int32)[:, None]
    ids = np.tile(np.arange(LENGTH, dtype=np.int32), (count, 1))
    return {
        "input_word_ids": ids,
        "input_mask": (ids < 6).astype(np.int32),
        "input_type_ids": (ids > 3).astype(np.int32),
        "masked_lm_positions": np.tile(np.array([[1, 0]], np.int32), (count, 1)),
        "masked_lm_ids": np.concatenate([numbers, np.zeros_like(numbers)], axis=1),
        "masked_lm_weights": np.tile(np.array([[1.0, 0.0]], np.float32), (count, 1)),
        "next_sentence_labels": numbers % 2,
    }


def write_shards(directory, sizes, *, compression="none", names="reference"):
    paths, first = [], 0
    for index, size in enumerate(sizes):
        data = encode_records(features(first, size), names)[0].tobytes() if size else b""
        path = Path(directory) / f"train-{index}"
        path.write_bytes(gzip.compress(data) if compression == "gzip" else data)
        paths.append(str(path))
        first += size
    return paths


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


TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{i}" for i in range(45))]


def write_unmasked(directory, count, *, compression="none", names="reference"):
    """Record `[CLS] a b.. [SEP] n n [SEP]` of 6 to 8 tokens, n telling the record's number."""
    numbers = np.arange(count, dtype=np.int32)
    lengths = 6 + numbers % 3
    ids = np.full((count, LENGTH), 0, np.int32)
    for row, length, number in zip(ids, lengths, numbers, strict=True):
        row[:length] = 5 + number
        row[0], row[2], row[length - 1] = 2, 3, 3
    starts = np.ones_like(ids)
    starts[:, 4] = 0
    made = {
        "input_word_ids": ids,
        "word_starts": starts,
        "next_sentence_labels": numbers[:, None] % 2,
    }
    data = encode_records(made, names, lengths=lengths)[0].tobytes()
    path = Path(directory) / "unmasked"
    path.write_bytes(gzip.compress(data) if compression == "gzip" else data)
    return [str(path)]


def masking_of(prob=0.4, **settings):
    rules = masking_rules(
        TOKENS,
        max_seq_length=LENGTH,
        max_predictions_per_seq=LENGTH,
        masked_lm_prob=prob,
        **settings,
    )
    return DynamicMasking(rules=rules, sep_id=3)


def dynamic_inputs(directory, *, packing="off", batch_size=5, names="reference", **settings):
    data = description(masking="dynamic", feature_names=names)
    return PretrainingInputs(
        write_unmasked(directory, 40, names=names),
        data,
        batch_size=batch_size,
        seed=1,
        block_records=16,
        packing=packing,
        masking=masking_of(**settings),
    )


def numpy_batches(inputs, first, count):
    batches = inputs.batches(first).take(count)
    return [{name: tensor.numpy() for name, tensor in batch.items()} for batch in batches]


@pytest.mark.parametrize("packing", ["off", "on"])
def test_masks_of_unmasked_records_differ_by_epoch_and_are_entered_anywhere(tmp_path, packing):
    inputs = dynamic_inputs(tmp_path, packing=packing)
    batches = numpy_batches(inputs, 0, 16)
    for ours, theirs in zip(numpy_batches(inputs, 7, 5), batches[7:12], strict=True):
        for name, rows in theirs.items():
            np.testing.assert_array_equal(ours[name], rows, err_msg=name)
    if packing == "on":
        return
    by_epoch = [{}, {}]
    for number, row in enumerate(
        itertools.chain(*(zip(*b.values(), strict=True) for b in batches))
    ):
        made = dict(zip(batches[0], row, strict=True))
        live = made["masked_lm_weights"] > 0
        ids = made["input_word_ids"].copy()
        ids[made["masked_lm_positions"][live]] = made["masked_lm_ids"][live]
        record = int(ids[1]) - 5
        length = int(made["input_mask"].sum())
        assert length == 6 + record % 3 and not ids[length:].any()
        assert ids[:length].tolist() == [2, ids[1], 3, *[ids[1]] * (length - 4), 3]
        assert made["input_type_ids"].tolist() == [0] * 3 + [1] * (length - 3) + [0] * (8 - length)
        assert made["next_sentence_labels"] == record % 2
        assert live.sum() == round(length * 0.4)
        by_epoch[number // 40][record] = made["masked_lm_positions"][live].tolist()
    assert by_epoch[0].keys() == by_epoch[1].keys() == set(range(40))
    assert sum(by_epoch[0][n] != by_epoch[1][n] for n in range(40)) > 20


def test_masked_words_of_unmasked_records_are_those_they_tell(tmp_path):
    inputs = dynamic_inputs(tmp_path, prob=0.25, whole_word_mask=True, names="model-garden")
    together = 0
    for batch in numpy_batches(inputs, 0, 16):
        for positions, weights in zip(
            batch["masked_lm_positions"], batch["masked_lm_weights"], strict=True
        ):
            chosen = set(positions[weights > 0].tolist())
            assert (3 in chosen) == (4 in chosen)
            together += 3 in chosen
    assert together > 5


def test_masked_records_are_not_taken_for_unmasked_ones(tmp_path):
    with pytest.raises(InputError, match="not match the manifest .unmasked, max_seq_length 8"):
        PretrainingInputs(
            write_shards(tmp_path, [3]),
            description(masking="dynamic"),
            batch_size=1,
            seed=1,
            masking=masking_of(),
        )


@pytest.mark.parametrize("packing", ["off", "on"])
def test_a_masking_schedule_falls_and_is_entered_anywhere(tmp_path, packing):
    """12 steps of 5 records are one and a half epochs, from all tokens to a quarter of them."""
    schedule = MaskingSchedule(first=1.0, last=0.25, records=60)
    inputs = PretrainingInputs(
        write_unmasked(tmp_path, 40),
        description(masking="dynamic"),
        batch_size=5,
        seed=1,
        block_records=16,
        packing=packing,
        masking=dataclasses.replace(masking_of(1.0), schedule=schedule),
    )
    batches = numpy_batches(inputs, 0, 12)
    for ours, theirs in zip(numpy_batches(inputs, 7, 5), batches[7:], strict=True):
        for name, rows in theirs.items():
            np.testing.assert_array_equal(ours[name], rows, err_msg=name)
    if packing == "on":
        return
    number = 0
    for batch in batches:
        lengths = batch["input_mask"].sum(axis=1)
        targets = (batch["masked_lm_weights"] > 0).sum(axis=1)
        for length, count in zip(lengths.tolist(), targets.tolist(), strict=True):
            fraction = 1.0 - 0.75 * number / 59
            # [CLS] and [SEP], three in each row, are never masked.
            assert count == min(max(1, round(length * fraction)), length - 3)
            number += 1


def test_a_constant_schedule_masks_like_the_fraction(tmp_path):
    usual = dynamic_inputs(tmp_path, prob=0.4)
    schedule = MaskingSchedule(first=0.4, last=0.4, records=80)
    constant = PretrainingInputs(
        write_unmasked(tmp_path, 40),
        description(masking="dynamic"),
        batch_size=5,
        seed=1,
        block_records=16,
        masking=dataclasses.replace(masking_of(0.4), schedule=schedule),
    )
    for ours, theirs in zip(numpy_batches(constant, 0, 4), numpy_batches(usual, 0, 4), strict=True):
        for name, rows in theirs.items():
            np.testing.assert_array_equal(ours[name], rows, err_msg=name)
