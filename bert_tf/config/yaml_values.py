"""YAML values that still tell how they were written, where YAML takes text for something else."""

from __future__ import annotations

from typing import Any

import yaml


class WrittenInt(int):
    """A whole number and the text that YAML read it from: `010` is 8."""

    written: str


class WrittenFloat(float):
    """A number and the text that YAML read it from: `1.10` is 1.1."""

    written: str


class _Loader(yaml.SafeLoader):
    """As `yaml.SafeLoader`, but numbers are `WrittenInt` and `WrittenFloat`, and dates are text."""


def _construct_int(loader: _Loader, node: yaml.ScalarNode) -> WrittenInt | str:
    try:
        number = WrittenInt(loader.construct_yaml_int(node))
    except ValueError:  # `0x_` looks like a number to YAML
        return node.value
    number.written = node.value
    return number


def _construct_float(loader: _Loader, node: yaml.ScalarNode) -> WrittenFloat | str:
    try:
        number = WrittenFloat(loader.construct_yaml_float(node))
    except ValueError:  # `!!float x`
        return node.value
    number.written = node.value
    return number


def _construct_text(loader: _Loader, node: yaml.ScalarNode) -> str:
    return node.value


_Loader.add_constructor("tag:yaml.org,2002:int", _construct_int)
_Loader.add_constructor("tag:yaml.org,2002:float", _construct_float)
_Loader.add_constructor("tag:yaml.org,2002:timestamp", _construct_text)


def read_yaml(text: str) -> Any:
    """The value of a YAML document.

    Raises:
        yaml.YAMLError: it is none.
    """
    try:
        return yaml.load(text, Loader=_Loader)
    except (KeyError, IndexError, ValueError) as error:
        raise yaml.YAMLError(f"a tag does not fit its value: {error}") from None


def as_text(value: str | bool | int | float) -> str:
    """The text that a scalar was written as.

    Raises:
        ValueError: that is not known any more; the message says what to do.
    """
    if isinstance(value, bool):
        raise ValueError(
            f"expected text, got {value}, as YAML reads {'yes, on' if value else 'no, off'} and "
            f"{str(value).lower()}; put the word in quotes"
        )
    written = getattr(value, "written", str(value))
    if written != str(value):
        raise ValueError(
            f"expected text, got {written}, which YAML reads as the number {value}; "
            "put it in quotes"
        )
    return written
