"""How Beam's RunInference loads and calls an engine."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from apache_beam.ml.inference.base import ModelHandler

from bert_tf.base.atomic_files import write_text_atomically
from bert_tf.engines.engine import Engine
from pipeline.scoring.blocks import RowBlock
from pipeline.scoring.parts import ScoredBlock
from pipeline.scoring.plan import ScoringPlan

_PROGRESS_SECONDS = 1.0


class EngineHandler(ModelHandler[RowBlock, ScoredBlock, Engine]):
    """Scores a block at a time; the engine sorts and batches the rows of a block itself.

    RunInference keeps one model a process, whatever the number of its threads. Beam's own
    TensorFlow handlers load Keras files, which a SavedModel is not.

    Args:
        plan: the job.
        threads: threads of one operation; None leaves all cores to the process.
    """

    def __init__(self, plan: ScoringPlan, *, threads: int | None):
        super().__init__()
        self._plan = plan
        self._threads = threads

    def load_model(self) -> Engine:
        """Loads the plan's model by its engine."""
        return self._plan.engine.load(self._plan.model, threads=self._threads)

    def run_inference(
        self,
        batch: Sequence[RowBlock],
        model: Engine,
        inference_args: dict[str, Any] | None = None,
    ) -> Iterable[ScoredBlock]:
        """Predicts every block of a batch, which has one."""
        for block in batch:
            predicted = model.predict(
                block.texts,
                batch_tokens=self._plan.batch_tokens,
                on_rows=_ProgressFile(self._plan, block).add,
            )
            yield ScoredBlock(block, predicted)

    def batch_elements_kwargs(self) -> Mapping[str, Any]:
        """A block is a batch already."""
        return {"min_batch_size": 1, "max_batch_size": 1}

    def get_num_bytes(self, batch: Sequence[RowBlock]) -> int:
        """Size of the texts, for Beam's metrics, in characters."""
        return sum(len(text) for block in batch for texts in block.texts.values() for text in texts)

    def get_metrics_namespace(self) -> str:
        """Where Beam's metrics stand."""
        return "bert_pipeline_scoring"


class _ProgressFile:
    """Says every second how many rows of a block are scored; see `pipeline.scoring.progress`."""

    def __init__(self, plan: ScoringPlan, block: RowBlock):
        self._path = plan.progress_file(block.reference.table, block.reference.number)
        self._rows = 0
        self._written = -float("inf")

    def add(self, rows: int) -> None:
        self._rows += rows
        now = time.monotonic()
        if now - self._written >= _PROGRESS_SECONDS:
            write_text_atomically(self._path, str(self._rows), lasting=False)
            self._written = now
