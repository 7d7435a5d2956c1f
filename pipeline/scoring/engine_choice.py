"""Which engine a scoring job runs: what an earlier run of it took, or the fastest in a trial."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bert_tf.base.console import Console
from bert_tf.config.sections import RunnerConfig, ScoreConfig
from bert_tf.engines.choice import (
    ChosenEngine,
    measured_speeds,
    possible_engines,
    worth_a_trial,
)
from bert_tf.engines.registry import FLOAT32
from pipeline.outputs.manifest import read_manifest
from pipeline.outputs.place import marker_path, read_marker
from pipeline.scoring.blocks import first_texts
from pipeline.scoring.plan import ScoringPlan
from pipeline.scoring.threads import threads_per_worker

_FEW_ROWS = 4096  # in the first block: they are scored before a trial has ended


def saved_config(config: ScoreConfig, *, is_folder: bool) -> Mapping[str, Any]:
    """The config of the job that made, or began to make, the output; empty without one."""
    name = config.section_name
    marker = read_marker(marker_path(config.output, is_directory=is_folder), name)
    manifest = read_manifest(config.output) or {}
    saved = (marker or {}).get(name) or manifest.get("config", {}).get(name)
    return saved if isinstance(saved, Mapping) else manifest.get("config", {})


def choose_engine(
    config: ScoreConfig,
    plan: ScoringPlan,
    saved: Mapping[str, Any],
    runner: RunnerConfig,
    console: Console,
) -> ChosenEngine:
    """The engine of a job.

    Several are tried only where the first block is large and the job runs on this machine.

    Args:
        config: what was asked for.
        plan: the job, with any engine.
        saved: of `saved_config`; its engine is taken again where the config still allows it.
        runner: where the job runs.
        console: where the figures of a trial go.
    """
    possible = possible_engines(config.engine, config.precision, config.model)
    before = (saved.get("engine"), saved.get("precision", FLOAT32))
    for chosen in possible:
        if (chosen.entry.name, chosen.precision) == before:
            return chosen
    tried = worth_a_trial(possible)
    if len(tried) == 1 or runner.runner != "local":
        return possible[0]
    texts = first_texts(plan.tables[0], plan)
    if len(next(iter(texts.values()))) < _FEW_ROWS:
        return possible[0]
    speeds = measured_speeds(
        tried,
        plan.model,
        texts,
        batch_tokens=plan.batch_tokens,
        threads=threads_per_worker(runner),
    )
    figures = (
        f"{chosen.name} {speed:,.1f} rows/s" for chosen, speed in zip(tried, speeds, strict=True)
    )
    console.info(f"engines tried: {', '.join(figures)}")
    return tried[speeds.index(max(speeds))]
