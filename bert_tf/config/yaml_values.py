"""YAML values that still tell how they were written, where YAML takes text for something else."""

from __future__ import annotations

from typing import Any

import yaml

LARGEST_YAML_BYTES = 1 << 20  # a config of every key takes 6 kB
_LONGEST_NUMBER = 100  # characters; in base 60, `1:00:00:…`, each pair multiplies the number


class WrittenInt(int):
    """A whole number and the text that YAML read it from: `010` is 8."""

    written: str


class WrittenFloat(float):
    """A number and the text that YAML read it from: `1.10` is 1.1."""

    written: str


class _Loader(yaml.SafeLoader):
    """As `yaml.SafeLoader`, but numbers are `WrittenInt` and `WrittenFloat`, and dates are text."""


def _construct_int(loader: _Loader, node: yaml.ScalarNode) -> WrittenInt | str:
    if len(node.value) > _LONGEST_NUMBER:
        return node.value
    try:
        number = WrittenInt(loader.construct_yaml_int(node))
    except ValueError:  # `0x_` looks like a number to YAML
        return node.value
    number.written = node.value
    return number


def _construct_float(loader: _Loader, node: yaml.ScalarNode) -> WrittenFloat | str:
    if len(node.value) > _LONGEST_NUMBER:
        return node.value
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

    Anchors and aliases may stand in it, unless they stand for more than a document of
    LARGEST_YAML_BYTES could hold: a few lines of aliases of aliases mean gigabytes.

    Raises:
        yaml.YAMLError: it is none, too large, or nested too deeply.
    """
    if len(text) > LARGEST_YAML_BYTES:
        raise _problem(f"it is larger than {LARGEST_YAML_BYTES >> 20} MiB", None)
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        if _expanded_size(node, {}) > 2 * LARGEST_YAML_BYTES:
            raise _problem("its aliases stand for more than a config can hold", node)
        return loader.construct_document(node)
    except (KeyError, IndexError, ValueError) as error:
        raise yaml.YAMLError(f"a tag does not fit its value: {error}") from None
    except RecursionError:
        raise _problem("it is nested too deeply", None) from None
    finally:
        loader.dispose()


def _expanded_size(node: yaml.Node, known: dict[yaml.Node, int]) -> int:
    """Characters and nodes of a node once every alias is written out.

    Args:
        node: of a graph: an alias is the node it stands for.
        known: sizes found so far; of a node that holds itself there is none yet.
    """
    if node not in known:
        known[node] = 4 * LARGEST_YAML_BYTES  # while it is being measured: it may hold itself
        children = node.value if isinstance(node, yaml.CollectionNode) else []
        if isinstance(node, yaml.MappingNode):
            children = [part for pair in children for part in pair]
        size = sum(_expanded_size(child, known) for child in children)
        known[node] = 1 + size + (len(node.value) if isinstance(node, yaml.ScalarNode) else 0)
    return known[node]


def _problem(problem: str, node: yaml.Node | None) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark if node else None)


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
