"""Defaults of config keys from the environment: `BERT_PIPELINE_SCORE_ENGINE=onnxruntime`."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Container, Mapping

from bert_tf.config.section import Section

_PREFIX = "BERT_PIPELINE_"


def environment_values(
    section: type[Section], environment: Mapping[str, str], others: Container[str]
) -> tuple[dict[str, tuple[str, str]], list[str]]:
    """What the environment says of a section.

    Args:
        section: the section's class.
        environment: variables by name; those of a section are
            `BERT_PIPELINE_SECTION_KEY`, in capitals.
        others: keys that only other sections of this name have; variables of theirs are left alone.

    Returns:
        The variable and its text by key, and a fault for each variable of the section that names
        no key. Empty variables mean nothing.
    """
    prefix = f"{_PREFIX}{section.section_name.upper()}_"
    keys = [field.name for field in dataclasses.fields(section)]
    values, faults = {}, []
    for variable in sorted(name for name in environment if name.startswith(prefix)):
        key = variable.removeprefix(prefix).lower()
        if key in keys and environment[variable]:
            values[key] = (variable, environment[variable])
        elif key not in keys and key not in others:
            near = difflib.get_close_matches(key, keys, n=1, cutoff=0.5)
            hint = f"did you mean {prefix}{near[0].upper()}?" if near else "unset it"
            faults.append(f"{variable}: {section.section_name} has no key {key!r}; {hint}")
    return values, faults
