"""Content of the page of `score`, gathered from the parts of the job."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from bert_tf.base.files import write_text_atomically
from bert_tf.base.wording import quantity
from bert_tf.config.sections import ScoreConfig
from bert_tf.data.tables.places import Place
from bert_tf.tasks.base.report_sections import Example, example_at, shown_texts
from bert_tf.tasks.profile.drift import Drift
from pipeline.report.rows.scored_sections import ExplainedRow, ScoredFile, scored_page
from pipeline.scoring.join import ScoringCounts, numbered_parts, scores_of, why_undecided
from pipeline.scoring.label_next import STEPS, MarkedRow
from pipeline.scoring.parts import Fact
from pipeline.scoring.plan import ScoringPlan
from pipeline.scoring.tables import ScoredTable

_EXPLAINED = "explained.json"  # beside the parts, from the join to the page


def write_explained(
    plan: ScoringPlan, rows: Sequence[MarkedRow], explanations: Sequence[list[dict[str, Any]]]
) -> None:
    """Keep explained rows for the page."""
    explained = [
        [_file_of(row, plan), row.place, row.texts, of_row]
        for row, of_row in zip(rows, explanations, strict=True)
    ]
    write_text_atomically(plan.parts / _EXPLAINED, json.dumps(explained))


def page_of_scores(
    config: ScoreConfig,
    plan: ScoringPlan,
    counts: ScoringCounts,
    drift: Mapping[str, Drift],
    kept: Mapping[str, Drift | None],
) -> str:
    """Render the page of a finished job, whose parts are still there.

    Args:
        config: of the job.
        plan: of the job.
        counts: of its rows.
        drift: of its inputs, by path.
        kept: the same of inputs that an update left as they were, by the names of their outputs in
            the folder; None where it is unknown.
    """
    files = [
        ScoredFile(
            source=_shown_name(table),
            drift=drift.get(table.source),
            scores=scores_of(table, plan),
        )
        for table in plan.tables
    ]
    explained = []
    if plan.explains:
        stored = json.loads((plan.parts / _EXPLAINED).read_text(encoding="utf-8"))
        explained = [
            ExplainedRow(file=file, place=Place(*place), texts=texts, explanations=of_row)
            for file, place, texts, of_row in stored
        ]
    uncertain = []
    if plan.marked is not None and plan.marked.output is not None and plan.label_next is None:
        uncertain = [_example(row, plan) for row in plan.marked.read(numbered_parts(plan))]
    rejected = sum(counts.rejected.values())
    facts = [f"{quantity(counts.rows_scored, 'row')} scored, {rejected:,} rejected"]
    if plan.abstention is not None:
        undecided = quantity(counts.sums[Fact.ABSTAINED], "prediction")
        reasons = why_undecided(plan.abstention, config.abstain_far, counts)
        facts.append(f"{undecided} left out, of rows with {reasons}")
    if kept:
        scored = quantity(len(plan.tables), "file")
        others = quantity(len(kept), "other file")
        stay = "stays" if len(kept) == 1 else "stay"
        facts.append(
            f"rows of {scored} that this update scored; {others} of the folder {stay} as an "
            "earlier run scored them"
        )
    # Names without their folders: the page is the same wherever the job ran.
    title = f"{name_of(config.output)}: scored by {name_of(config.model)}"
    return scored_page(title, facts, files, uncertain, explained, kept)


def name_of(path: str) -> str:
    """Return the last part of a path or address."""
    return path.rstrip("/").rpartition("/")[2]


def _shown_name(table: ScoredTable) -> str:
    """Name an input by its output in the folder, since several may have the same last part."""
    return table.name or name_of(table.source)


def _file_of(row: MarkedRow, plan: ScoringPlan) -> str:
    """Name the file of a row, if there are several."""
    return _shown_name(plan.tables[row.table]) if len(plan.tables) > 1 else ""


def _example(row: MarkedRow, plan: ScoringPlan) -> Example:
    file = _file_of(row, plan)
    texts = shown_texts({name: [value] for name, value in row.texts.items()}, 0)
    facts = {**({"file": file} if file else {}), "margin": f"{row.key / STEPS:.4f}"}
    return example_at(row.place, facts=facts, texts=texts)
