"""Keeps documents and long lines in wanted languages; `unknown` is a language of its own."""

from __future__ import annotations

import dataclasses
from functools import partial

import numpy as np

from pipeline.corpus.curation.language import UNKNOWN
from pipeline.corpus.curation.measures import MeasuredText
from pipeline.corpus.curation.rule import Rule

_LONG = 300  # characters of a line that is judged by itself; shorter ones are unsure
_PAPER = "Lui and Baldwin 2012 (aclanthology.org/P12-3005)"


def certainty(text: MeasuredText) -> np.ndarray:
    """Return the probability of each document's most likely language."""
    return text.document_languages.probabilities


def is_wanted(
    text: MeasuredText, *, languages: tuple[str, ...], threshold: float, of_lines: bool
) -> np.ndarray:
    """Return 1 for documents or lines in wanted languages, else 0.

    Args:
        text: the documents.
        languages: codes.
        threshold: of the probability.
        of_lines: whether lines are judged.

    Returns:
        NaN where the language is not certain, and for short lines.
    """
    is_long = text.line_characters >= _LONG if of_lines else np.ones(text.num_documents, np.bool_)
    languages_found = text.languages_of_lines(is_long) if of_lines else text.document_languages
    is_known = languages_found.probabilities >= threshold
    values = np.full(len(is_long), np.nan)
    values[is_long] = np.where(is_known, np.isin(languages_found.codes, languages), np.nan)
    return values


def of_english(text: MeasuredText, *, rule: Rule) -> np.ndarray:
    """Measure as a rule for English does; NaN for documents of other languages."""
    return np.where(text.document_languages.codes == "en", rule.measure(text), np.nan)


def for_english(rule: Rule) -> Rule:
    """Return a rule that judges English documents only."""
    return dataclasses.replace(rule, measure=partial(of_english, rule=rule))


def language_rules(languages: tuple[str, ...], threshold: float) -> tuple[Rule, ...]:
    """Return the rules that keep languages.

    Args:
        languages: codes, or UNKNOWN for documents of no certain language.
        threshold: probability from which a language is certain.
    """
    wanted = partial(is_wanted, languages=languages, threshold=threshold)
    lines = partial(wanted, of_lines=True)
    rule = partial(Rule, paper=_PAPER, setting=f"languages: {', '.join(languages)}")
    unknown = rule("unknown_language", certainty, minimum=threshold)
    other = (
        rule("other_language", partial(wanted, of_lines=False), minimum=1, counts_from=threshold),
        rule("other_language_line", lines, minimum=1, of_lines=True, keeps_feeds=True),
    )
    return other if UNKNOWN in languages else (unknown, *other)
