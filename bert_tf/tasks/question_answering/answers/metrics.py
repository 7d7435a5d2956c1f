"""Exact match and F1 of answers, by the definitions of the official SQuAD evaluation scripts.

Version 1.1: Rajpurkar et al. 2016 (arXiv 1606.05250); version 2.0, with questions that have no
answer: Rajpurkar et al. 2018 (arXiv 1806.03822). Both from 0 to 100, as everywhere.
"""

from __future__ import annotations

import collections
import re
import string
from collections.abc import Sequence

import numpy as np

_NAMES = ("exact_match", "f1")

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


def question_scores(
    predicted: Sequence[str], golds: Sequence[Sequence[str]], *, version_2: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Exact match and F1 of each answer, the best over its gold answers, float64 [questions].

    Args:
        predicted: an answer per question, "" for none.
        golds: the gold answers of each question, none where it has no answer.
        version_2: score as the script of SQuAD 2.0 does.
    """
    exact: list[float] = []
    f1: list[float] = []
    for answer, listed in zip(predicted, golds, strict=True):
        usable = [gold for gold in listed if normalize_answer(gold)] if version_2 else list(listed)
        candidates = usable or [""]
        exact.append(max(exact_match(answer, gold) for gold in candidates))
        f1.append(max(token_f1(answer, gold, version_2=version_2) for gold in candidates))
    return np.array(exact), np.array(f1)


def answer_metrics(
    predicted: Sequence[str], golds: Sequence[Sequence[str]], *, version_2: bool
) -> dict[str, float]:
    """Means over the questions.

    Args:
        predicted, golds: as of `question_scores`.
        version_2: score as the script of SQuAD 2.0 does; adds its `HasAns` as `…_answerable` and
            its `NoAns` as `…_unanswerable` where there are such questions.
    """
    scores = dict(zip(_NAMES, question_scores(predicted, golds, version_2=version_2), strict=True))
    metrics = {name: percentage(values) for name, values in scores.items()}
    if version_2:
        has_answer = np.array([bool(listed) for listed in golds])
        for kind, chosen in (("answerable", has_answer), ("unanswerable", ~has_answer)):
            if chosen.any():
                for name, values in scores.items():
                    metrics[f"{name}_{kind}"] = percentage(values[chosen])
    return metrics


def percentage(values: np.ndarray) -> float:
    """The mean of scores from 0 to 1, in percent."""
    return 100.0 * float(np.mean(values))
