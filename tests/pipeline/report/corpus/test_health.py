"""The health check: which figures warn, and with which advice."""

import re

import pytest

from bert_tf.base.errors import InputError
from bert_tf.config.section import build_section
from bert_tf.config.sections import PreprocessConfig, VocabConfig
from pipeline.report.corpus.health import examine, refuse_unknown

# Of a book: 55% random next sentences and 70% of the examples cut are ordinary.
GOOD = {
    "documents": 100,
    "documents_of_one_sentence": 3,
    "tokens": 100_000,
    "tokens_unknown": 200,
    "tokens_ideographic": 0,
    "tokens_reached": 99_500,
    "examples": {"train": 9_000, "eval": 1_000},
    "row_tokens": 1_000_000,
    "masked": 149_000,
    "truncations": 7_000,
    "random_next": 5_500,
}


def preprocess(**values) -> PreprocessConfig:
    return build_section(
        PreprocessConfig, {"input": ["a.txt"], "vocab": "v.txt", "output": "o", **values}
    )


def test_a_good_corpus_has_figures_and_no_warnings():
    health = examine(GOOD, preprocess())
    assert health.warnings == []
    assert health.figures == {
        "reached_fraction": 0.995,
        "truncation_fraction": 0.7,
        "unknown_fraction": 0.002,
        "random_next_fraction": 0.55,
        "masked_fraction": 0.149,
        "one_sentence_fraction": 0.03,
    }
    assert health.line == (
        "health: 99.5% of the tokens are in a record, 70% of the examples are cut, 0.20% [UNK], "
        "55% random next sentences, 14.9% masked, 3% of the documents have one sentence"
    )


@pytest.mark.parametrize(
    ("counts", "keys", "warning"),
    [
        ({"tokens_reached": 23_000}, {}, "only 23.0% of the tokens are in a record.*text_layout"),
        ({"truncations": 10_000}, {}, "100.0% of the examples are cut.*--max-seq-length"),
        ({"tokens_unknown": 1_100}, {}, "1.1% of the tokens are .UNK.*--vocab"),
        ({"random_next": 0}, {}, "no example has a random second segment.*pair_task=none"),
        ({"random_next": 10_000}, {}, "100% of the examples have a random second.*pair_task=none"),
        ({"documents_of_one_sentence": 60}, {}, "60% of the documents have one sentence"),
        (
            {"masked": 39_000},
            {"max_seq_length": 512, "max_predictions_per_seq": 20},
            "3.9% of the tokens are masked, not 15.0%: --max-predictions-per-seq 20 limits rows of "
            "512 tokens; 77 are enough",
        ),
        ({"masked": 39_000}, {"whole_word_mask": True}, "3.9% of .* --no-whole-word-mask"),
        (
            {"tokens_ideographic": 90_000},
            {"whole_word_mask": True},
            "--whole-word-mask does nothing for 90% of the tokens.*masking=ngram",
        ),
    ],
)
def test_a_figure_that_is_off_warns_with_the_key_to_set(counts, keys, warning):
    (found,) = examine({**GOOD, **counts}, preprocess(**keys)).warnings
    assert re.match(warning, found), found


def test_figures_that_a_recipe_has_not_are_left_out():
    """Unmasked records without pairs, of rows of one sentence."""
    counts = {**GOOD, "row_tokens": 0, "masked": 0, "documents_of_one_sentence": 100}
    del counts["random_next"]
    health = examine(counts, preprocess(pair_task="none", masking="dynamic"))
    assert health.figures.keys() == {"reached_fraction", "truncation_fraction", "unknown_fraction"}
    assert health.warnings == []


@pytest.mark.parametrize(
    ("unknown", "tokens", "limit", "is_refused"),
    [(50, 100, 0.5, False), (51, 100, 0.5, True), (79, 100, 0.8, False), (0, 0, 0.5, False)],
)
def test_a_vocabulary_of_another_language_is_refused(unknown, tokens, limit, is_refused):
    if not is_refused:
        refuse_unknown(unknown, tokens, preprocess(), limit=limit)
        return
    with pytest.raises(InputError, match="v.txt: 51% of 100 tokens are .UNK.*bert-pipeline vocab"):
        refuse_unknown(unknown, tokens, preprocess(), limit=limit)


@pytest.mark.parametrize(
    ("counts", "warning"),
    [
        ({}, None),
        ({"corpus_unknown_fraction": 0.05}, "5.0% of the words become .UNK.*limit_alphabet=1000"),
        ({"corpus_pieces_per_word": 7.0}, "a word takes 7.0 tokens.*--vocab-size 30000"),
        ({"words_too_long": 200}, "2.0% of the words have more than vocab.max_word_length=100"),
    ],
)
def test_a_vocabulary_is_checked_too(counts, warning):
    good = {
        "words": 10_000, "words_too_long": 3,
        "corpus_unknown_fraction": 0.001, "corpus_pieces_per_word": 1.1,
    }  # fmt: skip
    config = build_section(VocabConfig, {"input": ["a.txt"], "output": "v.txt"})
    warnings = examine({**good, **counts}, config).warnings
    assert len(warnings) == (warning is not None)
    for found in warnings:
        assert re.match(warning, found), found
