"""What makes two runs of a command the same: the config keys that count, and what was read."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bert_tf.base.errors import UsageError
from bert_tf.config.section import Section, field_type
from pipeline.outputs.manifest import fingerprint

# The paths that a config key names, by that key. In brackets is what else decides their part:
# `phases[0].data`, or `input[NAME]` where names of inputs become those of outputs.
Inputs = Mapping[str, Sequence[str]]
# Which files of a folder its `SHA256SUMS` has to vouch for, by the key of `Inputs`.
CheckedInputs = Mapping[str, Callable[[str], bool]]


def input_fingerprints(inputs: Inputs, checked: CheckedInputs) -> list[dict[str, Any]]:
    """The fingerprint of every input, with the key that names it.

    Raises:
        UsageError: an input is not there.
        InputError: a file that is checked is not the one that `SHA256SUMS` vouches for.
    """
    return [
        {"key": key, **fingerprint(path, checked.get(key))}
        for key, paths in inputs.items()
        for path in paths
    ]


def kept_keys(config: Mapping[str, Any], ignored_keys: tuple[str, ...]) -> dict[str, Any]:
    """The values that decide what is made.

    Args:
        config: a section as plain values.
        ignored_keys: keys to leave out; `list.key` leaves one out of every item of a list.
    """
    kept = {key: value for key, value in config.items() if key not in ignored_keys}
    for ignored in ignored_keys:
        name, dot, inner = ignored.partition(".")
        if dot and isinstance(kept.get(name), list):
            kept[name] = [
                {key: value for key, value in item.items() if key != inner}
                for item in kept[name]
                if isinstance(item, Mapping)  # a marker edited by hand may hold anything
            ]
    return kept


def keys_without_effect(config: Section) -> tuple[str, ...]:
    """The config keys of a section that never decide what is made."""
    fields = dataclasses.fields(config)
    return ("output", *(each.name for each in fields if not each.metadata["affects_output"]))


def with_defaults(section: type[Section], config: Mapping[str, Any]) -> dict[str, Any]:
    """A saved config with the keys that an earlier release did not have, as their defaults.

    Args:
        section: its section, whose new keys default to what was done before there were such keys.
        config: plain values as that release saved them.
    """
    complete = {**section().as_dict(), **config}
    for field in dataclasses.fields(section):
        kind, is_list, _ = field_type(section, field.name)
        items = complete[field.name]
        if is_list and issubclass(kind, Section) and isinstance(items, list):
            complete[field.name] = [
                with_defaults(kind, item) if isinstance(item, Mapping) else item for item in items
            ]
    return complete


def config_key(key: str) -> str:
    """The config key in a key of `Inputs`: `phases.data` for `phases[0].data`."""
    return re.sub(r"\[.*\]", "", key)


def are_same_contents(before: list[dict[str, Any]], now: list[dict[str, Any]]) -> bool:
    """Whether the same was read by the same keys, whatever it was called and in whatever order."""
    # Manifests of release 0.1 do not say by which key.
    keys = ("key", "sha256") if all("key" in item for item in before) else ("sha256",)
    return sorted([item[key] for key in keys] for item in before) == sorted(
        [item[key] for key in keys] for item in now
    )


def is_extended(
    before: Mapping[str, Any], now: Mapping[str, Any], extendable_key: str | None
) -> bool:
    """Whether a config asks for more of the key, such as steps, than an earlier one."""
    if extendable_key is None:
        return False
    saved = before.get(extendable_key)
    return isinstance(saved, int | float) and now[extendable_key] > saved


def different_keys(
    before: Mapping[str, Any], now: Mapping[str, Any], extendable_key: str | None
) -> list[str]:
    """The keys in which a config differs from an earlier one, beyond being extended."""
    extended = extendable_key if is_extended(before, now, extendable_key) else None
    return [key for key in now if before.get(key) != now[key] and key != extended]


def difference_of(key: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """How a key differs, in words."""
    return f"{key}: {before.get(key)!r} then, {now[key]!r} now"


def check_made_by(output: str, finished: Mapping[str, Any], command: str) -> None:
    """Refuses an output that another command has made.

    Args:
        output: as it was given.
        finished: its manifest.
        command: that is to make it.

    Raises:
        UsageError: another has.
    """
    if finished.get("command") != command:
        raise UsageError(
            f"{output}: made by bert-pipeline {finished.get('command')}; "
            "choose another --output or replace it with --overwrite"
        )


def made_with_another_config(output: str, differences: Sequence[str]) -> UsageError:
    """The error for an output that is not the one that is asked for."""
    return UsageError(
        f"{output}: made with another config ({'; '.join(differences)}); "
        "choose another --output or replace it with --overwrite"
    )


def already_finished(output: str) -> str:
    """What is said where nothing is left to do."""
    return f"{output} is finished already and its config is the same; nothing to do"
