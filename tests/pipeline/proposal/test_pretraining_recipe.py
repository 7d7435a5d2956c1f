"""The choice of sizes, length, batch, rate and steps for an amount of text."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.config.bert import SIZES, sized_config
from pipeline.proposal.pretraining_recipe import (
    choose_length,
    choose_recipe,
    choose_size,
    choose_vocab_size,
)


def test_bert_itself_is_what_its_corpus_gets():
    """Devlin et al. (2019, A.2): 3.3 billion words, a million steps of 256 x 512, 40 epochs."""
    words = 3.3e9
    assert choose_size(words, 30_000) == "large"
    base = choose_recipe("base", tokens=words, max_seq_length=512)
    assert (base.batch_size, base.learning_rate, base.max_predictions_per_seq) == (256, 1e-4, 77)
    assert base.steps == pytest.approx(1e6, rel=0.01)
    assert base.passes_over(words) == pytest.approx(40, abs=0.5)


@given(st.floats(1, 1e12), st.floats(1, 1e12))
def test_more_text_never_gets_a_smaller_model(one, other):
    order = list(SIZES)
    less, more = (order.index(choose_size(tokens, 8_000)) for tokens in sorted((one, other)))
    assert less <= more


@given(st.sampled_from(list(SIZES)), st.floats(1, 1e12), st.sampled_from([32, 128, 512]))
def test_recipes_are_possible_runs(size, tokens, length):
    recipe = choose_recipe(size, tokens=tokens, max_seq_length=length)
    assert 16 <= recipe.batch_size <= 256 and 1 <= recipe.steps <= 1_000_000
    assert 1 <= recipe.eval_every <= recipe.steps
    assert recipe.max_predictions_per_seq <= length - 3
    if recipe.batch_size > 16:
        assert recipe.steps >= 9_900
    assert recipe.passes_over(tokens) <= 44 or recipe.steps < 10


def test_what_is_decided_already_decides_the_rest():
    free = choose_recipe("tiny", tokens=1e8, max_seq_length=128)
    large = choose_recipe("tiny", tokens=1e8, max_seq_length=128, batch_size=4 * free.batch_size)
    assert large.batch_size == 4 * free.batch_size
    assert large.steps == pytest.approx(free.steps / 4, rel=0.05), "the same epochs"
    short = choose_recipe("tiny", tokens=1e8, max_seq_length=128, steps=500)
    assert (short.batch_size, short.steps, short.eval_every) == (free.batch_size, 500, 25)


def test_a_size_has_twenty_tokens_per_weight_in_forty_epochs():
    weights = sized_config("small", 16_000).encoder_parameters
    assert choose_size(weights / 2 + 1, 16_000) == "small"
    assert choose_size(weights / 2 - 1, 16_000) == "mini"
    assert choose_size(10, 16_000) == "tiny"


def test_a_vocabulary_is_as_large_as_its_entries_are_frequent():
    few, many = np.array([99] * 6 + [100] * 94), np.array([99] * 5 + [100] * 95)
    assert choose_vocab_size([(8, few), (4, many), (2, many)]) == 4
    assert choose_vocab_size([(8, few), (4, few), (2, few)]) == 2


@given(st.lists(st.integers(1, 1000), min_size=1))
def test_a_length_holds_nearly_all_documents_up_to_bert_s(lengths):
    chosen = choose_length(np.array(lengths))
    assert 32 <= chosen <= 128
    assert chosen == 128 or np.mean(np.array(lengths) + 3 <= chosen) >= 0.99 - 1 / len(lengths)
