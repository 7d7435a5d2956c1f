"""A manifest as pairs of name and text, for the terminal and the page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bert_tf.base.wording import shown_number, shown_setting, shown_size
from bert_tf.config.section import Section
from bert_tf.config.sections import SECTIONS, FinetuneConfig
from bert_tf.tasks.registry import TASKS

Fact = tuple[str, str]
_INPUTS_SHOWN = 3


def leaves(mapping: dict[str, Any], *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The values of nested mappings that are not empty, with the keys that lead to each."""
    for key, value in mapping.items():
        if isinstance(value, dict):
            yield from leaves(value, *path, key)
        elif value not in (None, [], ""):
            yield (*path, key), value


def setting_facts(mapping: dict[str, Any]) -> list[tuple[tuple[str, ...], str]]:
    """Settings as they are written in a config."""
    return [(path, shown_setting(value)) for path, value in leaves(mapping)]


def changed_settings(manifest: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """The config of a manifest without the values that are defaults, and how many of those there
    are, empty ones aside.

    Of a command or task that is not known, all of it.
    """
    config = manifest.get("config", {})
    section = section_of(manifest.get("command", ""), config)
    defaults = {} if section is None else section().as_dict()
    changed = {
        key: value for key, value in config.items() if key not in defaults or value != defaults[key]
    }
    unchanged = {key: value for key, value in config.items() if key not in changed}
    return changed, len(list(leaves(unchanged)))


def section_of(command: str, config: dict[str, Any]) -> type[Section] | None:
    """The section that a config is of; None of a command or task that is not known."""
    if command == FinetuneConfig.section_name:
        declaration = TASKS.get(config.get("task", ""))
        return None if declaration is None else declaration.options
    return SECTIONS.get(command.replace("-", "_"))


def measured_facts(mapping: dict[str, Any]) -> list[tuple[tuple[str, ...], str]]:
    """Counts and measures to read; `split: train` of what is in `train` is redundant."""
    return [
        (path, shown_number(value))
        for path, value in leaves(mapping)
        if path[-2:] != (value, "split")
    ]


def input_facts(inputs: list[dict[str, Any]]) -> list[Fact]:
    """The files and folders that were read: the first of each key, and how many more there are.

    Args:
        inputs: of a manifest, with the config key that names each where the manifest has it.
    """
    groups: dict[str, list[dict[str, Any]]] = {}
    for item in inputs:
        groups.setdefault(str(item.get("key", "input")).partition("[")[0], []).append(item)
    facts = []
    for key, items in groups.items():
        name = "input" if key == "input" else f"input {key}"
        shown = items if len(items) <= _INPUTS_SHOWN + 1 else items[:_INPUTS_SHOWN]
        facts += [
            (name, f"{item['path']}  {shown_size(item['bytes'])}  sha256 {item['sha256'][:12]}")
            for item in shown
        ]
        if more := len(items) - len(shown):
            total = f"{len(items):,} in all, {shown_size(sum(item['bytes'] for item in items))}"
            facts.append((name, f"and {more:,} more; {total}"))
    return facts


def duration(timings: dict[str, float]) -> str:
    """How long the job took, with its last part if it was interrupted."""
    total = f"{timings['total']:,.1f} s"
    if "last_part" in timings:
        return f"{total}, of which {timings['last_part']:,.1f} s since it was resumed"
    return total
