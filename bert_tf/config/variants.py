"""Sections that share a name, among which the value of one of their keys chooses."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from typing import Any, Generic

from bert_tf.base.errors import ConfigError
from bert_tf.config.resolve import read_yaml_sections, resolve
from bert_tf.config.section import Section, SectionType, flag_text


@dataclasses.dataclass(frozen=True, kw_only=True)
class Variants(Generic[SectionType]):
    """The sections of a command whose options depend on the value of one of its keys.

    `common` holds their common keys; it is also the section without a value of `key`, unless the
    key is positional. `sections` has a subclass of it per value.
    """

    common: type[SectionType]
    key: str
    sections: Mapping[str, type[SectionType]]

    @property
    def section_name(self) -> str:
        return self.common.section_name

    def resolve(
        self,
        *,
        config_file: str | None = None,
        assignments: tuple[str, ...] = (),
        flags: Mapping[str, Any],
    ) -> SectionType:
        """Builds the section that the key's value chooses, as `bert_tf.config.resolve.resolve`."""
        chosen = self._chosen(config_file, assignments, flags)
        section = self.common if chosen is None else self.sections[chosen]
        others: dict[str, list[str]] = {}
        for value, other in self.sections.items():
            for name in _fields(other).keys() - _fields(section).keys():
                others.setdefault(name, []).append(value)
        key = _fields(self.common)[self.key]
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
        name, field = self.section_name, _fields(self.common)[self.key]
        is_positional = field.metadata["positional"]
        command = f"bert-pipeline {name.replace('_', '-')}"
        document = {} if config_file is None else read_yaml_sections(config_file)
        found = {f"{config_file}: {name}.{self.key}": document.get(name, {}).get(self.key)}
        for assigned, _, text in (assignment.partition("=") for assignment in assignments):
            if assigned == f"{name}.{self.key}":
                found[f"--set {assigned}"] = text
        flag = f"{command} {self.key.upper()}" if is_positional else flag_text(field)
        found[flag] = flags.get(self.key)
        given = [(source, value) for source, value in found.items() if value is not None]
        source, value = given[-1] if given else ("", None)
        if not is_positional and value in (None, "null", "~"):
            return None
        if not given:
            raise ConfigError([f"name a {self.key}: {command} {'|'.join(self.sections)}"])
        if not isinstance(value, str) or value not in self.sections:
            near = difflib.get_close_matches(str(value), self.sections, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            known = ", ".join(self.sections)
            raise ConfigError([f"{source}: expected one of {known}, got {value!r}{hint}"])
        return value


def _fields(section: type[Section]) -> dict[str, dataclasses.Field]:
    return {field.name: field for field in dataclasses.fields(section)}
