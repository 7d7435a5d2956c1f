"""Detectors for texts that people did not write, or that were changed afterwards.

They find missing values, base64 between texts, characters of a wrong encoding, escapes and markup.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from bert_tf.base.wording import shortened
from bert_tf.data.tables.cells import value_in_text
from bert_tf.data.tables.judged import Details, Detector, ReadValues, Severity, counted, spread
from bert_tf.data.tables.value_forms import is_blob

# Number and share of the texts that are base64
_FEWEST_BLOBS = 2
_SHARE_BLOBS = 0.005
# In lower case, as pandas, databases and Excel write them. `#name?` is the value of a text that
# begins with a dash, which Excel takes for a formula.
_MISSING_TEXTS = frozenset(
    (
        *("nan", "none", "null", "<na>", "n/a", "#n/a", r"\n"),
        *("#name?", "#value!", "#ref!", "#null!", "#div/0!", "#num!"),
    )
)
# Signs of UTF-8 that was read as Latin-1 or cp1252 and written again: `Ã¤`, `â€™`, `Ð»`. Marks
# that end words in capitals, as in `É…` and `À”`, are left out.
_GARBLED = re.compile(
    r"[ÂÃÐÑÎÏØÙ][\x80-\xbf‘“€ŠšŒœŽžŸƒ‚„†‡ˆ‰‹›•˜™]|â(?:€[\x80-\xbf™œ“”˜\x9d¦]|\x80)"
    r"|ð(?:Ÿ|\x9f)|[ä-ï][\x80-\xbf][\x80-\xbf]|\ufffd"
)
# Number and share of the texts with such signs
_FEWEST_GARBLED = 2
_SHARE_GARBLED = 0.01
# Line ends, letters and marks as JSON, Python, HTML or a URL write them.
_ESCAPED = re.compile(
    r"(?<![\\\w:])\\[nrt](?=[A-Z\s\\]|$)|[.!?,;]\\n|\\u[0-9a-f]{4}|\\x[89a-f][0-9a-f]"
    r"|&(?:amp|lt|gt|quot|nbsp|#39|#x27);|</(?:p|div|span|a|b|i|li|td)>|<br ?/?>"
    r"|^b(?:'.*'|\".*\")$",
    re.DOTALL,
)
_NO_WORDS = re.compile(
    r"[+-]?\d+([.,]\d+)*|https?://\S+|(?:[\w.-]*/)*[\w-]+\.(?:txt|json|html?|pdf|xml|wav|mp3|jpe?g|png)"
)
_LONGEST_LIST = 10_000  # characters; longer texts are not parsed
# Number and share of the texts
_FEWEST_NO_WORDS = 5
_SHARE_NO_WORDS = 0.5
# Number and share of the texts
_FEWEST_ESCAPED = 2
_SHARE_ESCAPED = 0.05
_SHOWN_CHARACTERS = 40  # of an example


def _in_texts(
    find: Callable[[str], str | None], *, fewest: int, share: float
) -> Callable[[ReadValues], Details | None]:
    """Make a detector of columns with many texts that have a fault.

    Args:
        find: returns the faulty part of a text, to be shown; None for a sound text.
        fewest: least number of faulty texts.
        share: least fraction of faulty texts.
    """

    def find_in_columns(values: ReadValues) -> Details | None:
        for column, texts in values.texts.items():
            chosen = [texts[row] for row in spread(len(texts))]
            examples = [example for example in map(find, chosen) if example is not None]
            if len(examples) >= max(fewest, share * len(chosen)):
                count = counted(len(examples), len(chosen), "text")
                return {
                    "column": repr(column),
                    "count": count,
                    "example": shortened(examples[0], _SHOWN_CHARACTERS),
                }
        return None

    return find_in_columns


def _blob(text: str) -> str | None:
    return text if is_blob(text) else None


def _missing(text: str) -> str | None:
    return text if text.strip().lower() in _MISSING_TEXTS else None


def _matches(pattern: re.Pattern[str]) -> Callable[[str], str | None]:
    """Return a function from a text to the first match in it, or None."""

    def find(text: str) -> str | None:
        match = pattern.search(text)
        return None if match is None else match[0]

    return find


def _no_words(text: str) -> str | None:
    """Return a text that is a number, a path, an address or a list; else None."""
    if _NO_WORDS.fullmatch(text.strip()):
        return text
    is_bracketed = text[:1] in ("[", "{") and len(text) <= _LONGEST_LIST
    return text if is_bracketed and value_in_text(text) != text else None


TEXT_DETECTORS: tuple[Detector[ReadValues], ...] = (
    Detector(
        name="base64",
        severity=Severity.WARNING,
        message="column {column} holds base64 or hexadecimal digits in {count}, such as {example}",
        remedy="decode them, or remove such rows",
        find=_in_texts(_blob, fewest=_FEWEST_BLOBS, share=_SHARE_BLOBS),
    ),
    Detector(
        name="no words",
        severity=Severity.WARNING,
        message="column {column} has {count} such as {example}, which is a number, an address, a "
        "file or a list rather than a text",
        remedy="name the column of the texts, or write the texts themselves",
        find=_in_texts(_no_words, fewest=_FEWEST_NO_WORDS, share=_SHARE_NO_WORDS),
    ),
    Detector(
        name="missing texts",
        severity=Severity.WARNING,
        message="column {column} has {count} such as {example}, which stands for a missing one",
        remedy="remove such rows",
        find=_in_texts(_missing, fewest=1, share=0.0),
    ),
    Detector(
        name="garbled texts",
        severity=Severity.WARNING,
        message="column {column} has {count} with characters such as {example}, which come from a "
        "wrong encoding before the file was written",
        remedy="write the file again from its source, or repair it with ftfy",
        find=_in_texts(_matches(_GARBLED), fewest=_FEWEST_GARBLED, share=_SHARE_GARBLED),
    ),
    Detector(
        name="escaped texts",
        severity=Severity.WARNING,
        message="column {column} has {count} with {example}, markup or an escape that is read as "
        "letters",
        remedy="replace these by the characters that they stand for",
        find=_in_texts(_matches(_ESCAPED), fewest=_FEWEST_ESCAPED, share=_SHARE_ESCAPED),
    ),
)
