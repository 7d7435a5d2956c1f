"""A plan without a model, and tables cut and joined as the pipeline does it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from bert_tf.engines.registry import ENGINES
from bert_tf.tasks.registry import TASKS
from pipeline.scoring.blocks import cut_table, read_block
from pipeline.scoring.columns import ScoringColumns
from pipeline.scoring.join import ScoringCounts, join_parts
from pipeline.scoring.parts import ScoredBlock, finished_rows, write_part
from pipeline.scoring.plan import ScoringPlan
from pipeline.scoring.tables import list_tables

COLUMNS = ScoringColumns(sources={"text": "text"}, fields=TASKS["classification"].predictions)


def label_of(text: str) -> str:
    """Return the stand-in's prediction: it depends on the text alone and needs quoting."""
    return f'{len(text)}, "{text[:1].strip()}"'


@pytest.fixture
def make_plan(tmp_path) -> Callable[..., ScoringPlan]:
    """Return a plan for files in the test's folder."""

    def make(*patterns: str, output: str, **values) -> ScoringPlan:
        tables, is_folder = list_tables(
            tuple(str(tmp_path / pattern) for pattern in patterns), str(tmp_path / output)
        )
        parts = tmp_path / "parts"
        parts.mkdir(exist_ok=True)
        defaults = {
            "columns": COLUMNS,
            "block_rows": 3,
            "limit": 0,
            "batch_tokens": 64,
            "identity": "model a",
        }
        return ScoringPlan(
            model="model",
            engine=ENGINES["tensorflow"],
            tables=tuple(tables),
            is_folder=is_folder,
            parts=parts,
            **{**defaults, **values},
        )

    return make


@pytest.fixture
def score(tmp_path) -> Callable[[ScoringPlan], ScoringCounts]:
    """Run a plan with `label_of` in place of a model; rejects go to `rejects.jsonl`."""

    def run(plan: ScoringPlan) -> ScoringCounts:
        for table in plan.tables:
            for reference in cut_table(table, plan):
                if finished_rows(reference, plan) is not None:
                    continue
                block = read_block(reference, plan)
                texts = block.texts["text"]
                predicted = {
                    "predicted_label": np.array([label_of(text) for text in texts], object),
                    "predicted_score": np.full(len(texts), 0.25, np.float32),
                }
                write_part(ScoredBlock(block, predicted), plan)
        return join_parts(plan, Path(tmp_path / "rejects.jsonl"))

    return run
