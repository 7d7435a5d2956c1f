"""YAML whose plain scalars are text as written, except `null`, `~` and the merge key `<<`.

YAML 1.1 would read `no` as false, `010` as 8 and `12:30` as 750. Here the key of the config decides
the type. Size, depth and aliases are limited before anything is constructed, so that a small file
cannot take much memory or time.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from bert_tf.base.errors import UsageError
from bert_tf.base.files import as_path

LARGEST_YAML_BYTES = 1 << 20  # a config of every key takes 6 kB
_DEEPEST = 100  # lists and mappings in brackets inside each other
_TOO_DEEP = "it is nested too deeply"
_TEXT_TAG = "tag:yaml.org,2002:str"
_RESOLVED_TAGS = ("tag:yaml.org,2002:null", "tag:yaml.org,2002:merge")
_PLAIN_TAGS = (None, "!", _TEXT_TAG)
_UNICODE_LINE_BREAKS = frozenset("\x85\u2028\u2029")


class _Correction(NamedTuple):
    """Remedy for one kind of fault that PyYAML reports."""

    problem: str  # pattern of PyYAML's message; its first group is {0} in `words`
    words: str  # {line} is where the construct with the fault begins, which only some faults name


# The first correction whose pattern matches the message is taken.
_CORRECTIONS = (
    _Correction(
        r"^found character '\\t'",
        "a tab in the indentation; indent with spaces",
    ),
    _Correction(
        r"^found character '(.)' that cannot start",
        "a value cannot begin with {0}; put it in quotes",
    ),
    _Correction(
        r"^mapping values are not allowed",
        "a second colon in a line, or a line that is indented deeper than the one above or follows "
        "one without a colon; put text with ': ' in quotes",
    ),
    _Correction(
        r"^expected <block end>, but found '<block mapping start>'",
        "this line is indented differently from the lines above it in its section",
    ),
    _Correction(
        r"^expected <block end>",
        "unexpected text after the end of a value",
    ),
    _Correction(
        r"^could not find expected ':'",
        "a key without a colon and a blank after it (key: value), in the line above",
    ),
    _Correction(
        r"^found unexpected end of stream",
        "the quote in line {line} is never closed",
    ),
    _Correction(
        r"^expected ',' or '(.)'",
        "the list or mapping that begins in line {line} is missing a comma or its closing {0}",
    ),
    _Correction(
        r"^found unknown escape character",
        "a backslash in double quotes; use single quotes",
    ),
    _Correction(
        r"^found undefined alias|^expected alphabetic or numeric character",
        "a value that begins with * or & is an alias; put it in quotes",
    ),
)


class _PlainLoader(yaml.SafeLoader):
    """Loads plain scalars other than null as text, and rejects tags."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = self.peek_event()
        tag = getattr(event, "tag", None)
        if tag not in _PLAIN_TAGS:
            shown = tag.replace("tag:yaml.org,2002:", "!!", 1)
            raise _problem(
                f"tag {shown} is not supported; write only the value; its key decides the type",
                event.start_mark,
            )
        return super().compose_node(parent, index)

    def fetch_flow_collection_start(self, token: type[yaml.Token]) -> None:
        """Reject deep nesting at once, for which PyYAML takes time quadratic in the depth."""
        if self.flow_level == _DEEPEST:
            raise _problem(_TOO_DEEP, self.get_mark())
        super().fetch_flow_collection_start(token)

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Reject repeated keys, of which PyYAML takes the last."""
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag not in _RESOLVED_TAGS:
                if key.value in seen:
                    raise _problem(f"{key.value} is given twice; keep one", key.start_mark)
                seen.add(key.value)
        return node


_PlainLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag in _RESOLVED_TAGS]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


class _PlainDumper(yaml.SafeDumper):
    """Escapes Unicode's line breaks, which `yaml.SafeDumper` would fold to spaces."""


def _represent_text(dumper: _PlainDumper, text: str) -> yaml.ScalarNode:
    style = None if _UNICODE_LINE_BREAKS.isdisjoint(text) else '"'
    return dumper.represent_scalar(_TEXT_TAG, text, style=style)


_PlainDumper.add_representer(str, _represent_text)


def read_yaml(text: str, largest_bytes: int = LARGEST_YAML_BYTES) -> Any:
    """Read a YAML document: mappings, lists, texts and None.

    Args:
        text: the document.
        largest_bytes: most characters; also limits the size with all aliases expanded.

    Raises:
        yaml.YAMLError: the text is not YAML, too large, nested too deeply, or has a tag other than
            `!!str`.
    """
    with _explaining_faults():
        node = _root(text, largest_bytes)
        return None if node is None else _PlainLoader("").construct_document(node)


def _root(text: str, largest_bytes: int) -> yaml.Node | None:
    if len(text) > largest_bytes:
        raise _problem(f"it is larger than {largest_bytes >> 20} MiB")
    node = _PlainLoader(text).get_single_node()
    # Without aliases, nodes and their characters are fewer than twice the characters of a text,
    # unless it has only one or two (`a:` is a mapping, a key and an empty value).
    most = 2 * largest_bytes
    endless = 2 * most
    if node is not None and _expanded_size(node, {}, endless) > most:
        raise _problem("its aliases expand to more than a config may contain", node.start_mark)
    return node


@contextlib.contextmanager
def _explaining_faults() -> Iterator[None]:
    """Raise PyYAML's other errors about a text as yaml.YAMLError."""
    try:
        yield
    except ValueError:  # "\UFFFFFFFF"
        raise _problem("an escape in it is not a valid character") from None
    except RecursionError:
        raise _problem(_TOO_DEEP) from None


def read_yaml_file(path: str | Path, largest_bytes: int = LARGEST_YAML_BYTES) -> Any:
    """Read a YAML file, see `read_yaml`.

    Raises:
        yaml.YAMLError: see `read_yaml`.
        OSError, UnicodeDecodeError: the file cannot be read.
    """
    with as_path(path).open(encoding="utf-8") as stream:
        return read_yaml(stream.read(largest_bytes + 1), largest_bytes)


def read_yaml_lines(path: str) -> Iterator[tuple[int, str, str]]:
    """Read a file of `key: value` lines; yield the number, key and value of each.

    Raises:
        UsageError: with the line of the first fault.
    """
    with naming_file(path, "--curation"):
        with as_path(path).open(encoding="utf-8") as stream:
            text = stream.read(LARGEST_YAML_BYTES + 1)
        with _explaining_faults():
            node = _root(text, LARGEST_YAML_BYTES)
    if node is None:
        return
    pairs = node.value if isinstance(node, yaml.MappingNode) else [(node, None)]
    for key, value in pairs:
        line = key.start_mark.line + 1
        if not (isinstance(key, yaml.ScalarNode) and isinstance(value, yaml.ScalarNode)):
            raise UsageError(f"{path}:{line}: expected a line such as gopher_min_words: 30")
        yield line, key.value, value.value


@contextlib.contextmanager
def naming_file(path: str, flag: str) -> Iterator[None]:
    """Raise faults of reading a YAML file as UsageError.

    Args:
        path: the file.
        flag: flag that names it, for messages.
    """
    try:
        yield
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror}); check {flag}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        place = getattr(error, "problem_mark", None)
        line = f":{place.line + 1}" if place else ""
        raise UsageError(f"{path}{line}: not valid YAML: {explain_yaml(error)}") from None


def yaml_text(document: Any) -> str:
    """Format plain values, so that `read_yaml` and any YAML 1.1 reader read the same values."""
    return yaml.dump(document, Dumper=_PlainDumper, sort_keys=False, allow_unicode=True)


def explain_yaml(error: yaml.YAMLError | UnicodeDecodeError) -> str:
    """Explain a YAML error in words for the author of a file instead of a parser."""
    problem = getattr(error, "problem", None)
    if problem is None:
        return "characters that YAML does not allow, or bytes that are not UTF-8"
    begun = getattr(error, "context_mark", None)
    line = begun.line + 1 if begun else 1
    for correction in _CORRECTIONS:
        match = re.search(correction.problem, problem)
        if match:
            return correction.words.format(*match.groups(), line=line)
    return str(problem)


def _expanded_size(node: yaml.Node, known: dict[yaml.Node, int], endless: int) -> int:
    """Count the nodes and the characters of scalars, with every alias expanded.

    Args:
        node: the node to measure.
        known: sizes of nodes that were counted before; changed in place.
        endless: size of a node that contains itself.
    """
    if node not in known:
        known[node] = endless  # while it is being measured, since it may contain itself
        children = node.value if isinstance(node, yaml.CollectionNode) else []
        if isinstance(node, yaml.MappingNode):
            children = [part for pair in children for part in pair]
        size = sum(_expanded_size(child, known, endless) for child in children)
        known[node] = 1 + size + (len(node.value) if isinstance(node, yaml.ScalarNode) else 0)
    return known[node]


def _problem(problem: str, mark: yaml.Mark | None = None) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=mark)
