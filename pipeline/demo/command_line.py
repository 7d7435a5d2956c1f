"""The command equal to a config section, so that a demo can be repeated by hand."""

from __future__ import annotations

import dataclasses
import shlex
from typing import Any

from bert_tf.config.section import Section, flag_text


def command_line(command: str, section: Section) -> str:
    """`bert-pipeline COMMAND …` with every key that differs from its default.

    Args:
        command: the command's name.
        section: its resolved config.
    """
    words = ["bert-pipeline", command]
    assignments: list[str] = []
    fields = dataclasses.fields(section)
    arguments = [field.name for field in fields if field.metadata["positional"]]
    words += [str(getattr(section, name)) for name in arguments]
    for field in fields:
        value = getattr(section, field.name)
        if field.name in arguments or value == field.default:
            continue
        if field.metadata["advanced"]:
            assignments += ["--set", f"{section.section_name}.{field.name}={_as_text(value)}"]
            continue
        spelling = flag_text(field)
        if isinstance(value, bool):
            words.append(_switch(spelling, value))
        else:
            for item in value if isinstance(value, tuple) else (value,):
                words += [spelling, _as_text(item)]
    return shlex.join(words + assignments)


def _switch(spelling: str, value: bool) -> str:
    on, _, off = spelling.partition("/")
    return on if value else off or f"--no-{on.removeprefix('--')}"


def _as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
