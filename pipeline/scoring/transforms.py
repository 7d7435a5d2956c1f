"""The scoring pipeline: tables to blocks, blocks to parts."""

from __future__ import annotations

import logging

import apache_beam as beam
from apache_beam.ml.inference.base import RunInference

from pipeline.scoring.blocks import cut_table, read_block
from pipeline.scoring.model_handler import EngineHandler
from pipeline.scoring.parts import is_scored, write_part
from pipeline.scoring.plan import ScoringPlan


class ScoreTables(beam.PTransform):
    """From the start of a pipeline to the parts of all outputs; parts that are there stay.

    Args:
        plan: the job.
        threads: see `EngineHandler`.
    """

    def __init__(self, plan: ScoringPlan, *, threads: int | None = None):
        super().__init__()
        self._plan = plan
        self._threads = threads

    def expand(self, pipeline: beam.pvalue.PBegin) -> beam.PCollection[None]:
        """Applies the transforms."""
        plan = self._plan
        _drop_memory_warning()
        return (
            pipeline
            | "ListTables" >> beam.Create(plan.tables)
            | "CutIntoBlocks" >> beam.FlatMap(cut_table, plan)
            | "SpreadBlocks" >> beam.Reshuffle()
            | "SkipScoredBlocks" >> beam.Filter(lambda reference: not is_scored(reference, plan))
            | "ReadBlock" >> beam.Map(read_block, plan)
            | "Predict" >> RunInference(EngineHandler(plan, threads=self._threads))
            | "WritePart" >> beam.Map(write_part, plan)
        )


def _drop_memory_warning() -> None:
    """RunInference cannot measure the model's memory without PyTorch, and says so each time."""
    logging.getLogger().addFilter(
        lambda record: not record.getMessage().startswith("Resource module is not available")
    )
