"""Signs that plain text is something else: rows of a table, markup, subtitles, mail."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Iterator, Mapping

from bert_tf.base.errors import UsageError
from bert_tf.base.wording import quantity

_FEWEST_LINES = 5  # with a sign
_MOST_LINES = 10_000  # looked at per file
_SAME_SHAPE = 0.9  # of the lines have as many fields
_MOST_WORDS = 4  # columns of CoNLL with blanks; those with more have tabs
_SHOWN_BYTES = 30


@dataclasses.dataclass(frozen=True)
class _Sign:
    pattern: re.Pattern[bytes]  # searched in each line
    least: float  # fraction of the lines that have it
    advice: str  # a format of an example


# The names of columns, one of them as texts and their numbers are called.
_HEADER = re.compile(
    rb"^(?=.*\b(?:text|content|body|sentence|review|comment|title|id|label)\b)"
    rb"\"?\w{1,30}\"?(?:([,;|])\"?\w{1,30}\"?)(?:\1\"?\w{1,30}\"?)*\s*$",
    re.IGNORECASE,
)
_JSON = re.compile(rb"^\s*\{\s*\".*\}\s*,?\s*$")
_SIGNS = (
    _Sign(
        re.compile(rb"^\s*(?:\d+:)?\d\d:\d\d[.,]\d{3} --> "),
        0.05,
        "time stamps of subtitles ('{}'); take out the numbers and times first",
    ),
    _Sign(
        re.compile(rb"</?[A-Za-z][^<>@\n]{0,200}>"),
        0.05,
        "tags such as {}, which become words; take the markup out first",
    ),
    _Sign(
        re.compile(rb"&(?:amp|lt|gt|quot|apos|nbsp|#x?[0-9A-Fa-f]{2,6});"),
        0.02,
        "HTML entities such as {}; unescape them first",
    ),
    _Sign(
        re.compile(rb"\\[nt](?=[A-Z\\\"'\s]|$)"),
        0.1,
        "line ends and tabs written as two characters ({}); unescape them first",
    ),
    _Sign(
        re.compile(rb"^(?:(?:Message-ID|Received|MIME-Version|Content-Type):|(?:From|To|Cc): .*@)"),
        0.05,
        "headers of mail such as '{}'; extract the bodies first",
    ),
    _Sign(
        re.compile(rb"^\s?=+ [^=].* =+\s*$"),
        0.02,
        "headings of WikiText such as '{}', which do not divide documents; in a text file, "
        "sed -E 's/^ = [^=]+ = *$/<|endoftext|>/' does",
    ),
    _Sign(
        # UTF-8 that was read as Windows-1252: curly quotes and dashes, accented letters.
        re.compile("â€(?:™|œ|“|”|¦|˜)|Ã(?:©|¨|¼|¶|¤|±|³|¡|ª|§)".encode()),
        0.02,
        "garbled characters such as {}, UTF-8 that was read as Windows-1252 and saved so; "
        "mend them first, for example with ftfy",
    ),
)


def signs_of_other_formats(
    heads: Mapping[str, bytes], cells: Mapping[str, bytes], format_key: str
) -> list[str]:
    """Warns of text that is no prose.

    Args:
      heads: The beginnings of text files, by path.
      cells: Text of tables, by path.
      format_key: The config key that says how files are read.

    Raises:
      UsageError: A text file holds JSON objects.
    """
    found: dict[str, list[tuple[str, float, str]]] = {}
    for path, text in (*heads.items(), *cells.items()):
        lines = [line for line in text.splitlines()[:_MOST_LINES] if line.strip()]
        if not lines:
            continue
        signs = [(sign.advice, *_share(sign.pattern, lines), sign.least) for sign in _SIGNS]
        if path in heads:
            share, _ = _share(_JSON, lines)
            if share >= _SAME_SHAPE:
                raise UsageError(
                    f"{path}: {share:.0%} of the lines are JSON objects; give it the ending "
                    f".jsonl, or --set {format_key}=jsonl"
                )
            signs += _shapes(lines, format_key)
        for advice, share, example, least in signs:
            if share >= least:
                found.setdefault(advice, []).append((path, share, example))
    warnings = []
    for advice, places in found.items():
        path, share, example = max(places, key=lambda place: place[1])
        others = f" (and {quantity(len(places) - 1, 'other file')})" if len(places) > 1 else ""
        warnings.append(f"{path}{others}: {share:.0%} of the lines hold {advice.format(example)}")
    return warnings


def _shapes(lines: list[bytes], format_key: str) -> Iterator[tuple[str, float, str, float]]:
    if header := _HEADER.match(lines[0]):
        columns = header[0].strip().decode()
        advice = f"rows of a table ({{}}); give it the ending .csv, or --set {format_key}=csv"
        yield advice, 1.0, columns, 0.0
    if len(lines) < _FEWEST_LINES:
        return
    tabs, share = _most_frequent([line.count(b"\t") for line in lines])
    words, same_words = _most_frequent([len(line.split()) for line in lines])
    if tabs and share >= _SAME_SHAPE:
        advice = (
            "{}, like a table; name its columns in a first line and give --text-column and "
            f"--set {format_key}=tsv, or keep only the text (cut -f)"
        )
        yield advice, share, quantity(tabs, "tab"), _SAME_SHAPE
    elif 1 < words <= _MOST_WORDS:
        advice = "{}, like a word and its tags; make a line of each sentence first"
        yield advice, same_words, quantity(words, "word"), _SAME_SHAPE


def _most_frequent(numbers: list[int]) -> tuple[int, float]:
    ((number, times),) = Counter(numbers).most_common(1)
    return number, times / len(numbers)


def _share(pattern: re.Pattern[bytes], lines: list[bytes]) -> tuple[float, str]:
    """The fraction of lines that have a pattern, 0 if few; and an example."""
    matches = [match for line in lines if (match := pattern.search(line))]
    if len(matches) < min(_FEWEST_LINES, len(lines)):
        return 0.0, ""
    example = matches[0][0][:_SHOWN_BYTES].decode("utf-8", "replace").strip()
    return len(matches) / len(lines), example
