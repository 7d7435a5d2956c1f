"""Distances from training rows are those of scikit-learn, and the limit keeps its promise."""

import json

import numpy as np
import pytest
from sklearn.covariance import LedoitWolf

from bert_tf.base.errors import UsageError
from bert_tf.tasks.base.prediction_rows import ABSTAINED, Abstention
from bert_tf.tasks.profile.distance import TrainingDistance, shrunk_covariance
from bert_tf.tasks.profile.profile import Profile, read_profile, training_distance


def vectors_of(seed, rows, dimensions=12, labels=3):
    """Vectors around a mean of each label, whose dimensions have other scales and depend."""
    shape = np.random.default_rng(7)
    mixing = shape.normal(size=(dimensions, dimensions)) * np.geomspace(0.01, 1, dimensions)
    means = shape.normal(size=(labels, dimensions))
    generator = np.random.default_rng(seed)
    numbers = generator.integers(0, labels, rows)
    return means[numbers] + generator.normal(size=(rows, dimensions)) @ mixing, numbers


@pytest.mark.parametrize(("rows", "dimensions"), [(500, 12), (30, 12), (9, 20)])
def test_the_covariance_is_that_of_scikit_learn(rows, dimensions):
    vectors, _ = vectors_of(0, rows, dimensions)
    centered = vectors - vectors.mean(axis=0)
    expected = LedoitWolf(assume_centered=True).fit(centered)
    np.testing.assert_allclose(shrunk_covariance(centered), expected.covariance_, rtol=1e-9)


def test_distances_are_those_of_scikit_learn_to_the_nearest_mean():
    vectors, labels = vectors_of(0, 400)
    fitted = TrainingDistance.of(vectors, labels + 4, vectors_of(1, 200)[0])
    means = np.stack([vectors[labels == label].mean(axis=0) for label in range(3)])
    model = LedoitWolf(assume_centered=True).fit(vectors - means[labels])
    new, _ = vectors_of(2, 50)
    squared = np.min([model.mahalanobis(new - mean) for mean in means], axis=0)
    np.testing.assert_allclose(fitted.distances(new), np.sqrt(squared), rtol=0.01)  # 16 bits


def test_rows_of_the_same_kind_stay_within_the_limit_as_promised():
    vectors, labels = vectors_of(0, 1000)
    beyond, kept = [], 0.95
    for seed in range(1, 41):
        fitted = TrainingDistance.of(vectors, labels, vectors_of(seed, 200)[0])
        new, _ = vectors_of(seed + 100, 500)
        beyond.append(np.mean(fitted.distances(new) > fitted.limit(kept, "--abstain-far")))
    assert np.mean(beyond) == pytest.approx(1 - kept, abs=0.012)
    assert (fitted.distances(new + 5) > fitted.limit(kept, "--abstain-far")).mean() > 0.99


@pytest.mark.filterwarnings("error")
def test_rows_that_do_not_differ_are_finite():
    vectors, labels = vectors_of(0, 60)
    constant = np.hstack([np.ones((60, 3)), vectors * [0.0, *[1.0] * 11]])
    for rows, numbers in ((constant, labels), (constant[:3], np.arange(3)), (constant[:1], [0])):
        fitted = TrainingDistance.of(rows, np.array(numbers), constant)
        assert np.isfinite(fitted.distances(constant + 1)).all()
        assert fitted.distances(rows[:1]).max() < fitted.distances(rows[:1] + 1).min()


def test_too_few_evaluation_rows_are_refused_with_how_many_would_do():
    vectors, labels = vectors_of(0, 100)
    fitted = TrainingDistance.of(vectors, labels, vectors_of(1, 98)[0])
    with pytest.raises(UsageError, match=r"--abstain-far 0\.99: 98 .* too few .* at least 99"):
        fitted.limit(0.99, "--abstain-far")
    fitted = TrainingDistance.of(vectors, labels, vectors_of(1, 99)[0])
    assert fitted.limit(0.99, "--abstain-far") == fitted.evaluation[-1]
    assert fitted.limit(0.5, "--abstain-far") == fitted.evaluation[49]


def test_the_row_that_is_the_limit_keeps_within_it():
    vectors, labels = vectors_of(0, 100)
    evaluation, _ = vectors_of(1, 99)
    fitted = TrainingDistance.of(vectors, labels, evaluation)
    distances = fitted.distances(evaluation)
    added = fitted.evaluation - np.sort(distances)
    assert added.min() >= 0
    assert added.max() < 1e-4
    for place in range(1, 100):
        limit = fitted.limit(place / 100, "--abstain-far")
        assert (distances <= limit).sum() >= place


def test_a_profile_keeps_them_without_texts(tmp_path):
    vectors, labels = vectors_of(0, 100)
    fitted = TrainingDistance.of(vectors, labels, vectors_of(1, 50)[0])
    Profile(distance=fitted).write(tmp_path)
    again = read_profile(tmp_path).distance
    new, _ = vectors_of(2, 20)
    np.testing.assert_array_equal(again.distances(new), fitted.distances(new))
    np.testing.assert_array_equal(again.evaluation, fitted.evaluation)
    document = json.loads((tmp_path / "profile.json").read_text())
    assert set(document["distance"]) == {"dimensions", "means", "whitening", "evaluation"}
    Profile().write(tmp_path)
    with pytest.raises(UsageError, match="does not know how far texts are"):
        training_distance(tmp_path, "--abstain-far")


def test_rows_without_a_prediction_say_why():
    abstention = Abstention(fields=("label", "score"), below=0.5, beyond=2.0)
    rows = [{"label": "a", "score": score} for score in (0.9, 0.4, 0.9, 0.4)]
    abstention.apply(rows)
    assert abstention.apply_far(rows, np.array([1.0, 2.0, 2.1, 3.0])) == 2
    assert [row["label"] for row in rows] == ["a", None, None, None]
    far = "far from the training rows"
    assert [row[ABSTAINED] for row in rows] == [None, "low probability", far, far]
