"""Why a row is rejected, in the words of every reader: the same fault has the same reason."""

from __future__ import annotations

LONE_SURROGATE = "lone surrogate"
TOO_LONG = "row is too long"
TOO_FEW_CELLS = "too few cells"
TOO_MANY_CELLS = "too many cells"
HEADER_REPEATED = "repeats the header"
QUOTE_NOT_CLOSED = "quote is not closed"
TEXT_AFTER_QUOTE = "text after a closing quote"
NOT_JSON = "not JSON"
NOT_AN_OBJECT = "not a JSON object"
DUPLICATE_KEY = "duplicate key"

REMEDIES = {
    HEADER_REPEATED: "remove such lines, which joining files leaves",
    TOO_LONG: "correct the line ends of the file, or raise max_row_characters",
}


def wrong_cells(count: int, columns: int, *, has_header: bool = True) -> tuple[str, str]:
    """The reason and the detail for a row of `count` cells in a table of so many columns."""
    reason = TOO_FEW_CELLS if count < columns else TOO_MANY_CELLS
    return reason, f"{count} where the {'header' if has_header else 'first row'} has {columns}"


def column_is_empty(name: str) -> str:
    """The reason for a needed cell that is blank, or null."""
    return f"column {name!r} is empty"


def column_is_missing(name: str) -> str:
    """The reason for an object without a needed key."""
    return f"column {name!r} is missing"


def column_is_not_text(name: str) -> str:
    """The reason for a number, list or the like where text is needed."""
    return f"column {name!r} is not text"


def column_is_not_a_value(name: str) -> str:
    """The reason for a list or the like where a text, number or truth value is needed."""
    return f"column {name!r} is neither text nor number"


def column_is_not_words(name: str) -> str:
    """The reason for anything but a list of texts where words are needed."""
    return f"column {name!r} is no list of texts"
