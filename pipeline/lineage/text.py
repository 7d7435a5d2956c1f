"""A lineage as lines for people, and as JSON."""

from __future__ import annotations

from typing import Any

from bert_tf.base.wording import shown_size
from pipeline.lineage.trace import CHANGED, MISSING, NOT_COMPARED, SAME, Made, Source, finished
from pipeline.report.artifact import meaning_of

_STATES = {
    SAME: "",
    NOT_COMPARED: ", content not compared",
    CHANGED: ", CHANGED since it was read",
    MISSING: ", not here now",
}
_SHA256_SHOWN = 12


def lineage_lines(made: Made) -> list[str]:
    """A line per artifact and input, each below what was made from it, for people."""
    lines = [f"{made.path}: {_how_made(made)}"]
    shown = {made.path.resolve()}

    def add(step: Made, depth: int) -> None:
        for source in step.sources:
            lines.append("  " * depth + _source_line(source))
            inner = source.made
            if inner is None or not inner.sources:
                continue
            if inner.path.resolve() in shown:
                lines.append("  " * (depth + 1) + "(its inputs are above)")
                continue
            shown.add(inner.path.resolve())
            add(inner, depth + 1)

    add(made, 1)
    return lines


def _source_line(source: Source) -> str:
    how = "" if source.made is None else f"; {_how_made(source.made)}"
    return (
        f"{source.key or 'input'}: {source.path} ({shown_size(source.size)}, "
        f"SHA-256 {source.sha256[:_SHA256_SHOWN]}{_STATES[source.state]}){how}"
    )


def _how_made(made: Made) -> str:
    command = made.manifest.get("command", "")
    version = made.manifest.get("versions", {}).get("bert-pipeline", "")
    day = finished(made).date()
    return f"{meaning_of(command)}, made by bert-pipeline {command} {version} on {day}"


def lineage_json(made: Made) -> dict[str, Any]:
    """The same as nested objects."""
    return {
        "path": str(made.path),
        "command": made.manifest.get("command"),
        "finished": finished(made).isoformat(),
        "config": made.manifest.get("config", {}),
        "versions": made.manifest.get("versions", {}),
        "inputs": [
            {
                "key": source.key,
                "path": source.path,
                "bytes": source.size,
                "sha256": source.sha256,
                "state": source.state,
                "made": None if source.made is None else lineage_json(source.made),
            }
            for source in made.sources
        ],
    }
