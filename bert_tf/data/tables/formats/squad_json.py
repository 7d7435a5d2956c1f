"""SQuAD 1.1 and 2.0 JSON, and lists of paragraphs or questions as other libraries write them."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bert_tf.base.errors import Fault, InputError
from bert_tf.data.tables.dialect import PLAIN, TableDialect, name_without_compression
from bert_tf.data.tables.formats.delimited import ParsedRow
from bert_tf.data.tables.rejects import Reject
from bert_tf.data.tables.text_files import Opener, has_surrogates, open_local, open_text

_USUAL_BEGINNING = re.compile(
    r'\{\s*("version"\s*:\s*"[^"]*"\s*,\s*)?"data"\s*:\s*\[\s*\{\s*"(title|paragraphs)"\s*:'
)
_BEGINNING_CHARACTERS = 4096  # read to tell SQuAD JSON from a table
_PARAGRAPH_CHARACTERS = 1 << 20  # read further, because long paragraphs may precede their questions
_JSON_GROWTH = 8  # memory that JSON may take once it is parsed, as a multiple of its text
# Ways from the top to the questions, for `lines_of_parts`
_QUESTIONS = ("data", None, "paragraphs", None, "qas", None)
_QUESTIONS_OF_LIST = (None, "qas", None)

SQUAD_COLUMNS = ("id", "question", "context")  # columns of the questions as rows


class SquadEntry(NamedTuple):
    """A question of the file, or a part of the file without questions."""

    line: int  # its first line, counted from 1
    context: Any  # the paragraph's text, unchecked: any JSON value
    question: Any  # the question's object, unchecked: any JSON value
    fault: Fault | None  # reason and place of a part without questions; None for a question


def is_squad_json(path: str | Path, opener: Opener = open_local) -> bool:
    """Whether a file is SQuAD JSON, not a table: by name, then by its beginning."""
    if not name_without_compression(str(path)).endswith(".json"):
        return False
    with open_text(path, newline="\n", opener=opener) as stream:
        beginning = stream.read(_BEGINNING_CHARACTERS).lstrip()
        if _USUAL_BEGINNING.match(beginning):
            return True
        if beginning.startswith("["):  # paragraphs, as for simpletransformers, or rows
            return '"qas"' in beginning or '"qas"' in stream.read(_PARAGRAPH_CHARACTERS)
        first, line_end, _ = beginning.partition("\n")
        if not line_end:
            first += stream.readline(PLAIN.max_row_characters)
    if len(first) > PLAIN.max_row_characters:  # not parsed to find a row that is rejected
        return '"data"' in beginning
    try:
        value = json.loads(first)
    except (ValueError, RecursionError):  # one object over many lines, or not JSON
        return beginning.startswith("{") and '"data"' in beginning
    if not isinstance(value, dict) or not isinstance(value.get("data"), list):
        return False
    articles = value["data"]
    is_article = bool(articles) and isinstance(articles[0], dict) and "paragraphs" in articles[0]
    return is_article or not value.keys() - {"version", "data"}


def read_squad_entries(
    path: str | Path, dialect: TableDialect, opener: Opener = open_local
) -> Iterator[SquadEntry]:
    """Yield all questions in file order.

    Args:
        path: the file, which is read whole.
        dialect: encoding, and the limit of memory.
        opener: opens the file, which may be on other storage.

    Raises:
        InputError: the file is not JSON, not of SQuAD's form, or larger than an eighth of
            `dialect.max_table_megabytes`.
        UsageError: it cannot be read, or `--no-header` was given.
    """
    dialect.check_has_names(path, "this is SQuAD JSON")
    megabytes = dialect.max_table_megabytes / _JSON_GROWTH
    with open_text(path, newline="\n", encoding=dialect.encoding, opener=opener) as stream:
        text = stream.read(int(megabytes * 1e6) + 1)
    if len(text) > megabytes * 1e6:
        raise InputError(
            f"{path}: is larger than {megabytes:g} MB, the limit for JSON (an eighth of "
            "max_table_megabytes); split it, or raise max_table_megabytes"
        )
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is not JSON ({error}); expected SQuAD JSON") from None
    is_list = isinstance(document, list)
    data = document.get("data") if isinstance(document, dict) else None
    articles = [{"paragraphs": document}] if is_list else data
    if not isinstance(articles, list):
        raise InputError(
            f'{path}: is not SQuAD JSON; expected {{"data": [{{"paragraphs": [{{"context": …, '
            '"qas": […]}]}]}'
        )
    pattern = _QUESTIONS_OF_LIST if is_list else _QUESTIONS
    line_of = _lines(text, pattern)
    del text
    for number, article in enumerate(articles):
        where = f"article {number + 1}"
        if isinstance(article, dict) and article.keys() >= {"question", "context"}:
            yield SquadEntry(line_of(("data", number)), article["context"], article, None)
            continue
        paragraphs = article.get("paragraphs") if isinstance(article, dict) else None
        if not isinstance(paragraphs, list):
            fault = "article has no list of paragraphs", where
            yield SquadEntry(line_of(("data", number)), None, None, fault)
            continue
        for place, paragraph in enumerate(paragraphs):
            path_of = (place,) if is_list else ("data", number, "paragraphs", place)
            qas = paragraph.get("qas") if isinstance(paragraph, dict) else None
            if not isinstance(qas, list):
                fault = "paragraph has no list of questions", f"{where}, paragraph {place + 1}"
                yield SquadEntry(line_of(path_of), None, None, fault)
                continue
            for index, question in enumerate(qas):
                line = line_of((*path_of, "qas", index))
                yield SquadEntry(line, paragraph.get("context"), question, None)


def read_squad_rows(
    path: str | Path, dialect: TableDialect, opener: Opener = open_local
) -> Iterator[ParsedRow]:
    """Yield questions as rows with `id`, `question` and `context`, without answers."""
    source = str(path)
    for line, context, question, fault in read_squad_entries(path, dialect, opener):
        if fault is not None:
            yield line, "", Reject(source, line, *fault)
            continue
        if not isinstance(question, dict):
            yield line, "", Reject(source, line, "question is not a JSON object")
            continue
        values = {**question, "context": context}
        row = {name: values[name] for name in SQUAD_COLUMNS if name in values}
        raw = json.dumps(row, ensure_ascii=False)
        if has_surrogates(raw):
            yield line, raw, Reject(source, line, "not Unicode text", f"question {row.get('id')!r}")
        else:
            yield line, raw, row


def _lines(text: str, questions: Sequence[str | None]) -> Callable[[JsonPath], int]:
    """Return a function from the path of a part to its line; files often have a single line."""
    stripped = text.strip()
    if "\n" not in stripped:
        line = 1 + text.count("\n", 0, text.index(stripped))
        return lambda _: line
    return lines_of_parts(text, questions).__getitem__


_BLANKS = re.compile(r"[ \t\n\r]*")

# Keys and places in lists, from the top: `("data", 0, "paragraphs", 2)`
JsonPath = tuple[str | int, ...]


def lines_of_parts(text: str, pattern: Sequence[str | None]) -> dict[JsonPath, int]:
    """Find the lines of all values on the way down a pattern.

    The standard library's parser does not tell the places of values. So this function walks down
    the pattern itself, and lets that parser skip all other values at its speed.

    Args:
        text: valid JSON.
        pattern: one item per level from the top: a key of an object, or None for all items of a
            list.

    Returns:
        The line of each value, counted from 1, by its path.
    """
    lines: dict[JsonPath, int] = {}
    line = 1
    counted_to = 0  # line ends before this offset are in `line`
    for path, place in _Walk(text).parts(pattern, ()):
        line += text.count("\n", counted_to, place)
        counted_to = place
        lines[path] = line
    return lines


class _Walk:
    """Steps through valid JSON; the methods begin at a value and end after it."""

    def __init__(self, text: str):
        self._text = text
        self._place = 0
        self._decoder = json.JSONDecoder()

    def parts(
        self, pattern: Sequence[str | None], path: JsonPath
    ) -> Iterator[tuple[JsonPath, int]]:
        """Yield path and offset of the value that begins here, and of the values inside it.

        Only values on the pattern are yielded; others are skipped.

        Args:
            pattern: levels below this value, see `lines_of_parts`.
            path: of this value.
        """
        self._skip_blanks()
        yield path, self._place
        opening = self._text[self._place]
        expected = "[" if pattern and pattern[0] is None else "{"
        if not pattern or opening != expected:
            self._value()
            return
        for key in self._keys(is_object=opening == "{"):
            if pattern[0] in (None, key):
                yield from self.parts(pattern[1:], (*path, key))
            else:
                self._value()

    def _keys(self, *, is_object: bool) -> Iterator[str | int]:
        """Yield key or index of each value of the object or list that begins here.

        The caller steps over the value before it asks for the next one.
        """
        self._place += 1
        for number in itertools.count():
            self._skip_blanks()
            if self._text[self._place] in "]}":
                self._place += 1
                return
            if number:
                self._place += 1  # the comma
            key = number
            if is_object:
                key = self._value()
                self._skip_blanks()
                self._place += 1  # the colon
            yield key

    def _value(self) -> Any:
        """Step over a value and return it."""
        self._skip_blanks()
        value, self._place = self._decoder.raw_decode(self._text, self._place)
        return value

    def _skip_blanks(self) -> None:
        match = _BLANKS.match(self._text, self._place)
        assert match is not None  # the pattern also matches no blanks
        self._place = match.end()
