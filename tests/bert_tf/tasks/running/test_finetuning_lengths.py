"""How far the lengths of batches are padded."""

import numpy as np
import pytest

from bert_tf.data.rows.encoded_rows import padded_length
from bert_tf.tasks.running import finetuning
from bert_tf.training.arithmetic import PrecisionPolicy


@pytest.mark.parametrize(("is_accelerator", "multiple"), [(False, 1), (True, 8)])
def test_lengths_are_those_of_the_longest_rows_but_for_accelerators(
    is_accelerator, multiple, monkeypatch
):
    monkeypatch.setattr(finetuning, "has_accelerator", lambda: is_accelerator)
    precision = PrecisionPolicy("mixed_bfloat16", use_xla=False)
    assert finetuning.length_multiple(precision) == multiple


@pytest.mark.parametrize("most", [8, 25, 128, 384, 512])
def test_xla_compiles_at_most_eight_lengths_and_little_padding(most):
    lengths = finetuning.length_multiple(PrecisionPolicy("float32", use_xla=True))
    padded = {
        length: padded_length(np.array([length]), lengths, most) for length in range(1, most + 1)
    }
    assert len(set(padded.values())) <= 8
    for length, result in padded.items():
        assert length <= result <= max(32, 2 * length)
    assert padded_length(np.array([513]), lengths) == 1024
