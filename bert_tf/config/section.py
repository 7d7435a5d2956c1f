"""Typed configuration sections: a frozen dataclass per section, a documented option per field.

One declaration serves the YAML reader, `--set key=value`, the flags and the documentation.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import os
import types
import typing
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeVar

from bert_tf.base.errors import ConfigError
from bert_tf.base.wording import did_you_mean
from bert_tf.config.values import (
    BOOLEANS,
    Bounds,
    boolean_of,
    not_a_choice,
    number_of,
    shown,
    text_of,
)

# Kinds of input paths and of outputs, see `option`.
Reads = Literal["any", "file", "files", "table", "tables", "folder", "model"]
Writes = Literal["file", "folder"]
_MOST_LISTED = 12  # known keys in a message


PositiveInt = Annotated[int, Bounds(1)]
NonNegativeInt = Annotated[int, Bounds(0)]
BatchSize = Annotated[int, Bounds(1, 1_000_000)]
NonNegativeFloat = Annotated[float, Bounds(0.0)]
Fraction = Annotated[float, Bounds(0.0, 1.0)]
FractionBelowOne = Annotated[float, Bounds(0.0, below=1.0)]
PositiveFraction = Annotated[float, Bounds(above=0.0, maximum=1.0)]


def option(
    doc: str,
    default: Any = dataclasses.MISSING,
    *,
    choices: Collection[str] | None = None,
    flag: str | None = None,
    alternative: str | None = None,
    common: bool = False,
    advanced: bool = False,
    positional: bool = False,
    reads: Reads | None = None,
    writes: Writes | None = None,
    affects_output: bool = True,
    former_default: Any = None,
) -> Any:
    """Declare one field of a section; bounds of a number are `Bounds` in the field's type.

    Args:
        doc: one line of help.
        default: default value, or the first of the choices; keys without either are required.
        choices: allowed strings; for a registry, its names at the time of use.
        flag: click flag, if it is not the field's name in kebab case (`--lowercase/--cased`).
        alternative: key that may be given instead of a required one.
        common: listed by `--help` with the required ones, before the others.
        advanced: only in YAML and `--set`, so that `--help` stays short.
        positional: given by its place on the command line instead of by a flag.
        reads: kind of its input paths, checked before a job starts and completed by a shell;
            `files` and `tables` may be globs.
        writes: kind of the output; None if its name or the inputs decide.
        affects_output: False for keys of speed and safety, which do not change the output.
        former_default: for a key that the job chooses unless it is given: its default in releases
            that did not choose, with which their outputs were made.
    """
    if choices is not None and default is dataclasses.MISSING:
        default = next(iter(choices))
    # All arguments: the flags, the YAML reader and the documentation read them from here.
    metadata = {**locals(), "required": default is dataclasses.MISSING}
    return dataclasses.field(default=None if metadata["required"] else default, metadata=metadata)


optional = functools.partial(option, default=None)


def chosen_option(doc: str, *, by: str, former_default: Any, advanced: bool = False) -> Any:
    """Declare a key that is None until the job chooses its value.

    Args:
        doc: see `option`.
        by: the facts from which the job chooses, for the help.
        former_default, advanced: see `option`.
    """
    return option(
        f"{doc} (default: chosen by {by})", None, advanced=advanced, former_default=former_default
    )


advanced = functools.partial(option, advanced=True)
repeatable = functools.partial(option, default=())


@typing.dataclass_transform(frozen_default=True, kw_only_default=True)
@dataclasses.dataclass(frozen=True, kw_only=True)
class Section:
    """Base of all sections. A subclass becomes a frozen, keyword-only dataclass by itself.

    `section_name` is the section's key in a YAML file.
    """

    # Section to read in a file without this one, and its keys to leave out; None for no other.
    read_instead: ClassVar[tuple[str, tuple[str, ...]] | None] = None
    # Keys of which exactly one is given: one on the command line replaces the others of a file.
    one_of: ClassVar[tuple[str, ...]] = ()
    section_name: ClassVar[str] = ""

    def __init_subclass__(cls, section_name: str = "") -> None:
        cls.section_name = section_name or cls.section_name
        dataclasses.dataclass(frozen=True, kw_only=True)(cls)

    def faults(self) -> Iterator[str]:
        """Yield faults that involve more than one field, as `key: what is wrong; what to do`.

        Each class yields only those of its own fields: `build_section` calls the `faults` of every
        base.
        """
        return iter(())

    def check_installed(self) -> None:
        """Raise UsageError if a package that the values need is missing."""

    def as_dict(self) -> dict[str, Any]:
        """Return the values by key, as plain lists and mappings."""
        return {field.name: _plain(getattr(self, field.name)) for field in dataclasses.fields(self)}


def fields_of(section: type[Section] | Section) -> dict[str, dataclasses.Field]:
    """Return the fields of a section by name."""
    return {field.name: field for field in dataclasses.fields(section)}


def former_defaults(section: type[Section] | Section) -> dict[str, Any]:
    """Return the keys whose values the job chooses unless given, with their former defaults."""
    return {
        name: field.metadata["former_default"]
        for name, field in fields_of(section).items()
        if field.metadata["former_default"] is not None
    }


def _plain(value: Any) -> Any:
    """Convert tuples to lists, and sections to mappings."""
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value.as_dict() if isinstance(value, Section) else value


SectionType = TypeVar("SectionType", bound=Section)


def plain_values(section: type[Section], values: dict[str, Any]) -> dict[str, Any]:
    """Convert values from YAML to those of `as_dict`; values of other releases stay."""
    fields = fields_of(section)
    plain = dict(values)
    # An empty text stays; from users it would become None.
    for name in fields.keys() & {key for key in values if values[key] != ""}:
        with contextlib.suppress(ValueError):
            plain[name] = _plain(_convert(section, fields[name], values[name]))
    return plain


class FieldType(NamedTuple):
    """Type of a field.

    Attributes:
        kind: scalar type.
        many: whether the field is a tuple of them.
        optional: whether it may be None.
        bounds: bounds of a number.
    """

    kind: type
    many: bool
    optional: bool
    bounds: Bounds

    def __str__(self) -> str:
        text = f"tuple[{self.kind.__name__}, ...]" if self.many else self.kind.__name__
        return f"{text} | None" if self.optional else text


@functools.cache
def _type_hints(section: Any) -> dict[str, Any]:
    """Return annotations by field; the first of several bases wins, as in dataclasses."""
    # From the base next to `object` down to the nearest one, so that nearer ones win.
    bases = [_type_hints(base) for base in section.__mro__[-2:0:-1]]
    own = inspect.get_annotations(section, eval_str=True)
    return {name: hint for hints in (*bases, own) for name, hint in hints.items()}


def field_type(section: type[Section], name: str) -> FieldType:
    """Return the type of a field."""
    hints = _type_hints(typing.cast(Any, section))  # mypy: a class of dataclasses has no hash
    hint = hints[name]
    optional = False
    bounds = Bounds()
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        members = [arg for arg in typing.get_args(hint) if arg is not type(None)]
        optional = len(members) < len(typing.get_args(hint))
        hint = members[0]
    if typing.get_origin(hint) is Annotated:
        hint, bounds = typing.get_args(hint)
    many = typing.get_origin(hint) is tuple
    if many:
        hint = typing.get_args(hint)[0]
    if many and typing.get_origin(hint) is Annotated:
        hint, bounds = typing.get_args(hint)
    return FieldType(hint, many, optional, bounds)


def build_section(
    section: type[SectionType], values: dict[str, Any], sources: dict[str, str] | None = None
) -> SectionType:
    """Make a checked section from raw values (from YAML, text or Python).

    Args:
        section: the section.
        values: raw values by key.
        sources: origin of each value (`run.yaml: train.steps`, `--steps`), for messages.

    Raises:
        ConfigError: with every unknown key, bad value, missing key and inconsistency at once.
    """
    sources = sources or {}
    fields = fields_of(section)
    faults: list[str] = []
    clean: dict[str, Any] = {}
    for name, raw in values.items():
        place = sources.get(name, f"{section.section_name}.{name}")
        if name not in fields:
            faults.append(f"{place}: {_unknown_key(name, section)}")
            continue
        try:
            clean[name] = _convert(section, fields[name], raw)
        except ValueError as error:
            faults.append(f"{place}: {error}")
    for name, field in sorted(fields.items(), key=lambda item: not item[1].metadata["positional"]):
        alternative = field.metadata["alternative"]
        is_given = any(values.get(key) not in (None, (), []) for key in (name, alternative))
        if field.metadata["required"] and not is_given:
            faults.append(_missing(section, field))
    if faults:
        raise ConfigError(faults)
    built = section(**clean)
    # Each class checks its own fields, the bases first.
    for declaring in reversed(section.__mro__):
        own = vars(declaring).get("faults")
        if own is not None:
            faults += [f"{section.section_name}.{fault}" for fault in own(built)]
    if faults:
        raise ConfigError(faults)
    return built


def _missing(section: type[Section], field: dataclasses.Field) -> str:
    """Say that a required key is missing, and how to give it."""
    doc = field.metadata["doc"]
    alternative = field.metadata["alternative"]
    if field.metadata["positional"]:
        command = section.section_name.replace("_", "-")
        hint = "" if field.metadata["choices"] else f" ({doc})"
        return f"name a {field.name}: bert-pipeline {command} {argument_text(field)}{hint}"
    instead = f" (or set {section.section_name}.{alternative})" if alternative else ""
    return f"{flag_text(field)} is missing: {doc}{instead}"


def flag_text(field: dataclasses.Field) -> str:
    """Return the flag of a field."""
    return field.metadata["flag"] or "--" + field.name.replace("_", "-")


def field_given_again(flag: str, times: int) -> str:
    """Return the fault of a flag that was given several times."""
    return f"{flag}: given {times} times, but it takes one value; give it once"


def argument_text(field: dataclasses.Field) -> str:
    """Return the placeholder of a positional field: `one|two`, `SOURCE`."""
    return "|".join(field.metadata["choices"] or [field.name.upper()])


def _unknown_key(name: str, section: type[Section]) -> str:
    """Say that a section has no such key, and which one may be meant."""
    known = [field.name for field in dataclasses.fields(section)]
    command = section.section_name.replace("_", "-")
    listing = f"bert-pipeline {command} --help-all lists the keys"
    prefix = f"{section.section_name}."
    return f"unknown key; {likely_key(str(name), known, prefix=prefix, listing=listing)}"


def likely_key(name: str, known: Collection[str], *, prefix: str = "", listing: str) -> str:
    """Suggest the nearest known key, or the command that lists all.

    Args:
        name: the unknown name, which may be the initials of a key (`lr`).
        known: known keys.
        prefix: shown before the keys.
        listing: the command, shown if there are many keys and none is similar.
    """
    initials: dict[str, str] = {}
    for key in known:
        letters = "".join(word[0] for word in key.split("_"))
        initials.setdefault(letters, key)
    listed = listing if len(known) > _MOST_LISTED else f"known keys: {', '.join(known)}"
    return did_you_mean(
        initials.get(name, name), known, f"did you mean '{prefix}{{}}'?", otherwise=listed
    )


def _convert(section: type[Section], field: dataclasses.Field, raw: Any) -> Any:
    """Convert a raw value to the type of a field.

    Raises:
        ValueError: with the expected and the given value, for the user.
    """
    kind, many, optional, _bounds = field_type(section, field.name)
    if raw is None or (optional and raw == ""):
        if optional or field.metadata["required"]:
            return None
        raise ValueError("needs a value, got nothing")
    if many:
        items = raw if isinstance(raw, list | tuple) else [raw]
        if isinstance(raw, str) and kind in (int, float):
            listed = raw.strip().removeprefix("[").removesuffix("]")
            items = listed.split(",") if listed.strip() else []
        if issubclass(kind, Section):
            return tuple(_convert_item(kind, item, n) for n, item in enumerate(items, start=1))
        return tuple(_convert_scalar(section, field, item) for item in items)
    return _convert_scalar(section, field, raw)


def _convert_item(section: type[SectionType], raw: Any, number: int) -> SectionType:
    """Build a section that is an item of a list; `number`, from 1, is for messages."""
    if not isinstance(raw, dict):
        raise ValueError(f"item {number}: expected key: value pairs, got {shown(raw)}")
    try:
        return build_section(section, raw)
    except ConfigError as error:
        raise ValueError(f"item {number}: {'; '.join(error.faults)}") from None


def _convert_scalar(section: type[Section], field: dataclasses.Field, raw: Any) -> Any:
    """Convert a raw value, which is no list, to the type of a field, and check it."""
    declared = field_type(section, field.name)
    choices = field.metadata["choices"]
    if declared.kind is bool:
        return boolean_of(raw)
    if declared.kind in (int, float):
        return number_of(declared.kind, raw, declared.bounds)
    if choices and "on" in choices and str(raw).lower() in BOOLEANS:  # also `true`, `no`
        return "on" if boolean_of(raw) else "off"
    text = text_of(raw)
    if choices and text not in choices:
        raise ValueError(not_a_choice(raw, choices))
    is_path = field.metadata["reads"] or field.name == "output"
    # A shell does not expand `~` in a file or after `=`.
    if is_path and text.partition("/")[0] == "~" and not Path("~").exists():
        return os.path.expanduser(text)  # noqa: PTH111  a path would lose the last slash
    return text
