"""The choice of length, batch, rate and epochs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.config.bert import SIZES, sized_config
from pipeline.proposal.finetuning import choose_length, choose_recipe


@given(st.lists(st.integers(2, 600), min_size=1))
def test_a_length_covers_99_percent_of_the_rows_up_to_the_model_s(lengths):
    lengths = np.array(lengths)
    chosen = choose_length(lengths, in_windows=False, default=128, longest_of_model=512)
    assert 32 <= chosen <= 512
    assert chosen == 512 or np.mean(lengths <= chosen) >= 0.99
    assert chosen - 16 < max(lengths.max(), 32)


def test_windows_have_the_length_of_the_task():
    lengths = np.array([20, 500])
    assert choose_length(lengths, in_windows=True, default=384, longest_of_model=512) == 384
    assert choose_length(lengths, in_windows=True, default=384, longest_of_model=256) == 256


@pytest.mark.parametrize("rows", [10, 240, 2_490, 67_349, 400_000])
def test_few_rows_get_more_epochs_and_smaller_batches(rows):
    config = sized_config("base", 100)
    recipe = choose_recipe(config, max_seq_length=128, rows=rows, sequences_per_row=1.0)
    assert recipe.batch_size == (16 if rows < 4000 else 32)
    assert recipe.steps >= min(300, 20 * -(-rows // 16)) or recipe.epochs == 20
    assert recipe.epochs == 3 or recipe.steps < 300 + -(-rows // recipe.batch_size)
    assert recipe.steps_of(batch_size=recipe.batch_size, epochs=recipe.epochs) == recipe.steps


def test_wider_models_learn_at_lower_rates():
    rates = [
        choose_recipe(
            sized_config(size, 100), max_seq_length=64, rows=100, sequences_per_row=1.0
        ).learning_rate
        for size in SIZES
    ]
    assert rates == sorted(rates, reverse=True)
    assert 2e-5 <= rates[4] <= 5e-5  # base: Devlin et al. 2019, appendix A.3
