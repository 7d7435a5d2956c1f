"""Cells as text, lists and values, and checks that a table has the columns needed."""

from __future__ import annotations

import ast
import json
import math
import re
import warnings
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bert_tf.base.errors import Fault, InputError, UsageError
from bert_tf.base.wording import listed, nearest, shortened
from bert_tf.data.tables.header_hints import (
    check_is_no_other,
    export_hint,
    header_below,
    other_separator,
)
from bert_tf.data.tables.rejects import (
    column_is_empty,
    column_is_missing,
    column_is_not_a_value,
    column_is_not_text,
)
from bert_tf.data.tables.text_files import escapes_surrogates

if TYPE_CHECKING:
    from bert_tf.data.tables.formats.delimited_header import TableHeader

# Texts that pandas writes for missing cells, in lower case
GAPS = frozenset(("nan", "none", "null", "<na>"))
# Keys that tell the rows of Prodigy from others. All keys of a set of `_BESIDE_ANSWERS` do so
# together, beside `answer`.
PRODIGY = frozenset(("_input_hash", "_task_hash", "_view_id", "spans"))
_BESIDE_ANSWERS = (frozenset(("accept",)), frozenset(("text", "label")))
# Content that a needed column must have: a text; a text, a number or a truth value; or any value,
# which the reader of the list checks itself
CellKind = Literal["text", "value", "list"]


def cell_text(value: Any) -> str:
    """Write a cell as text: values as JSON writes them, but texts bare and nothing for null."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool | list | dict):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def texts_of(row: dict[str, Any], columns: Sequence[str]) -> list[str] | None:
    """Read the texts of a row from several columns, or from a single column with a list.

    Args:
        row: values by column.
        columns: columns with a text each; or a single column with a list of texts and numbers, the
            JSON text of such a list, or texts with names (`named_texts`).

    Returns:
        The texts; empty ones at the end are dropped as long as two are left. None if a single
        column has other content.
    """
    if len(columns) > 1:
        return _without_empty_end([cell_text(row.get(name)) for name in columns])
    value = row.get(columns[0])
    if (named := named_texts(value)) is not None:
        return [text for _, text in named]
    if isinstance(value, str):
        value = list_in_text(value)
    if not isinstance(value, list) or any(isinstance(item, list | dict) for item in value):
        return None
    return _without_empty_end([cell_text(item) for item in value])


_LEAST_TEXTS = 2  # of a row; one text leaves nothing to choose from


def columns_of_texts(columns: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Split columns with a text each into those that every row must fill, and the others."""
    return columns[:_LEAST_TEXTS], columns[_LEAST_TEXTS:]


def _without_empty_end(texts: list[str]) -> list[str]:
    """Drop empty texts at the end, which rows with fewer choices than columns have."""
    while len(texts) > _LEAST_TEXTS and not texts[-1].strip():
        texts.pop()
    return texts


# Keys of an object with a named text, the usual ones first: keys of its name, and of the text
_NAMES_OF_TEXTS = ("label", "key", "id", "name", "letter")
_TEXTS = ("text", "value", "content", "choice", "option", "answer")
_NAME = re.compile(r"\(?(?:[A-Za-z]|\d{1,3})[).]?")  # of a choice: A, (b), 3.


def named_texts(value: Any) -> list[tuple[str, str]] | None:
    """Read texts with a short name each, as the choices of exams have them; else return None.

    `{"text": ["a lamp"], "label": ["A"]}` of `datasets` (ARC, CommonsenseQA), the list of such
    objects `[{"label": "A", "text": "a lamp"}]`, `{"A": "a lamp"}` (MedQA), and their JSON text.
    """
    if isinstance(value, str) and value.lstrip().startswith(("{", "[{")):
        value = value_in_text(value)
    pairs: list[tuple[Any, Any]]
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        name_key = next((key for key in _NAMES_OF_TEXTS if key in value[0]), "")
        text_key = next((key for key in _TEXTS if key in value[0]), "")
        pairs = [(item.get(name_key), item.get(text_key)) for item in value]
    elif isinstance(value, dict) and {"text", "label"}.issubset(value):
        names = value["label"]
        texts = value["text"]
        if not isinstance(names, list) or not isinstance(texts, list) or len(names) != len(texts):
            return None
        pairs = list(zip(names, texts, strict=True))
    elif isinstance(value, dict) and all(_NAME.fullmatch(cell_text(name)) for name in value):
        # Python writes keys that are numbers without quotes: {1: 'a lamp', 2: 'a book'}
        pairs = [(name, text) for name, text in value.items() if isinstance(text, str)]
    else:
        return None
    are_cells = all(isinstance(item, str | int | float) for pair in pairs for item in pair)
    if len(pairs) < _LEAST_TEXTS or not are_cells:
        return None
    return [(cell_text(name), cell_text(text)) for name, text in pairs]


def words_of(value: Any) -> list[str] | None:
    """Read words of a list or tuple, of its text, or of a text with blanks between them; else None.

    White space of other scripts, such as no-break blanks, is part of words.
    """
    if isinstance(value, str):
        listed = list_in_text(value) if _LIST_OF_WORDS.match(value) else None
        if listed is None and not value.lstrip().startswith("["):
            return blank_separated(value)
        value = listed
    if not isinstance(value, list):
        return None
    if any(isinstance(item, list | dict | bool | float) or item is None for item in value):
        return None
    return [cell_text(item) for item in value]


# The beginning of a list of Python or NumPy. Parentheses without quotes are words: "(1997, 1998)"
_LIST_OF_WORDS = re.compile(
    r"""\s*(?:\[|\(\s*['"]|(?:\w+\.)*(?:array|list|tuple|tensor|Index)\()"""
)
_BLANKS = re.compile(r"[ \t\r\n\f\v]+")


def blank_separated(text: str) -> list[str]:
    """Split only at blanks, tabs and line ends: a no-break blank is part of a word."""
    return text.split() if text.isascii() else list(filter(None, _BLANKS.split(text)))


def text_fault_of_words(text: str) -> Fault | None:
    """Return reason and detail if words, joined by blanks, cannot be used; None if they can."""
    return None if text.strip() else ("has no words", "")


def cell_fault(
    row: dict[str, Any], name: str, *, kind: CellKind, allow_empty: bool
) -> Fault | None:
    """Return reason and detail if a row cannot be used for a needed column; None if it can.

    Args:
        row: values by column.
        name: the needed column.
        kind: content that it must have.
        allow_empty: whether empty cells and null can be used; in list columns they always can.
    """
    value = row.get(name)
    if value is None and name not in row:
        return column_is_missing(name), ""
    if value is None or (isinstance(value, str) and not value.strip()):
        return None if allow_empty or kind == "list" else (column_is_empty(name), "")
    if isinstance(value, str) or kind == "list":
        return None
    if kind == "text":
        return column_is_not_text(name), shortened(value)
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
        return None  # a label in a list of one, see `single_labels`
    if isinstance(value, list | dict) or (isinstance(value, float) and not math.isfinite(value)):
        return column_is_not_a_value(name), shortened(value)
    return None


def annotation_fault(row: dict[str, Any], used: Collection[str]) -> Fault | None:
    """Return reason and detail if an annotator of Prodigy did not accept a row; None if it is used.

    Args:
        row: values by column.
        used: needed columns. If the answer itself is one of them, all answers are used.
    """
    answer = row.get("answer")
    if answer not in ("reject", "ignore") or "answer" in used:
        return None
    if PRODIGY.isdisjoint(row) and not any(row.keys() >= keys for keys in _BESIDE_ANSWERS):
        return None
    return "annotation is not accepted", shortened(answer)


_BRACKETS = {"[": "]", "(": ")", "{": "}"}
# array(['a', 'b'], dtype=object), set(), frozenset({'a'}), tensor([0, 1], device='cuda:0')
_CALL = re.compile(r"(?:\w+\.)*(?:array|set|frozenset|list|tuple|tensor|Index)\(")
_KEYWORD = re.compile(r"\s*\w+=[^()]*")
_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
# An item, and the separator before the next one
_ITEM = re.compile(
    rf"""(?:(?:np|numpy)\.\w+\()?({_QUOTED}|[^\s,'"()\[\]{{}}]+)\)?(\s*,\s*|\s+|\Z)""", re.DOTALL
)
_WORDS = {"True": True, "False": False, "None": None, "nan": None}


def list_in_text(text: str) -> list[Any] | None:
    """Parse the items of a list, tuple, set or array of Python, NumPy or JSON; else None.

    `["a", 1]`, `('a',)`, `{'a'}` and `array(['a'], dtype=object)` are lists; `[a, b]` is not.
    """
    body = text.strip()
    if not body or body[-1] not in ")]}":
        return None
    if body[0] == "[":
        try:
            value = json.loads(body, parse_constant=str)
            if isinstance(value, list):
                return None if escapes_surrogates(body, value) else value
        except (ValueError, RecursionError):
            pass
    call = _CALL.match(body) if body[-1] == ")" else None
    if call is not None:
        arguments = body[call.end() : -1].split(",")
        while len(arguments) > 1 and _KEYWORD.fullmatch(arguments[-1]):
            arguments.pop()
        body = ",".join(arguments).strip() or "[]"
    if _BRACKETS.get(body[0]) != body[-1]:
        return None
    return _items(body[1:-1].strip(), needs_commas=body[0] != "[", may_be_single=body[0] != "(")


def value_in_text(text: str) -> Any:
    """Parse a value that JSON or Python wrote, arrays as lists; else return the text itself."""
    try:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SyntaxWarning)  # of escapes that are none
                tree = ast.parse(text.strip(), mode="eval")
                value = ast.literal_eval(_WithoutArrays().visit(tree))
        return text if escapes_surrogates(text, value) else value
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return text


class _WithoutArrays(ast.NodeTransformer):
    """Replaces `array([…])` by the list in it, which `ast.literal_eval` reads."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Return the first argument of a call of `array`, other calls as they are."""
        is_array = isinstance(node.func, ast.Name) and node.func.id == "array" and node.args
        return self.visit(node.args[0]) if is_array else node


def _items(inner: str, *, needs_commas: bool, may_be_single: bool) -> list[Any] | None:
    """Parse the items between the brackets of a list.

    Args:
        inner: the text between the brackets, without blanks around it.
        needs_commas: whether commas must separate the items; in NumPy's arrays blanks do.
        may_be_single: whether one item without a comma is a list; `('a')` is a text.

    Returns:
        The items; None if one is not a literal, if commas and blanks both separate them, or if
        blanks stand where commas must.
    """
    items: list[Any] = []
    separators = set()
    place = 0
    while place < len(inner):
        item = _ITEM.match(inner, place)
        value = _NO_VALUE if item is None else _value(item[1])
        if item is None or value is _NO_VALUE:
            return None
        items.append(value)
        if item[2]:
            separators.add("," in item[2])
        place = item.end()
    if len(separators) > 1 or (needs_commas and False in separators):
        return None
    return items if separators or may_be_single or not items else None


_NO_VALUE = object()


def _value(written: str) -> Any:
    """Parse a literal: a quoted text, a number, a truth value, null; else return _NO_VALUE."""
    if written[0] in "'\"":
        value = value_in_text(written) if "\\" in written else written[1:-1]
        return _NO_VALUE if value is written else value
    word = written.removeprefix("np.").removesuffix("_")  # np.True_
    if word in _WORDS:
        return _WORDS[word]
    for kind in (int, float):
        try:
            return kind(written)
        except ValueError:
            pass
    return _NO_VALUE


_MOST_WORDS = 2  # of a column's name
# Queries of jq that make SQuAD JSON of a line, by the key that such lines have
_NESTED = {"qas": ".", "paragraphs": "{data: .}"}


def check_columns(
    path: str | Path, header: TableHeader | None, columns: Sequence[str], needed: Iterable[str]
) -> None:
    """Check that a table has columns.

    Args:
        path: the table.
        header: its header; None for JSON lines and Parquet.
        columns: names that it has.
        needed: names that it must have.

    Raises:
        UsageError: a column is missing; the message lists the columns and advises.
        InputError: two columns have a needed name.
    """
    for name in needed:
        if header is not None and name in header.repeated:
            raise InputError(
                f"{path}:{header.line}: column {name!r} appears twice; rename or remove one of the "
                "two, or give --no-header if this line is a row"
            )
        if name not in columns:
            check_is_no_other(path)
            raise UsageError(
                f"{path}: no column {name!r}; {_likely_columns(path, name, columns, header)}"
            )


def _likely_columns(
    path: str | Path, wanted: str, columns: Sequence[str], header: TableHeader | None
) -> str:
    """List the columns of a table, and advise with the first hint that applies."""
    if header is not None and header.raw is None:
        return f"columns of a table without a header are numbers, here 1 to {len(columns)}"
    available = listed(columns) or "none"
    if header is not None and len(columns) == 1:
        advice = other_separator(path, wanted, columns[0])
        if advice:
            return f"its only column is {available}; {advice}"
    for nested, query in _NESTED.items():
        if nested in columns:
            return f"it has {available}; jq -s '{query}' makes SQuAD JSON of it, to be named .json"
    hint = export_hint(columns)
    if hint:
        return f"it has {available}; {hint}name its columns"
    folded = {name.lower(): name for name in columns}
    likely = nearest(wanted.lower(), folded)
    if likely:
        return f"it has {available}; did you mean {folded[likely]!r}?"
    below = None if header is None else header_below(path, header.line, [wanted])
    if below is not None:
        return f"it has {available}; {below}"
    if header is None or all(map(is_name, columns)):
        return f"it has {available}; specify the column"
    return (
        f"it has {available}; if that is the first row, give --no-header and the columns by number"
    )


def is_name(text: str) -> bool:
    """Whether a text in the header may be the name of a column, not a cell."""
    return len(text.split()) <= _MOST_WORDS and any(map(str.isalpha, text))
