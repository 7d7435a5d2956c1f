"""Patterns of text that is not prose: rows of a table, markup, subtitles, mail.

A pattern counts if a large enough share of a file's lines has it; `signs.toml` lists the patterns
with their shares and advice.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping

from bert_tf.base.errors import UsageError
from bert_tf.base.files import toml_beside
from bert_tf.base.wording import quantity
from bert_tf.config.sections.data import CorpusSection
from pipeline.corpus.web_pages import LISTS

_FEWEST_LINES = 5  # with a sign
_MOST_LINES = 10_000  # judged per file
_SAME_SHAPE = 0.9  # of the lines have the same number of fields
_MOST_WORDS = 4  # columns of CoNLL with blanks; those with more have tabs
_MOST_TAGS = 0.2  # different tags by lines, at most
_MOST_ROWS = 0.7  # of the lines have at least the fields of the first
_SHOWN_BYTES = 30
_STRINGS_ADVICE = (
    "nothing but a text in quotation marks ({}); take the marks off first (of JSON jq -r .), or "
    "they become parts of sentences"
)
_PYTHON_ADVICE = (
    "lists or objects of Python ({}); write their texts as JSON first, an object per line, or give "
    "--set SECTION.format=text, if it is text"
)
_JSON_ADVICE = (
    "JSON objects; give the file the ending .jsonl, or --set SECTION.format=jsonl (text, if it is)"
)
_ARRAY_ADVICE = (
    "a JSON value over several lines; write an object per line first (jq -c '.[]') and give the "
    "file the ending .jsonl, or --set SECTION.format=text, if it is text"
)
_FRONT_ADVICE = "front matter ({}); remove it first, as it becomes sentences"
_BETWEEN_ADVICE = (
    "{}, as between texts; write <|endoftext|> or a blank line there, with --set "
    "SECTION.text_layout=endoftext or paragraph_lines, if each text is a document"
)
_TABLE_ADVICE = "fields of a table ({}); give it the ending .csv, or --set SECTION.format=csv"
_CELLS_ADVICE = (
    "cells of a table ({}); name its columns in a first line and give it the ending .csv, or keep "
    "only the text"
)
_TABS_ADVICE = (
    "{}, like a table; name its columns in a first line and give --text-column and "
    "--set SECTION.format=tsv, or keep only the text (cut -f)"
)
_TAGS_ADVICE = "{}, like a word and its tags; write one sentence per line first"
_NUMBERS_ADVICE = (
    "their numbers ({}), which become words; remove them first (sed -E 's/^ *[0-9]+//')"
)


@dataclasses.dataclass(frozen=True)
class _Sign:
    """A pattern of lines; see `signs.toml`.

    Attributes:
        pattern: searched in each line.
        least: share of lines with the pattern from which it is reported.
        advice: the content of the lines, and what to do.
        is_markup: whether the step `html` of cleaning removes it.
    """

    pattern: re.Pattern[bytes]
    least: float
    advice: str
    is_markup: bool = False


# The names of columns, one of them a usual name of texts, labels or ids.
_HEADER = re.compile(
    rb"^(?=.*\b(?:text|content|body|sentence|review|comment|title|id|label)\b)"
    rb"\"?\w{1,30}\"?(?:([,;|])\"?\w{1,30}\"?)(?:\1\"?\w{1,30}\"?)*\s*$",
    re.IGNORECASE,
)
# The beginning of a JSON value that is written over several lines, or of an array in one.
_JSON_VALUE = re.compile(rb"\s*(?:\[\s*(?:\{\s*)?\"[^\"\n]*\"\s*[:,\]]|\{\s*\n\s*\"[^\"\n]*\"\s*:)")
_FRONT_MATTER = re.compile(
    rb"\s*(?:---[ \t]*\r?\n(?:[\w-]+:[^\n]*\n(?:[ \t-][^\n]*\n)*){1,60}?---[ \t]*\r?\n"
    rb"|\+\+\+[ \t]*\r?\n(?:(?:[\w.-]+[ \t]*=|\[)[^\n]*\n(?:[ \t][^\n]*\n|\r?\n)*){1,60}?"
    rb"\+\+\+[ \t]*\r?\n)"  # YAML of Jekyll and the like, TOML of Hugo
)
# A line between texts: percent signs, a drawn line, or a tag. Smileys, quotes (`>>`), comments
# (`/**`, `##`), fences of code (`~~~`) and sounds in captions (`[MUSIC]`) are not.
_PERCENT = re.compile(r"%{1,3}")
_DRAWN = re.compile(r"\u2042|([-=*_+\u2013\u2014\u2015\u2500\u2550])(?: ?\1){1,79}|~{4,80}|#{4,80}")
_TAG = re.compile(r"</?[A-Za-z|_ ]{1,20}/?>|\[/?(?:SEP|CLS|EOS|BOS|PAD|EOD|EOT|DOC|END)\]")
# Number and share of the lines.
_FEWEST_BETWEEN = 10
_BETWEEN = 0.003
_UNDERLINE = 3  # characters by which an underline may differ from the heading above it
_JSON = re.compile(rb"^\s*\{\s*\".*\}\s*,?\s*$")
_STRING = re.compile(rb"""^\s*"(?:[^"\\]|\\.|"")*"\s*[,;]?\s*$""")
_PYTHON = re.compile(rb"^\s*(?:\{\s*'[^']*'\s*:.*\}|\[\s*'.*['\"]\s*\])\s*,?\s*$")
# Cells of a row, one of them a text in quotation marks.
_CELLS = re.compile(rb"""^(?:[^,;"\t]{1,40}[,;]){1,9}"[^"]{10,}"(?:[,;][^,;"]{0,40}){0,9}\s*$""")
_CELLS_LEAST = 0.5  # of the lines
_NUMBER = re.compile(rb"\s*(\d{1,9})[ \t:|]+\S")  # of a line, not `1.` of an item
_COUNTING = 0.8  # of the lines have the number after that of the line before


@functools.cache
def _signs() -> list[_Sign]:
    """Read the signs of `signs.toml`."""
    elements = "|".join(f"{LISTS['paragraph_elements']} {LISTS['inline_elements']}".split())
    signs = []
    for sign in toml_beside(__file__, "signs.toml")["signs"]:
        pattern = sign["pattern"].replace("ELEMENTS", elements)
        signs.append(_Sign(**sign | {"pattern": re.compile(pattern.encode())}))
    return signs


def signs_of_other_formats(
    heads: Mapping[str, bytes], cells: Mapping[str, bytes], config: CorpusSection
) -> list[str]:
    """Warn about text that is not prose.

    Args:
        heads: the beginnings of text files, by path.
        cells: text of tables, by path.
        config: of `vocab` or `preprocess`.

    Returns:
        A warning for each sign that was found, with the file that has the most of it.

    Raises:
        UsageError: a text file holds JSON objects, and the config does not say that it is text.
    """
    places_by_advice: dict[str, list[tuple[str, float, str]]] = {}
    usable = [sign for sign in _signs() if not (sign.is_markup and "html" in config.cleaning)]
    for path, text in (*heads.items(), *cells.items()):
        lines = [line for line in text.splitlines()[:_MOST_LINES] if line.strip()]
        if not lines:
            continue
        signs = [
            (sign.advice, *_share(sign.pattern, lines), sign.least)
            for sign in usable
            if not (sign.is_markup and config.reads_web(path))
        ]
        if path in heads:
            signs += _shapes(lines)
            signs += _marks_of_files(text, lines)
        for advice, share, example, least in signs:
            if share >= least:
                places_by_advice.setdefault(advice, []).append((path, share, example))
    warnings = []
    for advice, places in places_by_advice.items():
        path, share, example = max(places, key=lambda place: place[1])
        others = f" (and {quantity(len(places) - 1, 'other file')})" if len(places) > 1 else ""
        content = advice.format(example).replace("SECTION", config.section_name)
        warnings.append(f"{path}{others}: {share:.0%} of the lines hold {content}")
        if advice in (_JSON_ADVICE, _ARRAY_ADVICE, _PYTHON_ADVICE) and config.format == "auto":
            raise UsageError(warnings[-1])
    return warnings


def _marks_of_files(text: bytes, lines: list[bytes]) -> Iterator[tuple[str, float, str, float]]:
    """Yield signs that few lines have: the beginning of a file, and lines between its texts.

    Yields:
        Advice, share of the lines, an example, and the share from which the sign is reported.
    """
    if _JSON_VALUE.match(text):
        yield _ARRAY_ADVICE, 1.0, "", 1.0
    front = _FRONT_MATTER.match(text)
    if front:
        block = front[0].split()
        share = front[0].count(b"\n") / len(lines)
        yield _FRONT_ADVICE, share, block[1].decode("utf-8", "replace")[:_SHOWN_BYTES], 0.0
    between: Counter[str] = Counter()
    above = ""
    for raw_line in text.split(b"\n", _MOST_LINES):
        line = raw_line.decode("utf-8", "replace").strip()
        is_underline = abs(len(line) - len(above)) <= _UNDERLINE and len(line) > 1 and above != ""
        # After a blank line it is a rule of Markdown, or separates the parts of a chapter.
        is_scene = above == "" and _DRAWN.fullmatch(line) is not None
        if line and not is_underline and not is_scene and _is_between(line):
            between[line] += 1
        above = line
    for mark, times in between.most_common(1):
        if times >= _FEWEST_BETWEEN:
            quoted = mark[:_SHOWN_BYTES]
            yield _BETWEEN_ADVICE, times / len(lines), f"nothing but {quoted}", _BETWEEN


def _is_between(line: str) -> bool:
    return any(pattern.fullmatch(line) for pattern in (_PERCENT, _DRAWN, _TAG))


def _shapes(lines: list[bytes]) -> Iterator[tuple[str, float, str, float]]:
    """Yield signs that need all lines together: JSON, a header with rows, tabs, words with tags.

    Yields:
        See `_marks_of_files`.
    """
    objects, example = _share(_JSON, lines)
    yield _JSON_ADVICE, objects, example, _SAME_SHAPE
    if objects < _SAME_SHAPE:
        yield _PYTHON_ADVICE, *_share(_PYTHON, lines), _SAME_SHAPE
    yield _STRINGS_ADVICE, *_share(_STRING, lines), _SAME_SHAPE
    header = _HEADER.match(lines[0])
    if header:
        fields = lines[0].count(header[1])
        rows = sum(line.count(header[1]) >= fields for line in lines) / len(lines)
        yield _TABLE_ADVICE, rows, header[0].strip().decode(), _MOST_ROWS
    else:
        yield _CELLS_ADVICE, *_share(_CELLS, lines), _CELLS_LEAST
    if len(lines) < _FEWEST_LINES:
        return
    tabs, share = _most_frequent([line.count(b"\t") for line in lines])
    numbers = [int(match[1]) for match in map(_NUMBER.match, lines) if match]
    counting = sum(after == before + 1 for before, after in itertools.pairwise(numbers))
    words_of_lines = [line.split() for line in lines]
    words, same_words = _most_frequent([len(words) for words in words_of_lines])
    last_words = len({words[-1] for words in words_of_lines})
    if tabs and share >= _SAME_SHAPE:
        yield _TABS_ADVICE, share, quantity(tabs, "tab"), _SAME_SHAPE
    elif numbers and counting >= _COUNTING * len(lines):
        examples = f"{numbers[0]}, {numbers[-1]}"
        yield _NUMBERS_ADVICE, counting / len(lines), examples, _COUNTING
    elif 1 < words <= _MOST_WORDS and last_words <= _MOST_TAGS * len(lines):
        yield _TAGS_ADVICE, same_words, quantity(words, "word"), _SAME_SHAPE


def _most_frequent(numbers: list[int]) -> tuple[int, float]:
    """Return the most frequent number, and its share."""
    ((number, times),) = Counter(numbers).most_common(1)
    return number, times / len(numbers)


def _share(pattern: re.Pattern[bytes], lines: list[bytes]) -> tuple[float, str]:
    """Return the fraction of lines with a pattern, 0 if these are few, and an example."""
    matches = [match for match in map(pattern.search, lines) if match]
    if len(matches) < min(_FEWEST_LINES, len(lines)):
        return 0.0, ""
    example = matches[0][0][:_SHOWN_BYTES]
    return len(matches) / len(lines), example.decode("utf-8", "ignore").strip()
