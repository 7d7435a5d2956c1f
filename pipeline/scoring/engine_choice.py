"""Which engine a scoring job runs: that of an earlier run, or the fastest in a trial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bert_tf.base.console import Console
from bert_tf.base.processor import usable_cores
from bert_tf.config.registries import FLOAT32
from bert_tf.config.sections import RunnerConfig, ScoreConfig
from bert_tf.engines.choice import ChosenEngine, measured_speeds, possible_engines, trial_candidates
from pipeline.outputs.manifest import read_manifest
from pipeline.outputs.place import OutputPlace, read_marker
from pipeline.scoring.blocks import first_texts
from pipeline.scoring.plan import ScoringPlan


def threads_per_worker(runner: RunnerConfig) -> int | None:
    """Threads of a local worker process; None on remote runners."""
    if runner.runner != "local":
        return None
    return max(1, usable_cores() // max(1, runner.workers))


_TRIAL_ROWS = 4096  # in the first block; fewer are scored before a trial has ended


def saved_config(config: ScoreConfig, *, is_folder: bool) -> Mapping[str, Any]:
    """The config of the job that made or began the output; empty without one."""
    name = config.section_name
    place = OutputPlace(output=config.output, is_directory=is_folder)
    marker = read_marker(place.marker, name)
    manifest = read_manifest(config.output) or {}
    saved = (marker or {}).get(name) or manifest.get("config", {}).get(name)
    return saved if isinstance(saved, Mapping) else manifest.get("config", {})


def engine_candidates(
    config: ScoreConfig, saved: Mapping[str, Any], runner: RunnerConfig
) -> list[ChosenEngine]:
    """Returns the engines for a trial on the first block, or the only one.

    For remote runners a local trial is meaningless, so only an engine known to be installed there
    is chosen. Prefers the engine of `saved` if the config still allows it.
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
    """Returns the first candidate, or the fastest on the first block if that is large."""
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
