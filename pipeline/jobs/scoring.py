"""`score`: adds an exported model's predictions to tables."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

from bert_tf.base.processor import vector_extensions
from bert_tf.base.wording import quantity
from bert_tf.config.sections import RunnerConfig, ScoreConfig
from bert_tf.engines.choice import ChosenEngine
from pipeline.beam.storage import use_storage_options
from pipeline.outputs.job import JobRecord, RunOptions
from pipeline.outputs.place import check_place, exported_model
from pipeline.scoring.blocks import check_tables
from pipeline.scoring.engine_choice import (
    choose_engine,
    describe_candidates,
    engine_candidates,
    saved_config,
)
from pipeline.scoring.join import ScoringCounts
from pipeline.scoring.parts import Fact
from pipeline.scoring.plan import ScoringPlan, make_plan
from pipeline.scoring.running import TableJob, preview


def run(config: ScoreConfig, runner: RunnerConfig, options: RunOptions) -> dict[str, Any]:
    """Scores the tables, or resumes from finished blocks; a dry run returns only known facts."""
    use_storage_options(runner.options, runner.runner)
    config = dataclasses.replace(config, model=exported_model(config.model, options.console))
    plan = make_plan(config)
    job = Scoring(config=config, model=config.model, plan=plan, runner=runner, options=options)
    # Before a trial takes its time; the job checks it again.
    check_place(job.spec.place, [config.model, *(table.source for table in plan.tables)])
    if config.dry_run:
        candidates = engine_candidates(config, job.saved(), runner)
        return preview(plan, options.console, engine=describe_candidates(candidates))
    with job.spec.holding(options.console) as check_held:
        return job.with_engine().run(check_held)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scoring(TableJob):
    config: ScoreConfig
    engine: ChosenEngine | None = None

    label: ClassVar[str] = "scoring"

    def saved(self) -> dict[str, Any]:
        is_new = self.options.overwrite
        return {} if is_new else dict(saved_config(self.config, is_folder=self.plan.is_folder))

    def with_engine(self) -> Scoring:
        """Returns the job with the engine of the run to resume, or the fastest in a trial."""
        config, console, saved = self.config, self.options.console, self.saved()
        candidates = engine_candidates(config, saved, self.runner)
        check_tables(self.plan, console)
        engine = choose_engine(candidates, self.plan, self.runner, console)
        # The config of an earlier release has no precision to keep.
        is_kept = saved.get("engine") == engine.entry.name and "precision" not in saved
        precision = config.precision if is_kept else engine.precision
        return dataclasses.replace(
            self,
            engine=engine,
            plan=dataclasses.replace(self.plan, engine=engine),
            config=dataclasses.replace(config, engine=engine.entry.name, precision=precision),
        )

    def announce(self, record: JobRecord) -> None:
        assert self.engine is not None
        record.console.info(f"engine: {self.engine.name}")

    def report(self, record: JobRecord, plan: ScoringPlan, counts: ScoringCounts) -> None:
        assert self.engine is not None
        if plan.abstention is not None:
            record.counts[Fact.ABSTAINED.value] = counts.sums[Fact.ABSTAINED]
            decided = counts.rows_out - counts.sums[Fact.ABSTAINED]
            record.console.info(
                f"decided: {decided:,} of {quantity(counts.rows_out, 'row')} (coverage "
                f"{decided / max(counts.rows_out, 1):.4f}); the others have a probability below "
                f"{plan.abstention.below:g} and no label"
            )
        record.extra = {
            "engine": self.engine.entry.name,
            "precision": self.engine.precision,
            "vector_extensions": vector_extensions(),
            **record.extra,
        }
        record.made = [(table.output, f"{table.source} with predictions") for table in plan.tables]
