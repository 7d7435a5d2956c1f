"""N-gram models: probabilities sum to one, those of a text worked out by hand, back-off."""

import itertools

import numpy as np
import pytest
from ngrams import NgramModel

SIZE = 7


@pytest.fixture(scope="module")
def text():
    """Return a text in which the last piece of the vocabulary is missing."""
    return np.random.default_rng(5).integers(0, SIZE - 1, 200)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_probabilities_sum_to_one_after_any_history(text, order):
    model = NgramModel(text, vocab_size=SIZE, order=order)
    for history in itertools.product(range(SIZE), repeat=order - 1):
        grams = [np.array([*history, word]) for word in range(SIZE)]
        found = np.concatenate([model.probabilities(gram) for gram in grams])
        assert (found > 0).all()
        assert found.sum() == pytest.approx(1)


def test_pairs_have_the_probabilities_of_the_paper():
    model = NgramModel(np.array([0, 1, 0, 1, 0, 2]), vocab_size=4, order=2)
    # Pairs: 0 1 twice, 1 0 twice, 0 2 once; D = 1 / (1 + 2 * 2). Different words before: 0, 1 and
    # 2 have one each, so that D of single words is 1 and all their weight goes to 1 / V.
    discount = 1 / 5
    after_0 = (2 - discount) / 3 + discount * 2 / 3 * 1 / 4
    assert model.probabilities(np.array([0, 1])) == pytest.approx([after_0])
    unseen = discount * 2 / 3 * 1 / 4
    assert model.probabilities(np.array([0, 3])) == pytest.approx([unseen])
    unknown_history = 1 / 4
    assert model.probabilities(np.array([3, 0])) == pytest.approx([unknown_history])


def test_the_likelihood_of_a_text_is_that_of_its_pieces(text):
    model = NgramModel(text, vocab_size=SIZE, order=3)
    history = np.array([4, 5])
    found = model.likelihoods([text[:6], text[6:8]], history)
    pieces = [np.concatenate([history, text[:6]]), np.concatenate([history, text[6:8]])]
    expected = [np.log(model.probabilities(ids)).sum() for ids in pieces]
    np.testing.assert_allclose(found, expected)
