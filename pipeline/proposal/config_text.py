"""Configs as text: YAML with the reason for each value beside it, and options of a command."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bert_tf.base.errors import UsageError
from bert_tf.base.wording import printable, quantity, shown_duration, shown_setting
from bert_tf.config.plain_yaml import yaml_text
from bert_tf.config.section import Section, fields_of, flag_text

if TYPE_CHECKING:
    from bert_tf.pretraining.step_trial import TriedStep
    from bert_tf.tasks.running.survey import MeasuredSteps

_COMMENT_COLUMN = 34  # of the config, in which reasons begin


def commented_yaml(
    section: str,
    values: Mapping[str, Any],
    *,
    reasons: Mapping[str, str],
    heading: Sequence[str],
    hints: Sequence[str] = (),
) -> str:
    """Write a config section.

    Args:
        section: its name.
        values: its keys, in the order in which they are written.
        reasons: a comment for some keys.
        heading: comments above the section.
        hints: comments below its keys.

    Returns:
        YAML, in which short values have their reason beside them, others above.
    """
    lines = [*map(_comment, heading), f"{section}:"]
    for key, value in values.items():
        text = yaml_text({key: value}).rstrip("\n")
        reason = _comment(reasons[key]) if reasons.get(key) else ""
        if "\n" not in text and len(text) <= _COMMENT_COLUMN:
            lines.append(f"  {text:{_COMMENT_COLUMN}}{reason}".rstrip())
            continue
        if reason:
            lines.append(f"  {reason}")
        lines += [f"  {line}" for line in text.split("\n")]
    return "\n".join([*lines, *(f"  {_comment(line)}" for line in hints), ""])


def _comment(text: str) -> str:
    """Write a comment in one line: a line break in the name of a file or column would add keys."""
    return f"# {' '.join(printable(text).splitlines())}"


def option_words(config: Section, names: Iterable[str], *, section: str) -> list[str]:
    """Return options for values that are not the default: flags, and `--set` for keys without one.

    Args:
        config: the section.
        names: of the keys to write, in this order.
        section: its name, for `--set`.

    Returns:
        The words of a command line, not quoted yet.
    """
    words = []
    fields = fields_of(config)
    for name in names:
        field = fields[name]
        value = getattr(config, name)
        if value == field.default:
            continue
        if field.metadata["advanced"]:
            words += ["--set", f"{section}.{name}={shown_setting(value)}"]
        elif isinstance(value, bool):
            on, _, off = flag_text(field).partition("/")
            if not off:
                off = f"--no-{on.removeprefix('--')}"
            words.append(on if value else off)
        else:
            items = value if isinstance(value, tuple) else (value,)
            for item in items:
                words += [flag_text(field), shown_setting(item)]
    return words


def config_file(path: str, *, overwrite: bool) -> Path:
    """Return the path to write.

    Raises:
        UsageError: it exists, and may not be replaced.
    """
    if Path(path).exists() and not overwrite:
        raise UsageError(f"{path}: exists; name another file with --output, or give --overwrite")
    return Path(path)


def time_line(seconds: float, steps: int, timed: MeasuredSteps | TriedStep, about: str) -> str:
    """Describe the estimated time of a run, and the measurement behind it.

    Args:
        seconds: of the run.
        steps: of the run.
        timed: the steps that were timed.
        about: the machine or arithmetic, for the reader.
    """
    return (
        f"{shown_duration(seconds)} for {quantity(steps, 'step')} of {timed.seconds:.2f} s "
        f"({about}; {quantity(timed.count, 'step')} timed)"
    )
