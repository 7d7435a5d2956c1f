"""Fine-tuning batches: exact positions, every row once an epoch, fillers that weigh nothing."""

from __future__ import annotations

import numpy as np
import pytest

from bert_tf.base.arrays import offsets_of
from bert_tf.data.rows.encoded_rows import EncodedRows
from bert_tf.tasks.base.task_data import TaskData
from bert_tf.tasks.running.batches import FinetuningInputs


def make_inputs(*, batch_size: int = 5, compares_rows: bool = False) -> FinetuningInputs:
    """23 rows of 3 to 25 tokens; a row's target, all of its ids and the target of each token are
    its number plus 1."""
    lengths = np.arange(3, 26)
    numbers = np.arange(1, 24, dtype=np.int32)
    rows = EncodedRows(
        ids=np.repeat(numbers, lengths),
        offsets=offsets_of(lengths),
        second_starts=lengths.astype(np.int32),
    )
    data = TaskData(
        source=range(23),
        rows=rows,
        targets={"label": numbers},
        weights=np.ones(23, np.float32),
        token_targets={"tag": rows.ids},
        compares_rows=compares_rows,
    )
    return FinetuningInputs(
        data,
        batch_size=batch_size,
        row_multiple=2,
        length_multiple=8,
        max_seq_length=25,
        pad_id=0,
        seed=3,
    )


@pytest.fixture
def inputs() -> FinetuningInputs:
    return make_inputs()


def read(inputs, first, count):
    return [
        {name: values.numpy() for name, values in batch.items()}
        for batch in inputs.batches(first).take(count)
    ]


def test_an_epoch_holds_every_row_once(inputs):
    assert inputs.steps_per_epoch == 5
    batches = read(inputs, 0, 10)
    for epoch in (batches[:5], batches[5:]):
        labels = np.concatenate([batch["label"] for batch in epoch])
        assert sorted(labels[labels > 0].tolist()) == list(range(1, 24))
    assert sum(batch["row_weights"].sum() for batch in batches) == 46
    for batch in batches:
        assert batch["input_word_ids"].shape[0] == 6
        assert batch["input_word_ids"].shape[1] in (8, 16, 24, 25)
        expected = batch["label"][:, None] * batch["input_mask"]
        np.testing.assert_array_equal(batch["input_word_ids"], expected)
        np.testing.assert_array_equal(batch["tag"], expected)
        np.testing.assert_array_equal(batch["row_weights"] > 0, batch["label"] > 0)


def test_batches_from_the_middle_are_those_of_the_whole(inputs):
    whole, middle = read(inputs, 0, 12), read(inputs, 7, 5)
    for one, other in zip(whole[7:], middle, strict=True):
        for name, values in one.items():
            np.testing.assert_array_equal(values, other[name])


def test_position_names_epoch_and_batch_and_knows_the_data(inputs):
    position = inputs.position(7)
    assert (position["epoch"], position["batch"], position["rows"]) == (1, 2, 23)
    changed = FinetuningInputs(
        TaskData(
            source=range(23),
            rows=inputs._data.rows,
            targets={"label": np.zeros(23, np.int32)},
            weights=np.ones(23, np.float32),
        ),
        batch_size=5,
        row_multiple=2,
        length_multiple=8,
        max_seq_length=25,
        pad_id=0,
        seed=3,
    )
    assert changed.position(7) != position


def test_rows_that_are_compared_meet_rows_of_any_length():
    def ranges(count, **options):
        for batch in read(make_inputs(**options), 0, count):
            lengths = batch["input_mask"].sum(axis=1)[batch["row_weights"] > 0]
            yield int(lengths.max() - lengths.min())

    # Sorted in windows of 4 rows, two neighbors are 24 / 5 apart on average, any two rows 24 / 3.
    assert np.mean([*ranges(240, batch_size=2)]) < 5.5
    assert min(ranges(6, batch_size=8, compares_rows=True)) > 7
