"""The config that `init` writes: YAML with the reason for each value beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf.base.errors import UsageError
from bert_tf.base.wording import printable, quantity, shown_duration
from bert_tf.config.plain_yaml import yaml_text

_COMMENT_COLUMN = 34


def commented_yaml(
    section: str,
    values: Mapping[str, Any],
    *,
    reasons: Mapping[str, str],
    heading: Sequence[str],
    hints: Sequence[str] = (),
) -> str:
    """Writes a config section with its keys in the order of `values`.

    `reasons` are comments by key; `heading` and `hints` are comments above and below the section.
    """
    lines = [*map(_comment, heading), f"{section}:"]
    for key, value in values.items():
        text = yaml_text({key: value}).rstrip("\n")
        reason = _comment(reasons[key]) if reasons.get(key) else ""
        if "\n" in text or len(text) > _COMMENT_COLUMN:
            lines += [f"  {reason}"] if reason else []
            lines += [f"  {line}" for line in text.split("\n")]
        else:
            lines.append(f"  {text:{_COMMENT_COLUMN}}{reason}" if reason else f"  {text}")
    return "\n".join([*lines, *(f"  {_comment(line)}" for line in hints), ""])


def _comment(text: str) -> str:
    """A name of a file or column with line breaks would add keys."""
    return f"# {' '.join(printable(text).splitlines())}"


def config_file(path: str, *, overwrite: bool) -> Path:
    """Returns the path to write; raises UsageError if it exists and may not be replaced."""
    if Path(path).exists() and not overwrite:
        raise UsageError(f"{path}: exists; name another file with --output, or give --overwrite")
    return Path(path)


def time_line(seconds: float, steps: int, *, step_seconds: float, about: str, timed: int) -> str:
    """Describes the estimated time of a run, and its basis."""
    return (
        f"{shown_duration(seconds)} for {quantity(steps, 'step')} of {step_seconds:.2f} s "
        f"({about}; {quantity(timed, 'step')} timed)"
    )
