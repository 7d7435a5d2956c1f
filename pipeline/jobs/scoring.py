"""`score`: adds an exported model's predictions to tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from bert_tf.base.console import Console
from bert_tf.base.processor import vector_extensions
from bert_tf.base.wording import quantity
from bert_tf.config.registries import FLOAT32
from bert_tf.config.sections import RunnerConfig, ScoreConfig
from bert_tf.engines.choice import ChosenEngine, measured_speeds, possible_engines, trial_candidates
from pipeline.beam.storage import use_storage_options
from pipeline.outputs.job import JobRecord, RunOptions
from pipeline.outputs.manifest import read_manifest
from pipeline.outputs.place import check_place, exported_model, read_marker
from pipeline.scoring.blocks import check_tables, first_texts
from pipeline.scoring.join import ScoringCounts
from pipeline.scoring.parts import Fact
from pipeline.scoring.plan import ScoringPlan, make_plan
from pipeline.scoring.running import TableJob, preview, threads_per_worker

_TRIAL_ROWS = 4096  # in the first block; fewer are scored before a trial has ended


def engine_candidates(
    config: ScoreConfig, saved: Mapping[str, Any], runner: RunnerConfig
) -> list[ChosenEngine]:
    """Return the engines for a trial on the first block, or the only one.

    For remote runners a local trial is meaningless, so only an engine known to be installed there
    is chosen.

    Args:
        config: of `score`.
        saved: config of an earlier run; its engine is kept if the config still allows it.
        runner: where the pipeline runs.
    """
    is_elsewhere = runner.runner != "local"
    possible = possible_engines(
        config.engine, config.precision, config.model, is_elsewhere=is_elsewhere
    )
    before = (saved.get("engine"), saved.get("precision", FLOAT32))
    for chosen in possible:
        if (chosen.entry.name, chosen.precision) == before:
            return [chosen]
    if is_elsewhere:
        return possible[:1]
    rows = min(config.block_rows, config.limit or config.block_rows)
    candidates = trial_candidates(possible)
    return candidates if rows >= _TRIAL_ROWS else candidates[:1]


def describe_candidates(candidates: Sequence[ChosenEngine]) -> str:
    """Say which engine will run, as far as that is known before a trial."""
    first, *others = (chosen.name for chosen in candidates)
    if not others:
        return first
    return (
        f"{first}, or the fastest of {', '.join((first, *others))} in a trial if the first block "
        f"has {_TRIAL_ROWS:,} rows"
    )


def choose_engine(
    candidates: Sequence[ChosenEngine], plan: ScoringPlan, runner: RunnerConfig, console: Console
) -> ChosenEngine:
    """Return the first candidate, or the fastest on the first block if that is large.

    Args:
        candidates: at least one, the preferred first.
        plan: of the job.
        runner: tells the threads of a worker.
        console: is told of the speeds.
    """
    if len(candidates) == 1:
        return candidates[0]
    texts = first_texts(plan.tables[0], plan)
    if len(next(iter(texts.values()))) < _TRIAL_ROWS:
        return candidates[0]
    speeds = measured_speeds(
        candidates,
        plan.model,
        texts,
        batch_tokens=plan.batch_tokens,
        threads=threads_per_worker(runner),
    )
    figures = (
        f"{chosen.name} {speed:,.1f} rows/s"
        for chosen, speed in zip(candidates, speeds, strict=True)
    )
    console.info(f"engines tried: {', '.join(figures)}")
    return candidates[speeds.index(max(speeds))]


def run(config: ScoreConfig, runner: RunnerConfig, options: RunOptions) -> dict[str, Any]:
    """Score the tables, or resume from finished blocks.

    Args:
        config: of `score`.
        runner: where the pipeline runs.
        options: how the command runs.

    Returns:
        The manifest; of a dry run only known facts.

    Raises:
        UsageError: model, tables or outputs do not fit each other.
        InputError: the model or a table is damaged.
    """
    use_storage_options(runner.options, runner.runner)
    config = dataclasses.replace(config, model=exported_model(config.model, options.console))
    plan = make_plan(config)
    options.console.warn(*_single_texts(plan))
    job = Scoring(config=config, model=config.model, plan=plan, runner=runner, options=options)
    # Before a trial takes its time; the job checks it again.
    check_place(job.spec.place, [config.model, *(table.source for table in plan.tables)])
    if config.dry_run:
        candidates = engine_candidates(config, job.saved(), runner)
        return preview(plan, options.console, engine=describe_candidates(candidates))
    with job.spec.holding(options.console) as check_held:
        return job.with_engine().run(check_held)


def _single_texts(plan: ScoringPlan) -> Iterator[str]:
    """Say that a model that may be one of pairs scores single texts."""
    for name in plan.columns.empty_inputs:
        yield (
            f"{plan.tables[0].source}: has no column {name!r}, so single texts are scored; the "
            "model's weights do not say whether it was trained on pairs: if it was, name the "
            f"column of the second text by --{name.replace('_', '-')}-column"
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scoring(TableJob):
    """The job of `score`."""

    config: ScoreConfig
    engine: ChosenEngine | None = None

    label: ClassVar[str] = "scoring"

    def saved(self) -> Mapping[str, Any]:
        """Return the config of the job that made or began the output; empty for a new one."""
        if self.options.overwrite:
            return {}
        name = self.config.section_name
        marker = read_marker(self.spec.place.marker, name) or {}
        made = (read_manifest(self.config.output) or {}).get("config", {})
        saved = marker.get(name) or made.get(name)
        return saved if isinstance(saved, Mapping) else made

    def with_engine(self) -> Scoring:
        """Return the job with the engine of the run to resume, or the fastest in a trial."""
        config = self.config
        console = self.options.console
        saved = self.saved()
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
