"""Records without masks: masked anew in every epoch, by rules or by a schedule."""

import dataclasses
import gzip
import itertools
from pathlib import Path

import numpy as np
import pytest
from behavior.pretraining_shards import LENGTH, description, write_shards

from bert_tf.base.errors import InputError
from bert_tf.data.examples.masking import masking_rules
from bert_tf.data.records.dataset_info import encode_records
from bert_tf.data.records.epoch_records import (
    DynamicMasking,
    MaskingSchedule,
)
from bert_tf.data.records.pretraining_inputs import PretrainingInputs

TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{i}" for i in range(45))]


def write_unmasked(directory, count, *, compression="none", names="reference"):
    """Record `[CLS] a b.. [SEP] n n [SEP]` of 6 to 8 tokens, n telling the record's number."""
    numbers = np.arange(count, dtype=np.int32)
    lengths = 6 + numbers % 3
    ids = np.full((count, LENGTH), 0, np.int32)
    for row, length, number in zip(ids, lengths, numbers, strict=True):
        row[:length] = 5 + number
        row[0] = 2
        row[2] = 3
        row[length - 1] = 3
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
