"""The sections of a page on pairs of texts: their similarities, and the worst errors of these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.serving.signatures import EMBEDDING, PAIR_EMBEDDING
from bert_tf.tasks.base.histograms import histogram
from bert_tf.tasks.base.report_sections import (
    CellKind,
    ExamplesSection,
    PlotSection,
    Section,
    TableSection,
    example_at,
    spread_points,
    table_by_group,
    table_by_length,
    value_bins,
    worst_first,
    worst_rows,
)
from bert_tf.tasks.similarity.metrics import normalized

if TYPE_CHECKING:
    from bert_tf.data.tables.file_rows import Table
    from bert_tf.tasks.base.prediction_rows import TaskResults
    from bert_tf.tasks.similarity.task import SimilarityTask

# Share of the rows; pairs whose places differ by less are in order for most uses.
_LEAST_WRONG = 0.1
_RANKS = {1: "1", 3: "2 to 3", 10: "4 to 10", 100: "11 to 100"}
_FARTHER = "farther"


def sections(
    task: SimilarityTask, source: Table, predicted: Mapping[str, Any], results: TaskResults
) -> Iterator[Section]:
    """Yield the sections of an evaluation's page, see `TaskDeclaration.page`."""
    if task.label_column is None:
        yield from _matched(task, source, predicted, results)
    else:
        yield from _scored(task, source, predicted, results)


def _scored(
    task: SimilarityTask, source: Table, predicted: Mapping[str, Any], results: TaskResults
) -> Iterator[Section]:
    scores = np.array([row["label"] for row in results.predictions], np.float64)
    cosines = np.asarray(predicted["predicted_similarity"], np.float64)
    drawn, tally = spread_points(len(scores))
    yield PlotSection(
        title="Similarities",
        x_title="score",
        y_title="cosine",
        x=scores[drawn],
        y=cosines[drawn],
        note=f"{tally}Only the order counts for spearman, not the scale of the scores.",
    )
    yield histogram("Cosines", "cosine", "pairs", cosines)
    by_score = _places(scores)
    by_cosine = _places(cosines)
    moved = by_cosine - by_score
    measures: dict[str, tuple[CellKind, np.ndarray]] = {
        "mean cosine": ("number", cosines),
        "mean distance of places": ("fraction", np.abs(moved)),
    }
    yield table_by_group(
        "By score",
        "score",
        *value_bins(scores),
        measures,
        note="Places are those of the pairs in the order of scores and of cosines, from 0, the "
        "least similar one, to 1. Chance has a mean distance of a third.",
    )
    texts = task.texts(source)
    yield table_by_length(texts, measures)
    yield worst_rows(
        np.abs(moved),
        np.abs(moved) > _LEAST_WRONG,
        source.all_places,
        texts,
        lambda row: {
            "score": f"{scores[row]:.4g}",
            "cosine": f"{cosines[row]:.4f}",
            "place by score": f"{by_score[row]:.0%}",
            "place by cosine": f"{by_cosine[row]:.0%}",
            "the model finds them": "too alike" if moved[row] > 0 else "too different",
        },
        title="Most wrong pairs",
        note="By the distance of their places in the order of scores and of cosines. The first "
        "ones often have a wrong score.",
    )


def _places(values: np.ndarray) -> np.ndarray:
    """Return the place of each value in their order, float64, from 0 to 1; equal ones share theirs.

    The metric `spearman` compares these orders.
    """
    from scipy.stats import rankdata  # only where numbers are measured

    places: np.ndarray = (rankdata(values) - 1) / max(len(values) - 1, 1)
    return places


def _matched(
    task: SimilarityTask, source: Table, predicted: Mapping[str, Any], results: TaskResults
) -> Iterator[Section]:
    ranks = np.array([row["rank"] for row in results.predictions], np.int64)
    cosines = np.array([row["predicted_similarity"] for row in results.predictions], np.float64)
    bounds = list(_RANKS)
    groups = np.searchsorted(bounds, ranks)
    yield _ranks(ranks, groups)
    yield histogram(
        "Cosines of matching texts",
        "cosine",
        "rows",
        cosines,
        is_part=ranks > 1,
        part_noun="with a nearer text that does not match",
    )
    measures: dict[str, tuple[CellKind, np.ndarray]] = {
        "found first": ("fraction", ranks == 1),
        "among the first 10": ("fraction", ranks <= 10),
        "mean cosine": ("number", cosines),
    }
    negatives = [row.get("negative_similarity") for row in results.predictions]
    if negatives and None not in negatives:
        nearer = cosines > np.array(negatives, np.float64)
        measures["nearer than the negative"] = ("fraction", nearer)
    columns = [source.columns[name] for name in task.columns.texts]
    for name, column in zip(task.columns.texts[:2], columns, strict=False):
        yield table_by_length(
            {name: column},
            measures,
            title=f"By length of {name}",
            group_title=f"characters of {name}",
        )
    yield _lost_matches(task, source, predicted, ranks, cosines)


def _ranks(ranks: np.ndarray, groups: np.ndarray) -> TableSection:
    names = [*_RANKS.values(), _FARTHER]
    counts = np.bincount(groups, minlength=len(names))
    upto = np.cumsum(counts) / len(ranks)
    return TableSection(
        title="Where the match is found",
        columns=(
            ("rank of the match", "text"),
            ("rows", "count"),
            ("of all", "share"),
            ("up to here", "fraction"),
        ),
        rows=[
            [name, int(count), float(count / len(ranks)), float(share)]
            for name, count, share in zip(names, counts, upto, strict=True)
            if count
        ],
        note="Among all texts that are not the anchor, the nearest one has rank 1.",
    )


def _lost_matches(
    task: SimilarityTask,
    source: Table,
    predicted: Mapping[str, Any],
    ranks: np.ndarray,
    cosines: np.ndarray,
) -> ExamplesSection:
    """Show the rows whose match has the highest rank, with the text that is nearest instead."""
    names = task.columns.texts
    anchors, *others = (source.columns[name] for name in names)
    texts = [text for column in others for text in column]
    first = np.asarray(predicted[EMBEDDING])
    unit = normalized(np.asarray(predicted[PAIR_EMBEDDING]))
    matches: dict[str, set[str]] = {}
    for anchor, positive in zip(anchors, others[0], strict=True):
        matches.setdefault(anchor, {anchor}).add(positive)
    examples = []
    for row in worst_first(np.where(ranks > 1, ranks, 0).astype(np.float64)).tolist():
        if ranks[row] == 1:
            break
        similarity = unit @ normalized(first[row])
        known = matches[anchors[row]]
        nearest = next(
            (place for place in np.argsort(-similarity).tolist() if texts[place] not in known), None
        )
        texts_of_row = {names[0]: anchors[row], names[1]: others[0][row]}
        facts = {"rank": f"{ranks[row]:,}", "cosine of the match": f"{cosines[row]:.4f}"}
        if nearest is not None:
            texts_of_row["nearest instead"] = texts[nearest]
            facts["of the nearest"] = f"{similarity[nearest]:.4f}"
        examples.append(example_at(source.place(row), facts=facts, texts=texts_of_row))
    return ExamplesSection(
        title="Lost matches",
        examples=examples,
        note="Rows whose match has the highest rank, with the text that is nearest to the anchor "
        "and does not match it in the file; it may match all the same.",
    )
