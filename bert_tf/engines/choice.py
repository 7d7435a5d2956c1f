"""Choose the engine and precision of a job: as asked for, or the fastest in a trial."""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf.base.errors import UsageError
from bert_tf.base.gpus import nvidia_gpus
from bert_tf.base.processor import has_bfloat16
from bert_tf.config.bert_file import read_task
from bert_tf.config.registries import AUTO, BFLOAT16, FLOAT16, FLOAT32, INT8
from bert_tf.engines.engine import Engine
from bert_tf.engines.probes import ProbesDifferError
from bert_tf.engines.registry import EngineEntry, usable_engines
from bert_tf.tasks.registry import declared_task

_TRIAL_SECONDS = 1.0  # for each engine
_TRIAL_ROWS = 128  # rows that are predicted before the time is checked
_WARM_UP_ROWS = 16
_FAST_BFLOAT16 = (8, 0)  # compute capability from which bfloat16 is as fast as float16


@dataclasses.dataclass(frozen=True, kw_only=True)
class ChosenEngine:
    """An `EngineLoader`: an engine in one of its precisions.

    Attributes:
        entry: the engine.
        precision: one of its precisions.
        allows_drift: whether it may score although its probe rows score differently here.
    """

    entry: EngineEntry
    precision: str = FLOAT32
    allows_drift: bool = False

    @property
    def name(self) -> str:
        several = len(self.entry.precisions) > 1
        return f"{self.entry.name} {self.precision}" if several else self.entry.name

    def reads(self, name: str) -> bool:
        return self.entry.reads(name)

    def load(
        self, folder: str | Path, *, threads: int | None = None, is_checked: bool = False
    ) -> Engine:
        return self.entry.load(
            folder,
            threads=threads,
            is_checked=is_checked,
            precision=self.precision,
            allows_drift=self.allows_drift,
        )


def possible_engines(
    name: str, precision: str, folder: str | Path, *, is_elsewhere: bool = False
) -> list[ChosenEngine]:
    """List engines and precisions that can compute a job, the likely fastest first.

    Args:
        name: name of an engine, or `auto`.
        precision: `float32`, `bfloat16`, `float16`, `int8`, or `auto`, which includes int8 if the
            model was exported with it, and 16 bits if the processor or GPU has them; only float32
            for tasks whose numbers are compared (`is_exact`).
        folder: the exported model.
        is_elsewhere: whether other machines, which may lack this one's extras and instructions,
            compute it: then an engine known to be installed there comes first.

    Raises:
        UsageError: see `usable_engines`; also if none of them has the precision.
    """
    entries = usable_engines(name, folder)
    precisions = [INT8, BFLOAT16, FLOAT32] if has_bfloat16() else [INT8, FLOAT32]
    if entries[0].is_of_gpus:
        precisions = [_half_of_gpu(), FLOAT32]
    if is_elsewhere:
        entries.sort(key=lambda entry: entry.is_extra)
        precisions.reverse()
    task = read_task(folder)
    if task is not None and declared_task(task, str(folder)).is_exact:
        precisions = [FLOAT32]
    if precision != AUTO:
        precisions = [precision]
    candidates = [
        ChosenEngine(entry=entry, precision=possible)
        for possible in precisions
        for entry in entries
        if possible in entry.precisions_of(Path(folder))
    ]
    able = [entry.name for entry in entries if INT8 in entry.precisions]
    if not candidates and precision == INT8 and able:
        raise UsageError(
            f"--precision int8: {folder} has no graph of 8-bit integers for {' or '.join(able)}; "
            "make one with bert-pipeline export --format FORMAT --precision int8 --calibrate ROWS"
        )
    if not candidates:
        raise UsageError(
            f"--precision {precision}: not with {' or '.join(entry.name for entry in entries)}, "
            f"which supports {entries[0].precisions[0]}; take that, or another --engine"
        )
    return candidates


def _half_of_gpu() -> str:
    """Return the fastest precision of 16 bits on the GPU; bfloat16 if both are equally fast."""
    gpus = nvidia_gpus()
    capability = gpus[0].capability if gpus else None
    return FLOAT16 if capability is not None and capability < _FAST_BFLOAT16 else BFLOAT16


def trial_candidates(engines: Sequence[ChosenEngine]) -> list[ChosenEngine]:
    """Select the engines to try.

    Skips float32 if the engine has a faster precision, and TensorFlow, which starts slowly, if
    others can run the model.
    """
    # The fastest precision of an engine comes first, and in reversed order it is assigned last.
    fastest = {chosen.entry.name: chosen for chosen in reversed(engines)}
    tried = [chosen for chosen in engines if fastest[chosen.entry.name] is chosen]
    return [chosen for chosen in tried if chosen.entry.takes_token_ids] or tried[:1]


def measured_speeds(
    engines: Sequence[ChosenEngine],
    folder: str | Path,
    columns: Mapping[str, list[Any]],
    *,
    batch_tokens: int,
    threads: int | None = None,
) -> list[float]:
    """Measure the rows per second of each engine, in about a second of work on the same rows.

    An engine whose scores are not those of the export is reported and has a speed of 0.

    Args:
        engines: candidates.
        folder: the exported model.
        columns: texts of the rows, by input name.
        batch_tokens: tokens of a batch, padding included.
        threads: threads of an engine; None for the engine's own choice.

    Raises:
        UsageError: no engine has the scores of the export.
    """
    rows = len(next(iter(columns.values())))
    parts = [
        {name: texts[begin : begin + _TRIAL_ROWS] for name, texts in columns.items()}
        for begin in range(0, rows, _TRIAL_ROWS)
    ]
    speeds: list[float] = []
    for number, chosen in enumerate(engines):
        try:
            engine = chosen.load(folder, threads=threads)
        except ProbesDifferError as error:
            is_last = number == len(engines) - 1
            if is_last and not any(speeds):
                raise
            logging.getLogger("bert_pipeline").warning("%s", error)
            speeds.append(0.0)
            continue
        engine.predict({name: texts[:_WARM_UP_ROWS] for name, texts in parts[0].items()})
        done = 0
        begin = time.perf_counter()
        for part in parts:
            engine.predict(part, batch_tokens=batch_tokens)
            done += len(next(iter(part.values())))
            if time.perf_counter() - begin > _TRIAL_SECONDS:
                break
        speeds.append(done / (time.perf_counter() - begin))
    return speeds
