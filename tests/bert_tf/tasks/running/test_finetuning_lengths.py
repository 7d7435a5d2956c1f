"""How far the lengths of batches are padded."""

import pytest

from bert_tf.tasks.running import finetuning
from bert_tf.training.arithmetic import PrecisionPolicy


@pytest.mark.parametrize(("is_accelerator", "multiple"), [(False, 1), (True, 8)])
def test_lengths_are_those_of_the_longest_rows_but_for_accelerators(
    is_accelerator, multiple, monkeypatch
):
    monkeypatch.setattr(finetuning, "has_accelerator", lambda: is_accelerator)
    precision = PrecisionPolicy("mixed_bfloat16", use_xla=False)
    assert finetuning.length_multiple(precision, 128) == multiple


@pytest.mark.parametrize("max_seq_length", [8, 25, 128, 384, 512])
def test_xla_compiles_few_lengths(max_seq_length):
    multiple = finetuning.length_multiple(PrecisionPolicy("float32", use_xla=True), max_seq_length)
    assert multiple % 8 == 0
    assert -(-max_seq_length // multiple) <= 4
