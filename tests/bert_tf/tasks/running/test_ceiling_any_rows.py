"""The ceiling of invented rows, against the share of them that a perfect model can get right."""

import collections
import functools

import numpy as np
import pytest
from behavior.ceilings import LETTERS, measured_ceiling, question, texts_with_labels
from behavior.examples import fewer_examples
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import pearsonr
from sklearn.metrics import f1_score


@pytest.fixture(scope="module")
def ceiling_of(tmp_path_factory):
    """Return a function that measures the ceiling of a task on rows."""
    return functools.partial(measured_ceiling, tmp_path_factory.mktemp("ceilings"))


letters = st.sampled_from(LETTERS[:4])
texts = st.lists(letters, min_size=1, max_size=3).map(" ".join)


@pytest.mark.slow
@given(rows=st.lists(st.tuples(texts, st.sampled_from("xyz")), min_size=4, max_size=30))
@fewer_examples(0.5)
def test_accuracy_is_the_share_of_the_most_frequent_label_of_each_text(rows, ceiling_of):
    assume(len({label for _, label in rows}) > 1)
    right = sum(
        max(collections.Counter(label for other, label in rows if other == text).values())
        for text in {text for text, _ in rows}
    )
    found = ceiling_of("classification", texts_with_labels(rows))
    assert found.value == pytest.approx(right / len(rows))
    if not found.is_perfect:
        assert [cause.count for cause in found.causes] == [len(rows) - right]


@pytest.mark.slow
@given(rows=st.lists(st.tuples(texts, st.integers(0, 5)), min_size=4, max_size=30))
@fewer_examples(0.5)
def test_correlation_is_that_of_the_means_of_each_text(rows, ceiling_of):
    assume(len({number for _, number in rows}) > 1)
    means = [np.mean([n for other, n in rows if other == text]) for text, _ in rows]
    assume(np.ptp(means) > 0)
    found = ceiling_of("regression", texts_with_labels(rows, label="number"))
    expected = pearsonr([number for _, number in rows], means).statistic
    assert found.metrics["pearson"] == pytest.approx(expected, abs=1e-4)


sets = st.sets(st.sampled_from("xyz"))


@pytest.mark.slow
@given(rows=st.lists(st.tuples(texts, sets), min_size=4, max_size=30))
@fewer_examples(0.3)
def test_labels_of_a_text_are_those_of_half_of_its_rows(rows, ceiling_of):
    labels = sorted(set().union(*(labels for _, labels in rows)))
    assume(len(labels) > 1)
    has = np.array([[label in row for label in labels] for _, row in rows])
    same = np.array([[text == other for text, _ in rows] for other, _ in rows])
    majority = 2 * (same @ has.astype(int)) >= same.sum(axis=1)[:, None]
    listed = [{"text": text, "label": sorted(row)} for text, row in rows]
    found = ceiling_of("multilabel", listed, thresholds="0.5")
    expected = f1_score(has, majority, average="micro", zero_division=0)
    if expected or not found.is_perfect:
        assert found.metrics["micro_f1"] == pytest.approx(expected)


@pytest.mark.slow
@given(
    lengths=st.lists(st.integers(1, 8), min_size=2, max_size=12),
    most=st.integers(1, 9),
    starts=st.data(),
)
@fewer_examples(0.15)
def test_answers_up_to_the_longest_are_right_and_no_others(lengths, most, starts, ceiling_of):
    rows = []
    for number, length in enumerate(lengths):
        start = starts.draw(st.integers(0, len(LETTERS) - length))
        answer = " ".join(LETTERS[start : start + length])
        rows.append(question(number, answer, " ".join(LETTERS)))
    found = ceiling_of("qa", rows, max_answer_length=most)
    fitting = sum(length <= most for length in lengths)
    assert found.metrics["exact_match"] == pytest.approx(100 * fitting / len(rows))
    if fitting < len(rows):
        (cause,) = found.causes
        assert cause.count == len(rows) - fitting and cause.is_setting


@pytest.mark.slow
@given(
    rows=st.lists(
        st.tuples(st.lists(letters, min_size=2, max_size=4), st.data()), min_size=3, max_size=10
    )
)
@fewer_examples(0.2)
def test_choices_are_right_if_no_earlier_one_reads_alike(rows, ceiling_of):
    made, right = [], 0
    for number, (choices, data) in enumerate(rows):
        label = data.draw(st.integers(0, len(choices) - 1))
        made.append({"context": LETTERS[number], "choices": choices, "label": label})
        right += choices.index(choices[label]) == label
    assume(any(row["label"] == 0 for row in made))
    found = ceiling_of("multiple-choice", made)
    assert found.value == pytest.approx(right / len(rows))


def test_only_a_sample_is_measured_but_all_rows_tell_which_labels_are_common(ceiling_of):
    """A sample of every fifth row would have no text with two labels."""
    many = [(f"{a} {b} {c} {d}", a) for a in LETTERS for b in LETTERS for c in "bc" for d in "bcd"]
    rows = [row for text, label in many for row in ((text, label), *([(text, "z")] * 2))]
    found = ceiling_of("classification", texts_with_labels(rows))
    assert found.rows == 1000 < found.rows_of_file == len(rows)
    assert found.value == pytest.approx(2 / 3, abs=0.02)
    assert f"(by 1,000 of {len(rows):,} rows): {len(many):,} of {len(rows):,}" in found.sentence()
