"""Finds the tables of an output folder that are up to date, for `score --update`.

A scheduler runs the same command again and again, while files are added and change. Tables that
were made by the same model from the same content stay as they are; the manifest of the last
finished run has their SHA-256. While an update runs, that manifest and its rejects are kept under
other names, in case the update is killed.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf.base.errors import UsageError
from bert_tf.base.json_files import read_if_sound, write_sealed
from bert_tf.data.tables.rejects import Reject, read_rejects, write_rejects
from bert_tf.tasks.profile.drift import Drift
from pipeline.outputs.inputs import CheckedInputs, fingerprint
from pipeline.outputs.manifest import (
    BEFORE_UPDATE,
    INPUTS,
    REJECTS_BEFORE_UPDATE,
    manifest_path,
    read_manifest,
    rejects_path,
)
from pipeline.scoring.plan import ScoringPlan
from pipeline.scoring.tables import ScoredTable

_INPUT = re.compile(r"input\[(.+)\]", re.DOTALL)  # a key of the manifest's inputs


@dataclasses.dataclass(frozen=True, kw_only=True)
class Update:
    """Tables of an output folder that are left to score.

    Attributes:
        plan: the plan, of the tables that are left.
        kept: the tables that are up to date.
        before: manifest of the last finished run; None if there was none.
    """

    plan: ScoringPlan
    kept: tuple[ScoredTable, ...]
    before: Mapping[str, Any] | None


def manifest_before(folder: Path) -> dict[str, Any] | None:
    """Return the manifest of the last finished run, also if an update of it was killed."""
    manifest = read_manifest(folder) if folder.is_dir() else None
    return manifest or read_if_sound(folder / BEFORE_UPDATE)


def named_inputs(before: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the inputs of the last finished run by the names of their outputs in the folder."""
    inputs = (before or {}).get("inputs", [])
    matches = ((_INPUT.fullmatch(str(item.get("key", ""))), item) for item in inputs)
    return {key[1]: str(item["path"]) for key, item in matches if key is not None}


def kept_drift(before: Mapping[str, Any] | None, kept: Sequence[ScoredTable]) -> dict[str, Drift]:
    """Return the drift of kept tables from the last finished run, by their paths now."""
    sources = _sources_now(before, kept)
    known = ((str(Path(entry["source"])), entry) for entry in (before or {}).get("drift", []))
    return {sources[path]: Drift.from_json(entry) for path, entry in known if path in sources}


def _sources_now(before: Mapping[str, Any] | None, kept: Sequence[ScoredTable]) -> dict[str, str]:
    """Return the paths of kept tables by their paths in the manifest of the last finished run.

    A file may be named by a relative path in one run and an absolute one in the next; its output
    has the same name.
    """
    earlier = named_inputs(before)
    return {earlier[table.name]: table.source for table in kept if table.name in earlier}


def plan_update(
    plan: ScoringPlan,
    folder: Path,
    before: Mapping[str, Any] | None,
    checked: CheckedInputs,
) -> Update:
    """Find the tables that the model has to score, or score again.

    Args:
        plan: the plan of all tables.
        folder: the output.
        before: manifest of the last finished run, with the same config; None for none.
        checked: see `JobSpec.checked_inputs`.
    """
    if not plan.is_folder:
        raise UsageError("--update: needs a folder as --output, with a file for each input")
    if before is None:
        return Update(plan=plan, kept=(), before=None)
    known = {item["key"]: item["sha256"] for item in before.get("inputs", []) if "key" in item}
    sizes = {output["path"]: output["bytes"] for output in before.get("outputs", [])}
    is_same_model = known.get("model") == fingerprint(plan.model, checked["model"])["sha256"]

    def is_kept(table: ScoredTable) -> bool:
        output = folder / table.name
        return (
            is_same_model
            and output.is_file()
            and sizes.get(table.name) == output.stat().st_size
            and known.get(f"input[{table.name}]") == fingerprint(table.source)["sha256"]
        )

    kept = tuple(filter(is_kept, plan.tables))
    left = [table for table in plan.tables if table not in kept]
    numbered = (dataclasses.replace(table, number=place) for place, table in enumerate(left))
    changed = dataclasses.replace(plan, tables=tuple(numbered), may_be_empty=bool(kept))
    return Update(plan=changed, kept=kept, before=before)


def begin_update(folder: Path, before: Mapping[str, Any] | None) -> None:
    """Make a finished folder an unfinished one, so that a job can fill it again.

    The list of inputs of an update that was killed is removed, too: inputs may have been added
    since, and each finished block names its own.
    """
    if before is not None:
        if manifest_path(folder).exists():  # else an update was killed, which kept them
            write_rejects(folder / REJECTS_BEFORE_UPDATE, read_rejects(rejects_path(folder)))
        write_sealed(folder / BEFORE_UPDATE, dict(before))
        manifest_path(folder).unlink(missing_ok=True)
    (folder / INPUTS).unlink(missing_ok=True)


def rejects_of(
    folder: Path, before: Mapping[str, Any] | None, kept: Sequence[ScoredTable]
) -> tuple[Reject, ...]:
    """Return the rejects of kept tables, which an update puts before its own.

    Args:
        folder: the output.
        before: manifest of the last finished run; None for none.
        kept: the tables, whose paths replace those in the rejects.
    """
    sources = _sources_now(before, kept)
    path = rejects_path(folder)
    if not manifest_path(folder).exists():  # an update was killed, which may have begun a new list
        path = folder / REJECTS_BEFORE_UPDATE
    known = ((str(Path(reject.source)), reject) for reject in read_rejects(path))
    return tuple(
        dataclasses.replace(reject, source=sources[name])
        for name, reject in known
        if name in sources
    )


def end_update(folder: Path) -> None:
    """Remove the files kept in case an update is killed."""
    for name in (REJECTS_BEFORE_UPDATE, BEFORE_UPDATE):
        (folder / name).unlink(missing_ok=True)
