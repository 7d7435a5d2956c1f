"""Drift: found if it is planted in 5% of rows, and hardly ever among rows of the same kind."""

import functools
import json

import numpy as np
import pytest

from bert_tf.base.arrays import flat_ranges, offsets_of
from bert_tf.tasks.profile.drift import FALSE_ALARMS, Counts, Drift, DriftReference
from bert_tf.tasks.profile.profile import EvaluatedRows, Profile, read_profile
from bert_tf.tasks.profile.texts import MOST_TRAINING_ROWS, TextProfile, text_counts

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = [f"w{number}" for number in range(3000)]
VOCAB = [*SPECIAL, *WORDS]
LABELS = ("a", "b", "c")
RARE_FIRST = 1 / np.arange(1, len(WORDS) + 1)


@functools.cache
def tokenizer():
    from bert_tf.data.text.host_wordpiece import HostTokenizer

    return HostTokenizer(VOCAB, lowercase=False)


@functools.cache
def words_by_frequency() -> np.ndarray:
    return RARE_FIRST / RARE_FIRST.sum()


def texts_of(rows: int, rng: np.random.Generator) -> list[str]:
    lengths = rng.poisson(12, rows) + 1
    words = np.array(WORDS)[rng.choice(len(WORDS), lengths.sum(), p=words_by_frequency())].tolist()
    ends = np.cumsum(lengths).tolist()
    return [" ".join(words[end - n : end]) for end, n in zip(ends, lengths.tolist(), strict=True)]


def predictions_of(rows: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    probabilities = rng.dirichlet([0.9, 0.5, 0.2], rows)
    return {
        "predicted_label": np.array(LABELS, object)[probabilities.argmax(axis=1)],
        "predicted_score": probabilities.max(axis=1),
        "probabilities": probabilities,
    }


def reference_of(texts: list[str], rng: np.random.Generator) -> DriftReference:
    predicted = predictions_of(2000, rng)["probabilities"]
    chosen = predicted.argmax(axis=1)
    evaluation = EvaluatedRows.of(LABELS, chosen, chosen, predicted)
    texts_profile = TextProfile.of({"text": texts}, tokenizer())
    return DriftReference.of(Profile(evaluation=evaluation, texts=texts_profile))


def counts_of(reference: DriftReference, texts: list[str], predicted) -> Counts:
    counts = text_counts(reference.texts.measures, {"text": texts}, tokenizer())
    found = reference.counts_of_predictions(*decisions(predicted))
    return Counts(len(texts), found, len(texts), counts)


def decisions(predicted):
    return predicted["predicted_label"], predicted["predicted_score"]


def drift_of(reference: DriftReference, texts: list[str], predicted):
    return reference.compare(counts_of(reference, texts, predicted), lambda: VOCAB)


PLANTED = {
    "unknown words": lambda text, rng: f"{text} ünknown",
    "one word": lambda text, rng: f"{text} w50",
    "new words": lambda text, rng: f"{text} w2999 w2998",
    "long texts": lambda text, rng: " ".join([text] * 4),
}
NAMES = {
    "unknown words": "have a word unknown to the vocabulary",
    "one word": "have the token 'w50'",
    "new words": "rare",
    "long texts": "tokens",
}


@pytest.mark.parametrize("kind", PLANTED)
@pytest.mark.parametrize("seed", range(2))
def test_what_is_planted_in_5_percent_of_10000_rows_is_found(kind, seed):
    rng = np.random.default_rng(seed)
    reference = reference_of(texts_of(4000, rng), rng)
    texts = texts_of(10_000, rng)
    for row in rng.choice(len(texts), 500, replace=False):
        texts[row] = PLANTED[kind](texts[row], rng)
    found = drift_of(reference, texts, predictions_of(10_000, rng))
    assert NAMES[kind] in found.differences[0].name
    assert found.rows_needed < 10_000
    assert "differs from the training rows: " in str(found)
    assert str(Drift.from_json(json.loads(json.dumps(found.as_json())))) == str(found)


def test_other_predictions_are_found():
    rng = np.random.default_rng(5)
    reference = reference_of(texts_of(2000, rng), rng)
    predicted = predictions_of(10_000, rng)
    predicted["predicted_label"][:500] = "c"
    predicted["predicted_score"][:500] = 0.34
    names = {
        each.name for each in drift_of(reference, texts_of(10_000, rng), predicted).differences
    }
    assert "are predicted as 'c'" in names
    assert any(name.startswith("predicted as 'c' have a probability below") for name in names)


def test_the_rows_that_are_enough_are_about_enough():
    rng = np.random.default_rng(6)
    reference = reference_of(texts_of(8000, rng), rng)

    def drifted(rows: int):
        texts = [
            text + " ünknown" if row % 10 == 0 else text
            for row, text in enumerate(texts_of(rows, rng))
        ]
        return drift_of(reference, texts, predictions_of(rows, rng))

    needed = drifted(5000).rows_needed
    assert drifted(3 * needed).differences
    assert not drifted(max(1, needed // 3)).differences


@pytest.mark.slow  # a thousand files
def test_equal_samples_alarm_in_under_one_percent_of_1000_resamples():
    """Rows of one pool, drawn again and again; half of them train, half are new."""
    rng = np.random.default_rng(7)
    pool = texts_of(3000, rng)
    predicted = predictions_of(3000, rng)
    alarms = 0
    for _ in range(10):  # a profile for every 100 samples: profiles are what takes the time
        order = rng.permutation(3000)
        known, others = order[:1000], order[1000:]
        chosen = predicted["probabilities"][known].argmax(axis=1)
        evaluation = EvaluatedRows.of(LABELS, chosen, chosen, predicted["probabilities"][known])
        texts = TextProfile.of({"text": [pool[row] for row in known]}, tokenizer())
        reference = DriftReference.of(Profile(evaluation=evaluation, texts=texts))
        tokens = tokenizer().tokenize_texts([pool[row] for row in others])
        lengths = np.diff(tokens.offsets)
        for _ in range(100):
            rows = rng.choice(len(others), 700, replace=False)
            ids = tokens.ids[flat_ranges(tokens.offsets[rows], lengths[rows])]
            part = type(tokens)(ids, offsets_of(lengths[rows]))
            of_rows = {name: values[others[rows]] for name, values in predicted.items()}
            counts = Counts(
                700,
                reference.counts_of_predictions(*decisions(of_rows)),
                700,
                reference.texts.measures.counts(part),
            )
            alarms += bool(reference.compare(counts, lambda: VOCAB).differences)
    assert FALSE_ALARMS < 0.01
    assert alarms < 10


def test_counts_add_up_over_blocks():
    rng = np.random.default_rng(8)
    reference = reference_of(texts_of(500, rng), rng)
    texts, predicted = texts_of(300, rng), predictions_of(300, rng)
    whole = counts_of(reference, texts, predicted)
    parts = [
        counts_of(
            reference, texts[rows], {name: values[rows] for name, values in predicted.items()}
        ).as_json()
        for rows in (slice(0, 100), slice(100, 101), slice(101, 300))
    ]
    assert Counts.sum_of(parts).as_json() == whole.as_json()


def test_profiles_are_read_as_written_small_and_without_texts(tmp_path):
    rng = np.random.default_rng(9)
    texts = TextProfile.of({"text": texts_of(3000, rng), "more": ["secret"] * 3000}, tokenizer())
    Profile(texts=texts).write(tmp_path)
    content = (tmp_path / "profile.json").read_text()
    assert "secret" not in content
    assert len(content) < 30_000
    assert read_profile(tmp_path).texts.as_json() == texts.as_json()


def test_long_files_and_lists_of_texts_are_looked_at_in_part():
    profile = TextProfile.of({"choices": [["w1", "w2"], ["w3"]] * 30_000}, tokenizer())
    assert profile.rows <= MOST_TRAINING_ROWS
    assert TextProfile.of({"text": ["w1"]}, tokenizer()) is None
