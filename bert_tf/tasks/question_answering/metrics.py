"""Exact match and F1 of answers, by the definitions of the official SQuAD evaluation scripts.

Version 1.1: Rajpurkar et al. 2016 (arXiv 1606.05250); version 2.0, with questions that have no
answer: Rajpurkar et al. 2018 (arXiv 1806.03822). Both from 0 to 100, as everywhere.
"""

from __future__ import annotations

import collections
import re
import string
from collections.abc import Sequence

_ARTICLES = re.compile(r"\b(a|an|the)\b", re.UNICODE)
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalize_answer(text: str) -> str:
    """Lower case, without punctuation and articles, words separated by one space."""
    bare = text.lower().translate(_WITHOUT_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())


def exact_match(predicted: str, gold: str) -> float:
    """1 if both are the same text once normalized, else 0."""
    return float(normalize_answer(predicted) == normalize_answer(gold))


def token_f1(predicted: str, gold: str, *, version_2: bool) -> float:
    """Harmonic mean of the shares of words that two answers have in common, 0 to 1.

    Where one side has no words, version 1.1 gives 0, and version 2.0 gives 1 if neither has any.
    """
    predicted_words = normalize_answer(predicted).split()
    gold_words = normalize_answer(gold).split()
    if version_2 and not (predicted_words and gold_words):
        return float(predicted_words == gold_words)
    common = collections.Counter(predicted_words) & collections.Counter(gold_words)
    shared = sum(common.values())
    if shared == 0:
        return 0.0
    precision, recall = shared / len(predicted_words), shared / len(gold_words)
    return 2 * precision * recall / (precision + recall)


def answer_metrics(
    predicted: Sequence[str], golds: Sequence[Sequence[str]], *, version_2: bool
) -> dict[str, float]:
    """Exact match and F1, each the best over a question's gold answers, mean over the questions.

    Args:
        predicted: an answer per question, "" for none.
        golds: the gold answers of each question, none where it has no answer.
        version_2: score as the script of SQuAD 2.0 does; adds `exact_match_answerable`,
            `f1_answerable` and `exact_match_unanswerable` where there are such questions.
    """
    exact: list[float] = []
    f1: list[float] = []
    answerable: list[bool] = []
    for answer, listed in zip(predicted, golds, strict=True):
        usable = [gold for gold in listed if normalize_answer(gold)] if version_2 else list(listed)
        candidates = usable or [""]
        exact.append(max(exact_match(answer, gold) for gold in candidates))
        f1.append(max(token_f1(answer, gold, version_2=version_2) for gold in candidates))
        answerable.append(bool(listed))
    metrics = {"exact_match": _percentage(exact), "f1": _percentage(f1)}
    if version_2:
        with_answer = [index for index, there in enumerate(answerable) if there]
        without = [index for index, there in enumerate(answerable) if not there]
        if with_answer:
            metrics["exact_match_answerable"] = _percentage([exact[i] for i in with_answer])
            metrics["f1_answerable"] = _percentage([f1[i] for i in with_answer])
        if without:
            metrics["exact_match_unanswerable"] = _percentage([exact[i] for i in without])
    return metrics


def _percentage(values: Sequence[float]) -> float:
    return 100.0 * sum(values) / len(values)
