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
        known = _keys(section)
        others: dict[str, list[str]] = {}
        for value, other in self.sections.items():
            for name in _keys(other) - known:
                others.setdefault(name, []).append(value)
        flag = "" if self._key_field.metadata["positional"] else f"{flag_text(self._key_field)} "
        return resolve(
            section,
            config_file=config_file,
            assignments=assignments,
            flags=dict(flags),
            others={name: flag + " and ".join(values) for name, values in others.items()},
        )

    @property
    def _key_field(self) -> dataclasses.Field:
        fields = dataclasses.fields(self.common)
        return next(field for field in fields if field.name == self.key)

    def _chosen(
        self, config_file: str | None, assignments: tuple[str, ...], flags: Mapping[str, Any]
    ) -> str | None:
        name = self.common.section_name
        is_positional = self._key_field.metadata["positional"]
        command = f"bert-pipeline {name.replace('_', '-')}"
        found: list[tuple[Any, str]] = []
        if config_file is not None:
            document = read_yaml_sections(config_file)
            if (value := document.get(name, {}).get(self.key)) is not None:
                found.append((value, f"{config_file}: {name}.{self.key}"))
        for assignment in assignments:
            assigned, _, text = assignment.partition("=")
            if assigned == f"{name}.{self.key}":
                found.append((text, f"--set {assigned}"))
        if (value := flags.get(self.key)) is not None:
            flag = f"{command} {self.key.upper()}" if is_positional else flag_text(self._key_field)
            found.append((value, flag))
        value, source = found[-1] if found else (None, "")
        if not is_positional and value in (None, "null", "~"):
            return None
        if not found:
            raise ConfigError([f"name a {self.key}: {command} {'|'.join(self.sections)}"])
        if not isinstance(value, str) or value not in self.sections:
            near = difflib.get_close_matches(str(value), self.sections, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            known = ", ".join(self.sections)
            raise ConfigError([f"{source}: expected one of {known}, got {value!r}{hint}"])
        return value


def _keys(section: type[Section]) -> set[str]:
    return {field.name for field in dataclasses.fields(section)}
