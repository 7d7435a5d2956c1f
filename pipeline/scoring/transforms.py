"""The Beam pipeline of scoring: tables to blocks, blocks through an engine, to parts."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import apache_beam as beam
from apache_beam.ml.inference.base import ModelHandler, RunInference

from bert_tf.engines.engine import Engine
from pipeline.beam.progress import Progress, report_progress
from pipeline.scoring.blocks import BlockReference, RowBlock, cut_table, read_block
from pipeline.scoring.parts import ScoredBlock, WritePart, finished_rows
from pipeline.scoring.plan import ScoringPlan


class ScoreTables(beam.PTransform):
    """Makes the parts that are not finished.

    Args:
        plan: of the job.
        threads: of one operation in each process; None for all cores.
        write: writes the part of a scored block.
    """

    def __init__(self, plan: ScoringPlan, *, threads: int | None = None, write: WritePart):
        super().__init__()
        self._plan = plan
        self._threads = threads
        self._write = write

    def expand(self, pipeline: beam.pvalue.PBegin) -> beam.PCollection[None]:
        plan = self._plan
        drop_memory_warning()
        return (
            pipeline
            | "ListTables" >> beam.Create(plan.tables)
            | "CutIntoBlocks" >> beam.FlatMap(cut_table, plan)
            | "SpreadBlocks" >> beam.Reshuffle()
            | "SkipScoredBlocks" >> beam.Filter(_is_left, plan)
            | "ReadBlock" >> beam.Map(read_block, plan)
            | "Predict" >> RunInference(EngineHandler(plan, threads=self._threads))
            | "WritePart" >> beam.Map(self._write, plan)
        )


class EngineHandler(ModelHandler[RowBlock, ScoredBlock, Engine]):
    """Loads and calls an engine for RunInference, a block at a time, one model per process.

    Beam's own TensorFlow handlers load Keras files, which a SavedModel is not.

    Args:
        plan: of the job.
        threads: of one operation; None leaves all cores to the process.
    """

    def __init__(self, plan: ScoringPlan, *, threads: int | None):
        super().__init__()
        self._plan = plan
        self._threads = threads

    def load_model(self) -> Engine:
        plan = self._plan
        return plan.engine.load(plan.model, threads=self._threads, is_checked=True)  # by the job

    def run_inference(
        self, batch: Sequence[RowBlock], model: Engine, inference_args: dict[str, Any] | None = None
    ) -> Iterable[ScoredBlock]:
        for block in batch:
            count = _TokenCount()
            predicted = model.predict(
                block.texts,
                batch_tokens=self._plan.batch_tokens,
                on_rows=lambda rows: report_progress(Progress.ROWS, rows),
                on_tokens=count.add,
            )
            yield ScoredBlock(block, predicted, (count.tokens, count.padded))

    def batch_elements_kwargs(self) -> Mapping[str, Any]:
        return {"min_batch_size": 1, "max_batch_size": 1}

    def get_num_bytes(self, batch: Sequence[RowBlock]) -> int:
        """Return the characters of the texts, for Beam's metrics."""
        columns = [texts for block in batch for texts in block.texts.values()]
        return sum(len(text) for texts in columns for text in texts)

    def get_metrics_namespace(self) -> str:
        return "bert_pipeline_scoring"


class _TokenCount:
    """Adds up the tokens of batches, and reports them."""

    def __init__(self) -> None:
        self.tokens = 0
        self.padded = 0  # tokens with padding

    def add(self, tokens: int, padded: int) -> None:
        self.tokens += tokens
        self.padded += padded
        report_progress(Progress.TOKENS, tokens)
        report_progress(Progress.PADDED_TOKENS, padded)


def _is_left(reference: BlockReference, plan: ScoringPlan) -> bool:
    """Return whether a block is still to be scored, and report finished ones."""
    rows = finished_rows(reference, plan)
    if rows is not None:
        report_progress(Progress.EARLIER_ROWS, rows)
    return rows is None


def drop_memory_warning() -> None:
    """Silence RunInference, which cannot measure memory without PyTorch."""
    logging.getLogger().addFilter(_is_no_memory_warning)


def _is_no_memory_warning(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith("Resource module is not available")
