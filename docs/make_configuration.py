"""Writes docs/configuration.md, the reference of all config keys.

python docs/make_configuration.py
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from pathlib import Path

from bert_tf.base.wording import shown_setting
from bert_tf.config.section import (
    Bounds,
    Section,
    argument_text,
    field_type,
    flag_text,
)
from bert_tf.config.sections import SECTIONS, FinetuneConfig
from bert_tf.tasks.registry import TASKS

PAGE = Path(__file__).with_name("configuration.md")
_HEAD = """\
# Configuration

Every key of a config file, section by section, as `COMMAND --help-all` lists them. A file has a
section per command and is given with `--config FILE.yaml`; sections of other commands are left
alone. Values are read by the type of their key: text is text, whatever YAML would make of it
(`label_column: no`). What is set later wins: the file, then a variable `BERT_PIPELINE_SECTION_KEY`
of the environment, then `--set section.key=value`, then the flag. Keys without a flag are set in
the other ways. `bert-pipeline schema` prints all of it as a JSON Schema for editors.

Made by `python docs/make_configuration.py` from the declarations in `bert_tf/config/sections` and
the `options.py` of each task.
"""
_NO_FLAG = "-"


def reference() -> str:
    """The page."""
    parts = [_HEAD]
    for name, section in SECTIONS.items():
        parts += _chapter(f"`{name}`", section, dataclasses.fields(section))
        if section is FinetuneConfig:
            common = {field.name for field in dataclasses.fields(section)}
            for task, declaration in TASKS.items():
                own = [f for f in dataclasses.fields(declaration.options) if f.name not in common]
                parts += _chapter(f"`{name}` of {task}", declaration.options, own)
    return "\n".join(parts)


def _chapter(
    title: str, section: type[Section], fields: Iterable[dataclasses.Field]
) -> Iterator[str]:
    yield f"## {title}\n"
    yield "| key | flag | values | default | |"
    yield "|---|---|---|---|---|"
    for field in fields:
        cells = (f"`{field.name}`", _flag(field), _values(section, field), _default(field))
        yield f"| {' | '.join(cells)} | {_escaped(field.metadata['doc'])} |"
    yield ""


def _flag(field: dataclasses.Field) -> str:
    if field.metadata["advanced"]:
        return _NO_FLAG
    if field.metadata["positional"]:
        return f"`{argument_text(field)}`"
    return f"`{flag_text(field)}`"


def _values(section: type[Section], field: dataclasses.Field) -> str:
    kind, many, _, bounds = field_type(section, field.name)
    if field.metadata["choices"]:
        words = ", ".join(f"`{choice}`" for choice in field.metadata["choices"])
    elif issubclass(kind, Section):
        words = ", ".join(f"`{inner.name}`" for inner in dataclasses.fields(kind))
    else:
        words = {bool: "yes, no", int: "whole number", float: "number"}.get(kind, "text")
        words += _bounds(bounds)
    return f"list of {words}" if many else words


def _bounds(bounds: Bounds) -> str:
    found = dataclasses.asdict(bounds)
    words = {"minimum": "from", "above": "above", "maximum": "to", "below": "below"}
    given = (f" {word} {found[name]:,}" for name, word in words.items() if found[name] is not None)
    return "".join(given)


def _default(field: dataclasses.Field) -> str:
    if field.metadata["required"]:
        return "required"
    return "" if field.default in (None, ()) else f"`{shown_setting(field.default)}`"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
