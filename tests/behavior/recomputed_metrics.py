"""Metrics of `metrics.json` computed again from `predictions.jsonl`, by other libraries.

What a user counts in the rows must be what the run reports and chooses its best model by.
"""

from __future__ import annotations

import collections
import json
import re
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import scipy.stats
import sklearn.metrics as sk

from bert_tf.tasks.base.prediction_rows import TaskResults
from bert_tf.tasks.base.task import Task

Rows = list[dict[str, Any]]

_NOT_OF_ROWS = {"loss", "null_threshold"}  # the training loss, and a setting of the model


def check_metrics_of_predictions(task: Task, results: TaskResults) -> None:
    """Check that every metric follows from the rows, as they are in files."""
    rows = json.loads(json.dumps(results.predictions))
    expected = RECOMPUTED[task.declaration.name](rows, task)
    assert results.metrics.keys() - _NOT_OF_ROWS == expected.keys()
    for name, value in expected.items():
        assert results.metrics[name] == pytest.approx(value, rel=1e-4, abs=1e-5), name


def _columns(rows: Rows, *names: str) -> list[list[Any]]:
    return [[row[name] for row in rows] for name in names]


def _classification(rows: Rows, task: Any) -> dict[str, float]:
    gold, found = _columns(rows, "label", "predicted_label")
    constant = len(set(gold)) == 1 or len(set(found)) == 1
    return {
        "accuracy": sk.accuracy_score(gold, found),
        "macro_f1": sk.f1_score(gold, found, average="macro", zero_division=0),
        "matthews_correlation": 0.0 if constant else sk.matthews_corrcoef(gold, found),
    }


def _multilabel(rows: Rows, task: Any) -> dict[str, float]:
    labels = list(rows[0]["predicted_probabilities"])
    gold, found = (
        np.array([[label in row[name] for label in labels] for row in rows], int)
        for name in ("label", "predicted_labels")
    )
    scores = np.array([list(row["predicted_probabilities"].values()) for row in rows])
    metrics = {
        "subset_accuracy": sk.accuracy_score(gold, found),
        "hamming_loss": sk.hamming_loss(gold, found),
        "samples_f1": sk.f1_score(gold, found, average="samples", zero_division=1),
        "label_ranking_average_precision": sk.label_ranking_average_precision_score(gold, scores),
        "coverage_error": sk.coverage_error(gold, scores),
    }
    occurring = np.flatnonzero((gold | found).any(axis=0))
    for average in ("micro", "macro"):
        for name, function in (
            ("f1", sk.f1_score),
            ("precision", sk.precision_score),
            ("recall", sk.recall_score),
        ):
            metrics[f"{average}_{name}"] = function(
                gold[:, occurring], found[:, occurring], average=average, zero_division=0
            )
    there = gold.any(axis=0)
    mixed = there & ~gold.all(axis=0)
    metrics["mean_average_precision"] = sk.average_precision_score(
        gold[:, there], scores[:, there], average="macro"
    )
    metrics["roc_auc"] = sk.roc_auc_score(gold[:, mixed], scores[:, mixed], average="macro")
    return metrics


def _regression(rows: Rows, task: Any) -> dict[str, float]:
    gold, found = _columns(rows, "label", "predicted_value")
    return {
        **_correlations(gold, found),
        "r2": sk.r2_score(gold, found),
        "mse": sk.mean_squared_error(gold, found),
        "rmse": sk.root_mean_squared_error(gold, found),
        "mae": sk.mean_absolute_error(gold, found),
    }


def _correlations(gold: list[float], found: list[float]) -> dict[str, float]:
    return {
        "pearson": scipy.stats.pearsonr(gold, found).statistic,
        "spearman": scipy.stats.spearmanr(gold, found).statistic,
    }


def _multiple_choice(rows: Rows, task: Any) -> dict[str, float]:
    ranks = [
        sk.label_ranking_average_precision_score(
            [[place == row["label"] for place in range(len(row["predicted_probabilities"]))]],
            [row["predicted_probabilities"]],
        )
        for row in rows
    ]
    return {
        "accuracy": sk.accuracy_score(*_columns(rows, "label", "predicted_choice")),
        "mean_reciprocal_rank": float(np.mean(ranks)),
    }


def _similarity(rows: Rows, task: Any) -> dict[str, float]:
    if "rank" not in rows[0]:
        return _correlations(*_columns(rows, "label", "predicted_similarity"))
    by_anchor: dict[Any, dict[Any, int]] = collections.defaultdict(dict)
    for row in rows:
        by_anchor[row["anchor"]][row["positive"]] = row["rank"]
    ranks = [np.array(list(found.values())) for found in by_anchor.values()]
    metrics = {
        "mrr@10": np.mean([1 / each.min() if each.min() <= 10 else 0.0 for each in ranks]),
        **{f"recall@{k}": np.mean([np.mean(each <= k) for each in ranks]) for k in (1, 10)},
    }
    if "negative_similarities" in rows[0]:
        wins = [
            row["predicted_similarity"] > other
            for row in rows
            for other in row["negative_similarities"]
        ]
        metrics["triplet_accuracy"] = np.mean(wins)
    return metrics


def _question_answering(rows: Rows, task: Any) -> dict[str, float]:
    """Return the official scripts: v1.1 where all questions have an answer, else v2.0."""
    has_gaps = not all(row["answers"] for row in rows)
    scored = [_answer_scores(row["predicted_answer"], row["answers"], has_gaps) for row in rows]
    metrics = _mean_scores(scored, "")
    if not has_gaps:
        return metrics
    for name, is_kind in (("_answerable", True), ("_unanswerable", False)):
        chosen = [
            score
            for score, row in zip(scored, rows, strict=True)
            if bool(row["answers"]) == is_kind
        ]
        if chosen:
            metrics |= _mean_scores(chosen, name)
    if task.may_be_unanswerable:
        metrics |= _thresholds(rows)
    return metrics


def _mean_scores(scored: Sequence[tuple[float, float]], suffix: str) -> dict[str, float]:
    exact, f1 = np.mean(scored, axis=0)
    return {f"exact_match{suffix}": 100 * exact, f"f1{suffix}": 100 * f1}


def _answer_scores(found: str, golds: list[str], has_gaps: bool) -> tuple[float, float]:
    words = _answer_words(found)
    usable = [gold for gold in golds if _answer_words(gold)] if has_gaps else golds
    candidates = [_answer_words(gold) for gold in usable or [""]]
    exact = max(float(words == gold) for gold in candidates)
    f1 = 0.0
    for gold in candidates:
        shared = sum((collections.Counter(words) & collections.Counter(gold)).values())
        if has_gaps and not (words and gold):
            f1 = max(f1, float(words == gold))
        elif shared:
            f1 = max(f1, 2 * shared / (len(words) + len(gold)))
    return exact, f1


def _answer_words(text: str) -> list[str]:
    bare = "".join(each for each in text.lower() if each not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", bare).split()


def _thresholds(rows: Rows) -> dict[str, float]:
    """Return the best thresholds by trying all, and the scores without one."""
    spans = []
    for row in rows:
        best = next((each for each in row["predicted_nbest"] if each["start"] is not None), None)
        spans.append("" if best is None else best["text"])
    odds = np.array([row["predicted_null_odds"] for row in rows])
    of_spans = np.array(
        [_answer_scores(text, row["answers"], True) for text, row in zip(spans, rows, strict=True)]
    )
    of_none = np.array([float(not row["answers"]) for row in rows])

    def measured(threshold: float) -> np.ndarray:
        return 100 * np.where(odds[:, None] > threshold, of_none[:, None], of_spans).mean(axis=0)

    metrics = dict(zip(("exact_match_untuned", "f1_untuned"), measured(0.0), strict=True))
    tried = np.array([measured(threshold) for threshold in (odds.min() - 2, *sorted(odds))])
    metrics |= dict(zip(("best_exact", "best_f1"), tried.max(axis=0), strict=True))
    for place, name in enumerate(("best_exact_thresh", "best_f1_thresh")):
        best = int(tried[:, place].argmax())
        metrics[name] = (odds.min() - 2, *sorted(odds))[best]
    return metrics


def _tagging(rows: Rows, task: Any) -> dict[str, float]:
    gold, found = (
        [_entities(row[name], task.scheme) for row in rows] for name in ("tags", "predicted_tags")
    )
    for row, *each in zip(rows, gold, found, strict=True):
        for name, entities in zip(("entities", "predicted_entities"), each, strict=True):
            assert entities == _listed(row[name])
    f1, precision, recall = _set_scores(gold, found)
    kinds = sorted({entity[2] for of_row in (*gold, *found) for entity in of_row})
    by_kind = [
        _set_scores(
            *([[e for e in of_row if e[2] == kind] for of_row in of] for of in (gold, found))
        )
        for kind in kinds
    ]
    words = [(place, *word) for place, row in enumerate(rows) for word in _words(row["tags"])]
    there = {
        (place, *word) for place, row in enumerate(rows) for word in _words(row["predicted_tags"])
    }
    metrics = {
        "f1": f1,
        "precision": precision,
        "recall": recall,
        "macro_f1": float(np.mean([scores[0] for scores in by_kind])) if by_kind else 0.0,
        "accuracy": sum(word in there for word in words) / max(len(words), 1),
    }
    if task.scheme != "plain":
        strict = (
            [_entities(row[name], task.scheme, is_strict=True) for row in rows]
            for name in ("tags", "predicted_tags")
        )
        metrics["strict_f1"] = _set_scores(*strict)[0]
    if "annotated_entities" in rows[0]:
        metrics["offset_f1"] = _set_scores(
            [_listed(row["annotated_entities"]) for row in rows], found
        )[0]
    return metrics


Entity = tuple[int, int, str]

# The letters of well-formed entities: seqeval's strict mode.
_WELL_FORMED = {"bio": "BI*", "bilou": "BI*L|U", "iobes": "BI*E|S"}


def _entities(
    tags: Sequence[Mapping[str, Any]], scheme: str, *, is_strict: bool = False
) -> list[Entity]:
    """Entities of tagged words, as conlleval reads them."""
    found: list[list[Mapping[str, Any]]] = []
    before = "O"
    for word in tags:
        tag = word["tag"]
        if tag != "O":
            continues = (
                scheme != "plain"
                and before[0] not in "OELSU"
                and tag[0] not in "BSU"
                and before[1:] == tag[1:]
            )
            if continues:
                found[-1].append(word)
            else:
                found.append([word])
        before = tag
    return [
        (words[0]["start"], words[-1]["end"], _kind(words[0]["tag"], scheme))
        for words in found
        if not is_strict
        or re.fullmatch(_WELL_FORMED[scheme], "".join(word["tag"][0] for word in words))
    ]


def _kind(tag: str, scheme: str) -> str:
    return tag if scheme == "plain" else tag[2:] or "_"


def _listed(entities: Iterable[Mapping[str, Any]]) -> list[Entity]:
    return [(each["start"], each["end"], each["label"]) for each in entities]


def _words(tags: Iterable[Mapping[str, Any]]) -> Iterator[Entity]:
    for each in tags:
        yield each["start"], each["end"], each["tag"]


def _set_scores(
    gold: Sequence[Sequence[Entity]], found: Sequence[Sequence[Entity]]
) -> tuple[float, float, float]:
    """F1, precision and recall."""
    right = sum(len(set(one) & set(other)) for one, other in zip(gold, found, strict=True))
    of_gold, of_found = sum(map(len, gold)), sum(map(len, found))
    return (
        2 * right / max(of_gold + of_found, 1),
        right / max(of_found, 1),
        right / max(of_gold, 1),
    )


RECOMPUTED = {
    "classification": _classification,
    "multilabel": _multilabel,
    "regression": _regression,
    "multiple-choice": _multiple_choice,
    "similarity": _similarity,
    "qa": _question_answering,
    "tagging": _tagging,
}
