"""`score`: adds an exported model's predictions to tables."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from bert_tf.base.console import Console
from bert_tf.base.files import write_text_atomically
from bert_tf.base.processor import vector_extensions
from bert_tf.base.wording import quantity
from bert_tf.config.bert_file import read_task
from bert_tf.config.registries import FLOAT32
from bert_tf.config.sections import RunnerConfig, ScoreConfig
from bert_tf.data.tables.rejects import Reject, read_rejects, write_rejects
from bert_tf.embeddings.settings import EMBEDDING, EmbedderSettings
from bert_tf.engines.choice import ChosenEngine, measured_speeds, possible_engines, trial_candidates
from bert_tf.tasks.profile.drift import Drift
from pipeline.beam.storage import list_stored, use_storage_options
from pipeline.beam.stored_path import path_of
from pipeline.outputs.job import JobRecord
from pipeline.outputs.job_folder import finished_model, read_marker
from pipeline.outputs.job_spec import JobSpec, RunOptions, check_made_by, check_no_differences
from pipeline.outputs.manifest import (
    read_manifest,
    rejects_path,
    report_path,
)
from pipeline.outputs.place import check_place
from pipeline.report.rows.scored_page import page_of_scores, write_explained
from pipeline.scoring.first_rows import check_tables, first_texts
from pipeline.scoring.join import ScoringCounts, drift_of, numbered_parts, why_undecided
from pipeline.scoring.label_next import MarkedRow, choose_marked, read_line, rewrite_parts
from pipeline.scoring.output_rows import with_last_cell
from pipeline.scoring.parts import Fact
from pipeline.scoring.plan import ScoringPlan, make_plan
from pipeline.scoring.running import TableJob, preview, threads_per_worker
from pipeline.scoring.tables import ScoredTable
from pipeline.scoring.updating import (
    begin_update,
    end_update,
    kept_drift,
    manifest_before,
    named_inputs,
    plan_update,
    rejects_of,
)

_CHOSEN = ("engine", "precision")  # keys that an update takes from the run before
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
    possible = [
        dataclasses.replace(chosen, allows_drift=config.allow_drift)
        for chosen in possible_engines(
            config.engine, config.precision, config.model, is_elsewhere=is_elsewhere
        )
    ]
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
        console: receives the speeds.
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
    config = dataclasses.replace(config, model=finished_model(config.model, options.console))
    if config.update and not any(map(list_stored, config.input)):
        options.console.info(f"{', '.join(config.input)}: no file matches yet; nothing to do")
        return {}
    before = None
    if config.update and not options.overwrite:
        before = manifest_before(path_of(config.output))
    plan = make_plan(config, named_inputs(before))
    options.console.warn(*_single_texts(plan))
    job = Scoring(config=config, model=config.model, plan=plan, runner=runner, options=options)
    # Before a trial takes its time; the job checks it again.
    check_place(job.spec.place, [config.model, *(table.source for table in plan.tables)])
    if config.dry_run:
        candidates = engine_candidates(config, job.saved(), runner)
        return preview(plan, options.console, engine=describe_candidates(candidates))
    with job.spec.holding(options.console) as check_held:
        if config.update:
            return _update(job, check_held)
        return job.with_engine().run(check_held)


def _update(job: Scoring, check_held: Callable[[], None]) -> dict[str, Any]:
    """Score the tables of a folder that are new or have changed; return the manifest."""
    console = job.options.console
    folder = path_of(job.config.output)
    before = None if job.options.overwrite else manifest_before(folder)
    if before is not None:
        check_made_by(job.config.output, before, job.spec.command)
        saved = before.get("config", {})
        differing = [key for key in job.spec.different_keys(saved) if key not in _CHOSEN]
        check_no_differences(job.config.output, job.spec.differences(saved, differing))
    update = plan_update(job.plan, folder, before, job.spec.checked_inputs)
    if not update.plan.tables:
        console.info(f"{job.config.output}: all inputs are scored already; nothing to do")
        return {**(before or {}), "already_done": True}
    total = quantity(len(job.plan.tables), "input")
    console.info(f"{job.config.output}: {len(update.plan.tables):,} of {total} to score")
    chosen = dataclasses.replace(
        job,
        plan=update.plan,
        kept=update.kept,
        kept_rejects=rejects_of(folder, before, update.kept),
        kept_drift=kept_drift(before, update.kept),
    ).with_engine(before)
    if before is not None:
        # Engine and precision are only known now; the manifest still stands.
        check_no_differences(
            job.config.output, chosen.spec.differences(saved, chosen.spec.different_keys(saved))
        )
    begin_update(folder, before)
    manifest = chosen.run(check_held)
    end_update(folder)
    return manifest


def _single_texts(plan: ScoringPlan) -> Iterator[str]:
    """Say that a model that may be one of pairs scores single texts."""
    for name in plan.columns.empty_inputs:
        yield (
            f"{plan.tables[0].source}: has no column {name!r}, so single texts are scored; the "
            "model's weights do not say whether it was trained on pairs: if it was, name the "
            f"column of the second text by --{name.replace('_', '-')}-column"
        )


def model_vectors(plan: ScoringPlan, texts: list[str]) -> np.ndarray:
    """Compute vectors of texts by the encoder of the model, float32 [texts, hidden]."""
    embedder = EmbedderSettings.of_model(read_task(plan.model) or {}).load(plan.model)
    vectors: np.ndarray = embedder.predict({"text": texts}, batch_tokens=plan.batch_tokens)[
        EMBEDDING
    ]
    return vectors


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scoring(TableJob):
    """The job of `score`."""

    config: ScoreConfig
    engine: ChosenEngine | None = None
    kept: tuple[ScoredTable, ...] = ()  # that are up to date, beside those of the plan
    kept_rejects: tuple[Reject, ...] = ()  # of these
    kept_drift: Mapping[str, Drift] = dataclasses.field(default_factory=dict)  # by path of these

    label: ClassVar[str] = "scoring"

    @property
    def inputs(self) -> dict[str, list[str]]:
        kept = {f"input[{table.name}]": [table.source] for table in self.kept}
        return {**super().inputs, **kept}

    @property
    def spec(self) -> JobSpec:
        return dataclasses.replace(super().spec, is_update=self.config.update)

    def saved(self) -> Mapping[str, Any]:
        """Return the config of the job that made or began the output; empty for a new one."""
        if self.options.overwrite:
            return {}
        name = self.config.section_name
        marker = read_marker(self.spec.place.marker, name) or {}
        made = (read_manifest(self.config.output) or {}).get("config", {})
        saved = marker.get(name) or made.get(name)
        return saved if isinstance(saved, Mapping) else made

    def with_engine(self, before: Mapping[str, Any] | None = None) -> Scoring:
        """Return the job with the engine of the run to resume, or the fastest in a trial.

        Args:
            before: manifest of the run that is updated; None for another job.
        """
        config = self.config
        console = self.options.console
        saved = self.saved() if before is None else before.get("config", {})
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
        threshold = self.plan.threshold
        if threshold is not None:
            low, high = threshold.interval
            record.console.info(
                f"threshold: {threshold.below:g}, which {threshold.coverage:.1%} of "
                f"{quantity(threshold.rows, 'evaluation row')} reach with an accuracy of "
                f"{threshold.accuracy:.4f} ({low:.4f} to {high:.4f})"
            )

    def join(self, plan: ScoringPlan, rejects: Path) -> ScoringCounts:
        if plan.marked is None:
            return super().join(plan, rejects)
        parts = list(numbered_parts(plan))
        marked = plan.marked.read(parts)
        if plan.label_next is None and not plan.explains:
            return super().join(plan, rejects)
        if plan.label_next is None:
            self._explain(plan, marked, {(table, block): part for table, block, part in parts})
            return super().join(plan, rejects)
        chosen = choose_marked(marked, plan.label_next, lambda texts: model_vectors(plan, texts))
        part_of = {(table, block): part for table, block, part in parts}
        lines = []
        for row in chosen:
            line = read_line(part_of[row.table, row.block], row)
            lines.append((row, f"{line}\n".encode()))
        rewrite_parts(lines, lambda *where: part_of[where], only=True, all_parts=part_of)
        self.options.console.info(
            f"to label next: {quantity(len(chosen), 'row')}, chosen among the "
            f"{len(marked):,} least certain"
        )
        return dataclasses.replace(super().join(plan, rejects), rows_out=len(chosen))

    def _explain(
        self,
        plan: ScoringPlan,
        marked: Sequence[MarkedRow],
        part_of: Mapping[tuple[int, int], Path],
    ) -> None:
        """Add the explanations of marked rows to their lines."""
        from bert_tf.tasks.explaining.gradients import Explainer  # TensorFlow

        explainer = Explainer(plan.model)
        explanations: list[list[dict[str, Any]]] = [[] for _ in marked]
        begin = time.perf_counter()
        with self.options.console.counting("explaining", len(marked)) as show:
            for number, words in explainer.explain_rows([row.texts for row in marked]):
                explanations[number] = [each.as_json() for each in words]
                show(1)
        lines = []
        for row, entry in zip(marked, explanations, strict=True):
            line = read_line(part_of[row.table, row.block], row)
            new = with_last_cell(plan.tables[row.table], line, entry)
            lines.append((row, f"{new}\n".encode()))
        rewrite_parts(lines, lambda *where: part_of[where], only=False)
        write_explained(plan, marked, explanations)
        speed = len(marked) / max(time.perf_counter() - begin, 1e-9)
        self.options.console.info(
            f"explained: {quantity(len(marked), 'row')}, {speed:,.1f} rows/s, by integrated "
            f"gradients of the exported weights in float32"
        )

    def report(self, record: JobRecord, plan: ScoringPlan, counts: ScoringCounts) -> None:
        assert self.engine is not None
        if plan.abstention is not None:
            record.counts[Fact.ABSTAINED.value] = counts.sums[Fact.ABSTAINED]
            if plan.abstention.beyond is not None:
                record.counts[Fact.FAR.value] = counts.sums[Fact.FAR]
            decided = counts.rows_scored - counts.sums[Fact.ABSTAINED]
            record.console.info(
                f"decided: {decided:,} of {quantity(counts.rows_scored, 'row')} (coverage "
                f"{decided / max(counts.rows_scored, 1):.4f}); the others have "
                f"{why_undecided(plan.abstention, self.config.abstain_far, counts)}, and no label"
            )
        self._report_label_sets(record, plan, counts)
        drift = self._report_drift(record, plan)
        if plan.threshold is not None:
            record.extra["threshold"] = plan.threshold.as_json()
        record.extra = {
            "engine": self.engine.entry.name,
            "precision": self.engine.precision,
            "vector_extensions": vector_extensions(),
            **self._files_of_update(plan),
            **record.extra,
        }
        if self.kept_rejects:
            path = rejects_path(self.config.output)
            write_rejects(path, [*self.kept_rejects, *read_rejects(path)])
        record.made = [(table.output, f"{table.source} with predictions") for table in plan.tables]
        page = report_path(self.config.output)
        kept = {table.name: self.kept_drift.get(table.source) for table in self.kept}
        write_text_atomically(page, page_of_scores(self.config, plan, counts, drift, kept))
        record.made.append((str(page), "labels, probabilities, drift and rows to look at"))

    def _files_of_update(self, plan: ScoringPlan) -> dict[str, Any]:
        """Return which files the counts are of, and which stay as they were; {} of no update."""
        if not self.config.update:
            return {}
        tables = {"scored": plan.tables, "kept": self.kept}
        return {"files": {key: [each.source for each in scored] for key, scored in tables.items()}}

    def _report_drift(self, record: JobRecord, plan: ScoringPlan) -> dict[str, Drift]:
        """Say of each file, by its path, whether its rows are like those of training."""
        drifts = {table.source: drift_of(table, plan) for table in plan.tables}
        known = {source: drift for source, drift in drifts.items() if drift is not None}
        for source, drift in known.items():
            show = record.console.warn if drift.differences else record.console.info
            show(f"drift: {source}: {drift}")
        everything = {**self.kept_drift, **known}
        if everything:
            record.extra["drift"] = [
                {"source": source, **everything[source].as_json()} for source in sorted(everything)
            ]
        return known

    def _report_label_sets(
        self, record: JobRecord, plan: ScoringPlan, counts: ScoringCounts
    ) -> None:
        """Say how large the sets of labels are, and how sure their promise is."""
        sets = plan.columns.label_sets
        if sets is None:
            return
        rows = max(counts.rows_scored, 1)
        empty = counts.sums[Fact.SETS_EMPTY]
        size = counts.sums[Fact.SET_LABELS] / rows
        record.counts[Fact.SETS_EMPTY.value] = empty
        record.metrics["mean_label_set"] = round(size, 4)
        record.extra["label_sets"] = sets.as_json()
        record.console.info(
            f"label sets: {size:.2f} labels in the mean, {empty:,} empty; of rows like those of "
            f"evaluation {sets.coverage:.1%} ± {sets.deviation:.1%} have the right one in it"
        )
