"""The JSON Schema of a config file, for editors and validators."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from bert_tf.config.section import Section, field_type

DIALECT = "https://json-schema.org/draft/2020-12/schema"
# Words that a config accepts for `true` and `false`, but that are text in YAML 1.2.
_SPELLED_BOOLEANS = ["yes", "no", "on", "off"]


def config_schema(
    sections: Mapping[str, type[Section]],
    variants: Mapping[str, tuple[str, Mapping[str, type[Section]]]],
) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a YAML file with a mapping per section.

    No key is required, since flags may provide it.

    Args:
        sections: sections by name.
        variants: for sections whose keys depend on the value of one of them: that key, and a
            section per value.
    """
    properties = {name: _section(section) for name, section in sections.items()}
    for name, (key, choices) in variants.items():
        alternatives = [_section(section, {key: value}) for value, section in choices.items()]
        properties[name]["properties"][key]["enum"] = list(choices)
        # Only the common keys are valid, too: the task may be given on the command line.
        properties[name] = {"anyOf": [properties[name], *alternatives]}
    return {
        "$schema": DIALECT,
        "title": "bert-pipeline config",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }


def _section(section: type[Section], constants: Mapping[str, str] | None = None) -> dict[str, Any]:
    fields = {field.name: _field(section, field) for field in dataclasses.fields(section)}
    for key, value in (constants or {}).items():
        fields[key] = {**fields[key], "const": value}
    schema: dict[str, Any] = {
        "type": "object",
        "properties": fields,
        "additionalProperties": False,
    }
    if constants:
        schema["required"] = list(constants)
    return schema


def _field(section: type[Section], field: dataclasses.Field) -> dict[str, Any]:
    kind, many, optional, _bounds = field_type(section, field.name)
    if many and issubclass(kind, Section):
        alternatives = [{"type": "array", "items": _section(kind)}]
    else:
        alternatives = _scalar(section, field)
        if many:
            item = alternatives[0] if len(alternatives) == 1 else {"anyOf": alternatives}
            alternatives = [*alternatives, {"type": "array", "items": item}]
    # A required key may be left empty in the file and given by a flag.
    if optional or field.metadata["required"]:
        alternatives.append({"type": "null"})
    schema = alternatives[0] if len(alternatives) == 1 else {"anyOf": alternatives}
    described = {**schema, "description": field.metadata["doc"]}
    if field.default not in (None, ()) and not field.metadata["required"]:
        default = field.default
        described["default"] = list(default) if isinstance(default, tuple) else default
    return described


def _scalar(section: type[Section], field: dataclasses.Field) -> list[dict[str, Any]]:
    declared = field_type(section, field.name)
    kind = declared.kind
    choices = field.metadata["choices"]
    if kind is bool:
        return [{"type": "boolean"}, {"enum": _SPELLED_BOOLEANS}]
    if kind in (int, float):
        names = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
        limits = zip(names, dataclasses.astuple(declared.bounds), strict=True)
        number = {"type": "integer" if kind is int else "number"}
        return [number | {name: limit for name, limit in limits if limit is not None}]
    if choices:
        also = [{"type": "boolean"}] if "on" in choices else []
        return [{"enum": list(choices)}, *also]
    # A column may be called 2024, or no, which is a truth value in YAML 1.1.
    return [{"type": ["string", "number", "boolean"]}]
