"""Build a checked section from YAML, environment, `--set` and flags; later sources win."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Container, Iterable, Mapping
from typing import Any, Generic, NamedTuple

import yaml

from bert_tf.base.errors import ConfigError
from bert_tf.base.wording import did_you_mean, nearest
from bert_tf.config.plain_yaml import explain_yaml, naming_file, read_yaml, read_yaml_file
from bert_tf.config.section import (
    Section,
    SectionType,
    build_section,
    field_given_again,
    field_type,
    fields_of,
    flag_text,
)
from bert_tf.config.sections import SECTIONS
from bert_tf.config.values import not_a_choice, shown


@dataclasses.dataclass(frozen=True, kw_only=True)
class Variants(Generic[SectionType]):
    """The sections of a command whose options depend on the value of one of its keys.

    Attributes:
        common: section with the common keys; it is also the section without a value of `key`,
            unless the key is positional.
        key: name of the key.
        sections: a subclass of `common` for each value of the key.
    """

    common: type[SectionType]
    key: str
    sections: Mapping[str, type[SectionType]]

    @property
    def section_name(self) -> str:
        """Name of the section in a YAML file."""
        return self.common.section_name

    def resolve(
        self,
        *,
        config_file: str | None = None,
        assignments: tuple[str, ...] = (),
        flags: Mapping[str, Any],
    ) -> SectionType:
        """Build the section that the value of the key chooses; arguments are those of `resolve`."""
        chosen = self._chosen(config_file, assignments, flags)
        section = self.common if chosen is None else self.sections[chosen]
        others: dict[str, list[str]] = {}
        for value, other in self.sections.items():
            for name in fields_of(other).keys() - fields_of(section).keys():
                others.setdefault(name, []).append(value)
        key = fields_of(self.common)[self.key]
        flag = "" if key.metadata["positional"] else f"{flag_text(key)} "
        return resolve(
            section,
            config_file=config_file,
            assignments=assignments,
            flags=dict(flags),
            others={name: flag + " and ".join(values) for name, values in others.items()},
        )

    def _chosen(
        self, config_file: str | None, assignments: tuple[str, ...], flags: Mapping[str, Any]
    ) -> str | None:
        """Return the value of the key from its last source; None without one."""
        name = self.section_name
        field = fields_of(self.common)[self.key]
        is_positional = field.metadata["positional"]
        command = f"bert-pipeline {name.replace('_', '-')}"
        document = {} if config_file is None else read_yaml_sections(config_file)
        name_in_file, values = _values_in_file(self.common, document)
        given_values = {f"{config_file}: {name_in_file}.{self.key}": values.get(self.key)}
        variable = f"{_PREFIX}{name}_{self.key}".upper()
        given_values[variable] = os.environ.get(variable) or None
        for assignment in assignments:
            key, _, text = assignment.partition("=")
            if key == f"{name}.{self.key}":
                given_values[f"--set {key}"] = text
        flag = f"{command} {self.key.upper()}" if is_positional else flag_text(field)
        given_values[flag] = flags.get(self.key)
        # Later sources win: file, environment, `--set`, flag.
        set_values = [
            (source, value) for source, value in given_values.items() if value is not None
        ]
        source, value = set_values[-1] if set_values else ("", None)
        if not is_positional and value in (None, "null", "~"):
            return None
        if not set_values:
            raise ConfigError([f"name a {self.key}: {command} {'|'.join(self.sections)}"])
        if not isinstance(value, str) or value not in self.sections:
            raise ConfigError([f"{source}: {not_a_choice(value, self.sections)}"])
        return value


_PREFIX = "BERT_PIPELINE_"


def environment_values(
    section: type[Section], environment: Mapping[str, str], others: Container[str]
) -> tuple[dict[str, tuple[str, str]], list[str]]:
    """Read variables BERT_PIPELINE_SECTION_KEY; empty ones are ignored.

    Args:
        section: the section.
        environment: all variables.
        others: keys to skip.

    Returns:
        Variable and text by key, and a fault for each variable that names no key.
    """
    prefix = f"{_PREFIX}{section.section_name.upper()}_"
    keys = list(fields_of(section))
    values = {}
    faults = []
    for variable in sorted(name for name in environment if name.startswith(prefix)):
        key = variable.removeprefix(prefix).lower()
        if key in keys and environment[variable]:
            values[key] = (variable, environment[variable])
        elif key not in keys and key not in others:
            near = nearest(key, keys)
            hint = f"did you mean {prefix}{near.upper()}?" if near else "unset it"
            faults.append(f"{variable}: {section.section_name} has no key {key!r}; {hint}")
    return values, faults


def resolve(
    section: type[SectionType],
    *,
    config_file: str | None = None,
    assignments: tuple[str, ...] = (),
    flags: dict[str, Any] | None = None,
    others: Mapping[str, str] | None = None,
) -> SectionType:
    """Build one section from all its sources.

    Args:
        section: the section.
        config_file: YAML file with a mapping per section; sections of other commands are ignored.
        assignments: `section.key=value` texts; the type of the key decides how the value is read.
        flags: values by field name; None and () mean not given. A key that takes one value may have
            a tuple of one, if other sections of its name take several.
        others: keys that only other sections of this name have, with the option that selects
            those; see `Variants`.

    Raises:
        ConfigError: with all faults of all sources.
        UsageError: the file cannot be read.
    """
    others = others or {}
    fields = fields_of(section)
    document = {} if config_file is None else read_yaml_sections(config_file)
    # From here on each source replaces values of the ones before: file, environment, --set, flags.
    name_in_file, values = _values_in_file(section, document)
    sources = {name: f"{config_file}: {name_in_file}.{name}" for name in values}
    variables, faults = environment_values(section, os.environ, others)
    written = [
        _Assigned(name, text, source=variable, shown_as=variable)
        for name, (variable, text) in variables.items()
    ]
    written += _read_assignments(section, assignments, faults)
    for assigned in written:
        try:
            values[assigned.name] = _read_assigned(
                section, fields.get(assigned.name), assigned.text
            )
            sources[assigned.name] = assigned.source
        except yaml.YAMLError as error:
            faults.append(f"{assigned.shown_as}: not valid YAML: {explain_yaml(error)}")
    for name, (flag, value) in _values_of_flags(section, flags or {}, faults).items():
        values[name] = value
        sources[name] = flag
    # Of keys that exclude each other, one on the command line replaces those of weaker sources.
    on_command_line = [
        name
        for name in section.one_of
        if values.get(name) is not None and sources[name].startswith("--")
    ]
    if on_command_line:
        for name in set(section.one_of).difference(on_command_line):
            values.pop(name, None)
    # A key of another variant is no typing error: the message names its use.
    for name in values.keys() & others.keys():
        faults.append(f"{sources[name]}: is only for {others[name]}; leave it out")
        del values[name]
    try:
        built = build_section(section, values, sources)
    except ConfigError as error:
        # All faults at once, so that a config is corrected in one go.
        raise ConfigError(faults + error.faults) from None
    if faults:
        raise ConfigError(faults)
    return built


class _Assigned(NamedTuple):
    """A key that an environment variable or `--set` assigns."""

    name: str
    text: str
    source: str  # its origin in messages about the value
    shown_as: str  # its origin in messages about the text


def _read_assignments(
    section: type[Section], assignments: Iterable[str], faults: list[str]
) -> list[_Assigned]:
    """Return the assignments of `--set` to this section; faulty ones add to `faults`."""
    written = []
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        section_name, dot, name = key.partition(".")
        if not equals or not dot:
            faults.append(f"--set {assignment}: expected section.key=value, e.g. train.steps=1000")
        elif section_name not in SECTIONS:
            faults.append(f"--set {assignment}: {_unknown_section(section_name)}")
        elif section_name == section.section_name:
            written.append(_Assigned(name, text, f"--set {key}", f"--set {assignment}"))
    return written


def _values_of_flags(
    section: type[Section], flags: Mapping[str, Any], faults: list[str]
) -> dict[str, tuple[str, Any]]:
    """Return flag and value by field name, without flags not given; faulty ones add to `faults`."""
    fields = fields_of(section)
    values = {}
    for name, value in flags.items():
        if value is None or value == ():
            continue
        flag = _spelling(section, name, fields.get(name))
        # An unset variable of the shell. A key is unset by `--set section.key=null`.
        if value == "":
            faults.append(f"{flag}: expected a value, got an empty text; leave the flag out")
            continue
        if isinstance(value, tuple) and not (name in fields and field_type(section, name).many):
            if len(value) > 1:
                faults.append(field_given_again(flag, len(value)))
                continue
            value = value[0]
        values[name] = (flag, value)
    return values


def _values_in_file(
    section: type[Section], document: Mapping[str, dict[str, Any]]
) -> tuple[str, dict[str, Any]]:
    """Return the name of the section to read in a file, and its values.

    A file without the section may have another one to read instead, such as that of `finetune` for
    `label-errors`, of which the keys that do not apply are left out.
    """
    own = section.section_name
    if own in document or section.read_instead is None:
        return own, dict(document.get(own, {}))
    other, unused = section.read_instead
    values = document.get(other, {})
    return other, {name: value for name, value in values.items() if name not in unused}


def _spelling(section: type[Section], name: str, field: dataclasses.Field | None) -> str:
    """Return the flag or argument of a key, as a user types it."""
    if field is None:  # of another section of this name
        return "--" + name.replace("_", "-")
    if field.metadata["positional"]:
        return f"bert-pipeline {section.section_name.replace('_', '-')} {name.upper()}"
    return flag_text(field).partition("/")[0]


def _read_assigned(section: type[Section], field: dataclasses.Field | None, text: str) -> Any:
    """Read the value that `--set` gives a key.

    Text stays as written (`@id`, `a: b`, `*.txt`), except for quotes, lists, and `null` where that
    is allowed; other keys are read as YAML.
    """
    if field is None or not text:
        return text or None
    kind, many, optional, _bounds = field_type(section, field.name)
    try:
        value = read_yaml(text)
    except yaml.YAMLError:
        if kind is str:
            return text
        raise
    is_yaml = (
        kind is not str
        or (isinstance(value, str) and text[0] in "\"'")
        or (many and isinstance(value, list) and text[0] == "[")
        or (optional and text in ("null", "~"))
    )
    return value if is_yaml else text


def read_yaml_sections(path: str) -> dict[str, dict[str, Any]]:
    """Read a YAML file of sections.

    Raises:
        UsageError: the file cannot be read.
        ConfigError: it is not a mapping of known sections.
    """
    with naming_file(path, "--config"):
        document = read_yaml_file(path)
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigError([f"{path}: expected sections such as {', '.join(SECTIONS)} at the top"])
    faults = []
    for name, content in document.items():
        if name not in SECTIONS:
            faults.append(f"{path}: {_unknown_section(str(name))}")
        elif not isinstance(content, dict):
            faults.append(
                f"{path}: section {name!r} holds {shown(content)}; expected key: value lines"
            )
    if faults:
        raise ConfigError(faults)
    return document


def _unknown_section(name: str) -> str:
    cure = did_you_mean(name, SECTIONS, otherwise=f"known sections: {', '.join(SECTIONS)}")
    return f"unknown section {name!r}; {cure}"
