"""Forms that values are written in: lists of databases, truths, base64, look-alikes, names."""

from __future__ import annotations

import base64
import binascii
import math
import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from types import UnionType
from typing import Any

from bert_tf.data.tables.cells import GAPS, cell_text, list_in_text, value_in_text
from bert_tf.data.text.casing import normalize

# An item of PostgreSQL's arrays, and what is after it: https://www.postgresql.org/docs/current/
# arrays.html#ARRAYS-IO
# A bare item ends with its last character that is no blank, so blanks are read once.
_ARRAY_ITEM = re.compile(
    r'\s*(?:"((?:[^"\\]|\\.)*)"|([^\s{},"\\:](?:[^{},"\\:]*[^\s{},"\\:])?))\s*(,|\Z)'
)
_IN_ANGLES = re.compile(r"<([^<>]+)>")
_OF_ANGLES = re.compile(r"\s*(?:<[^<>]+>\s*)+")


def postgres_array(text: str) -> list[str] | None:
    """Parse `{a,"b c"}`, as PostgreSQL writes an array of one dimension.

    Returns:
        The items, quotes and escapes removed, or None if the text is something else.
    """
    body = text.strip()
    if body[:1] != "{" or body[-1:] != "}":
        return None
    inner = body[1:-1].strip()
    items: list[str] = []
    place, goes_on = 0, False
    while place < len(inner) or goes_on:
        match = _ARRAY_ITEM.match(inner, place)
        if match is None:
            return None
        quoted, bare, after = match.groups()
        items.append(bare if quoted is None else re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL))
        place = match.end()
        goes_on = after == ","
    return items


def angled_labels(text: str) -> list[str] | None:
    """Parse `<a><b>`, as StackOverflow writes tags; return None for other texts."""
    return _IN_ANGLES.findall(text) if _OF_ANGLES.fullmatch(text) else None


_BARE_LIST = re.compile(
    r"(?:\[|(?:WrappedArray|ArraySeq|ArrayBuffer|List|Set|Vector)\()([^\[\](){}\"]*)[\])]",
    re.DOTALL,
)


def bare_list(text: str) -> list[str] | None:
    """Parse `[a, b c]` and `WrappedArray(a, b c)`, as Spark, Hive and Java write lists, or None."""
    match = _BARE_LIST.fullmatch(text.strip())
    if match is None:
        return None
    items = [item.strip() for item in match[1].split(",")] if match[1].strip() else []
    return items if all(item and item[0] != "'" and "..." not in item for item in items) else None


def lists_of_databases(cells: Sequence[str]) -> list[list[str]] | None:
    """Parse cells that are all PostgreSQL arrays, labels in angle brackets, or lists of Spark.

    Args:
        cells: texts of a column. Empty ones are empty lists.

    Returns:
        A list per cell. None if any cell is something else, or if Python or JSON reads all of them:
            `{'a', 'b'}` is a set of Python.
    """
    filled = [cell for cell in cells if cell.strip()]
    parsers = [postgres_array, angled_labels]
    if any("," in cell for cell in filled):
        parsers.append(bare_list)  # [a] alone may be a label
    for parse in parsers:
        if filled and all(parse(cell) is not None for cell in filled):
            is_of_python = all(list_in_text(cell) is not None for cell in filled)  # {'a', 'b'}
            return None if is_of_python else [parse(cell) or [] for cell in cells]
    return None


_CLOSING = {"[": "]", "(": ")", "{": "}", "<": ">"}
_SEVERAL = re.compile(r"[,;|]|>\s*<")


def is_label_list(label: str) -> bool:
    """Whether a label is the text of a list, a tuple, an object or several labels in brackets."""
    text = label.strip()
    if len(text) < 2 or _CLOSING.get(text[0]) != text[-1]:
        return False
    if isinstance(value_in_text(text), dict):
        return True
    return list_in_text(text) is not None or _SEVERAL.search(text) is not None


def single_labels(labels: Sequence[str]) -> list[str]:
    """Take labels out of their lists, if all lists are of one: `["billing"]` is `billing`.

    Of a column with other labels, only texts come out of lists: `[1]` may be a label there. A
    column with other lists stays as it is: detectors warn of these.
    """
    lists = [list_in_text(label) for label in labels]
    kinds: type | UnionType = str if None in lists else str | int | float
    if not all(
        items is None or (len(items) == 1 and isinstance(items[0], kinds)) for items in lists
    ):
        return list(labels)
    return [
        label if items is None else cell_text(items[0])
        for label, items in zip(labels, lists, strict=True)
    ]


_PAIRS_OF_TRUTHS = (
    *(("0", "1"), ("0.0", "1.0"), ("-1", "1"), ("-1.0", "1.0"), ("false", "true"), ("f", "t")),
    *(("no", "yes"), ("n", "y"), ("nein", "ja"), ("nee", "ja"), ("nej", "ja"), ("non", "oui")),
    *(("no", "si"), ("no", "sí"), ("não", "sim"), ("nie", "tak"), ("нет", "да"), ("否", "是")),
    *(("いいえ", "はい"), ("아니오", "예"), ("different", "same"), ("wrong", "right")),
)
_TRUTHS = {pair[place]: str(place) for pair in _PAIRS_OF_TRUTHS for place in (0, 1)}
_NEGATION = re.compile(
    r"(?:not|non|no|un|in|ir|[dm]is|is_?not)(?:[\s_-]+an?\b)?[\s_-]*([^\s_-].{2,})"
)


# Words of one text beside another, whose negation says that the two do not match
_MATCHING = frozenset(
    (
        *("match", "matches", "matched", "matching", "duplicate", "duplicates", "duplicated"),
        *("dup", "relevant", "relevance", "same", "similar", "equivalent", "equal", "identical"),
        *("paraphrase", "paraphrases", "related", "correct", "entailment", "entailed", "entails"),
        *("answer", "synonym", "synonyms", "synonymous", "consistent"),
    )
)


def _truths(words: Collection[str]) -> dict[str, str] | None:
    """Return 0 or 1 by word, if two words in lower case say no and yes; else None."""
    if any(set(words) == set(pair) for pair in _PAIRS_OF_TRUTHS):
        return {word: _TRUTHS[word] for word in words}
    return None


def _negations(words: Collection[str]) -> dict[str, str] | None:
    """Return 0 or 1 by word, if one of two in lower case negates the other; else None.

    Such are `not_duplicate` and `duplicate`, `irrelevant` and `relevant`, `informal` and `formal`.
    """
    if len(words) != 2:
        return None
    for word in words:
        negated = _NEGATION.fullmatch(word)
        if negated and negated[1] in words:
            return {word: "0", negated[1]: "1"}
    return None


def _words_of_column(values: Iterable[Any]) -> set[str]:
    """Return the different values in lower case, without blanks."""
    return {cell_text(value).strip().lower() for value in values} - {"", *GAPS}


def numbers_of_truths(cells: Sequence[str]) -> list[str]:
    """Write `True`, `no`, `not_duplicate` and the like as 1 and 0, if all cells are such words."""
    lower = [cell.strip().lower() for cell in cells]
    words = set(lower)
    numbers = _truths(words) or _negations(words) or _TRUTHS
    if not all(cell in numbers and any(map(str.isalpha, cell)) for cell in lower):
        return list(cells)
    return [numbers[cell] for cell in lower]


def are_truths(values: Iterable[Any]) -> bool:
    """Whether values say yes and no: `0` and `1`, `True` and `False`, `y` and `n`; blanks aside."""
    return _truths(_words_of_column(values)) is not None


def are_negations(values: Iterable[Any], *, of_any_word: bool) -> bool:
    """Whether values are a word and its negation; blanks aside.

    Args:
        values: of a column.
        of_any_word: also of words that do not speak of matching, such as `formal` and `informal`.
    """
    numbers = _negations(_words_of_column(values))
    if numbers is None:
        return False
    base = next(word for word, number in numbers.items() if number == "1")
    return of_any_word or not _MATCHING.isdisjoint(re.split(r"[\W_]+", base))


_CLASSES_OF_PAIRS = frozenset(("entailment", "neutral", "contradiction", "entails", "contradicts"))


def are_classes_of_pairs(values: Iterable[Any]) -> bool:
    """Whether values are the classes of natural language inference; blanks aside."""
    texts = {cell_text(value).strip().lower() for value in values} - {"", "-", *GAPS}
    return len(texts) > 1 and texts <= _CLASSES_OF_PAIRS


_SCORES = ((0.0, 1.0), (-1.0, 1.0), (0.0, 5.0), (0.0, 10.0))  # scales


def are_scores(values: Iterable[Any]) -> bool:
    """Whether values are numbers as of scores: fractions on a usual scale.

    Whole numbers may be anything, such as annotators, lengths and years.
    """
    texts = [text for value in values if (text := cell_text(value).strip()).lower() not in GAPS]
    try:
        numbers = {float(text) for text in texts if text}
    except ValueError:
        return False
    if len(numbers) < 2 or not all(map(math.isfinite, numbers)):
        return False
    if all(map(float.is_integer, numbers)):
        return False
    return any(low <= min(numbers) and max(numbers) <= high for low, high in _SCORES)


# The value of a label, and the next label behind it, without blanks around both
_SAID = re.compile(
    r"([+-]?\d+(?:\.\d*)?(?:e[+-]?\d+)?|true|false|yes|no)(?:(?:\s*[,;|]\s*|\s+)(.+))?",
    re.IGNORECASE | re.DOTALL,
)
_IN_NAMES = re.compile(r"[^\d,;|][^,;|]*")
_WORDS_OF_TRUTH = frozenset(("true", "false", "yes", "no"))


def scored_labels(cells: Sequence[str]) -> list[dict[str, str]] | None:
    """Parse cells such as `sports=1, politics=0` and `sports:0.9`.

    Args:
        cells: texts of a column. Empty ones have no labels.

    Returns:
        The value of each label of a cell, in lower case; None if a cell is something else, has a
        label twice, or if no cell has several or a fraction: `chapter:1` is a label. So it is if a
        number is not from 0 to 1: `python:3.8` and `year:2019` are labels, too.
    """
    found: list[dict[str, str]] = []
    for cell in cells:
        if not cell.strip():
            found.append({})
            continue
        value = value_in_text(cell) if cell.lstrip().startswith("{") else None
        if isinstance(value, dict) and all(isinstance(one, int | float) for one in value.values()):
            found.append({cell_text(label): cell_text(one) for label, one in value.items()})
            continue
        said = _said_of_labels(cell)
        if said is None:
            return None
        found.append(said)
    values = {value for said in found for value in said.values()}
    if not all(value in _WORDS_OF_TRUTH or 0 <= float(value) <= 1 for value in values):
        return None
    has_scores = any("." in value for value in values)
    return found if has_scores or any(len(said) > 1 for said in found) else None


def _said_of_labels(cell: str) -> dict[str, str] | None:
    """Parse `a=1, b=0`; return None for another text, and if a label is there twice."""
    name, *rest = re.split(r"[=:]", cell.strip().rstrip(",;|"))
    said: dict[str, str] = {}
    for place, piece in enumerate(rest):
        label = name.strip()
        found = _SAID.fullmatch(piece.strip())
        is_last = place == len(rest) - 1
        if found is None or (found[2] is None) != is_last or label in said:
            return None
        if not _IN_NAMES.fullmatch(label):
            return None
        said[label] = found[1].lower()
        name = found[2] or ""
    return said or None


# Between the labels of a cell, the usual ones first.
LABEL_SEPARATORS = ("|", ";", ",", "::", "/", "\n", "\t", "+", "&", "#", "，", "、", "；", "｜")


def joined_labels(label: str, others: Collection[str]) -> str | None:
    """Return the separator, if a label is several of the others with one between them."""
    for separator in (*LABEL_SEPARATORS, " "):
        parts = [part.strip() for part in label.split(separator)]
        if len(set(parts)) > 1 and all(part and part in others for part in parts):
            return separator
    return None


def labels_of_object(value: Any) -> list[str] | None:
    """Return the labels of an object in a cell; None if it is another object.

    Label Studio writes `{"choices": ["a", "b"]}`, spaCy `{"a": 1.0, "b": 0.0}`.
    """
    if not isinstance(value, dict) or not value:
        return None
    if set(value) == {"choices"}:
        choices = [value["choices"]] if isinstance(value["choices"], str) else value["choices"]
        is_list = isinstance(choices, list) and all(isinstance(one, str) for one in choices)
        return choices if is_list else None
    if not all(
        isinstance(one, int | float | None) and one in (0, 1, None) for one in value.values()
    ):
        return None
    return [cell_text(label) for label, is_there in value.items() if is_there]


_QUOTES = "'\"`"


def is_quoted(text: str) -> bool:
    """Whether a text with letters or digits has a quote at both ends."""
    inner = text[1:-1]
    if inner and text[0] in inner:
        return False
    return (
        len(text) > 2
        and text[0] == text[-1]
        and text[0] in _QUOTES
        and any(map(str.isalnum, inner))
    )


_SPLITS = frozenset(
    (
        *("train", "test", "dev", "val", "valid", "validation", "eval", "unused", "training"),
        *("testing", "develop", "development", "holdout", "publictest", "privatetest"),
    )
)
_NAMES_OF_TRUTHS = re.compile(r"(is|for|in|use)_?(valid|validation|val|dev|test|train)", re.I)
_NAMES_OF_FOLDS = re.compile(r"(k|cv|test|train|val)?_?folds?(_?(id|no|nr|number|idx))?", re.I)
_MOST_FOLDS = 20


def names_split(name: str) -> bool:
    """Whether a name is that of a column of splits with truths or folds, such as `is_train`."""
    forms = (_NAMES_OF_TRUTHS, _NAMES_OF_FOLDS)
    return any(form.fullmatch(name.strip()) for form in forms)


def is_split(name: str, values: Iterable[Any]) -> bool:
    """Whether a column tells training from other rows: `split`, `is_valid`, `fold`, `Usage`.

    Its values are names of splits with one for training, or its name says so: a name such as
    `is_valid` with truths, or a name of folds with at most _MOST_FOLDS values.
    """
    texts = {cell_text(value).strip().lower() for value in values} - {"", *GAPS}
    if len(texts) < 2:
        return False
    if texts <= _SPLITS and any(value.startswith("train") for value in texts):
        return True
    if _NAMES_OF_TRUTHS.fullmatch(name.strip()):
        return are_truths(texts)
    is_fold = _NAMES_OF_FOLDS.fullmatch(name.strip()) is not None
    return is_fold and len(texts) <= _MOST_FOLDS


# Columns of two texts, in lower case
PAIRS = (
    ("text", "text_pair"),
    ("sentence1", "sentence2"),
    ("premise", "hypothesis"),
    ("question1", "question2"),
    ("question", "sentence"),
    ("text_a", "text_b"),
    ("text1", "text2"),
    ("sentence_a", "sentence_b"),
    ("#1 string", "#2 string"),
    ("query", "passage"),
    ("query", "document"),
    ("query", "product_title"),
    ("question", "passage"),
    ("question", "context"),
    ("claim", "evidence"),
    ("headline", "body"),
    ("context", "response"),
)
_FIRST_OF_TWO = re.compile(r"(.*[a-z][ _-]?|[#q])(1|a)( string)?")
_SECOND = {"1": "2", "a": "b"}


def second_text(name: str, columns: Collection[str]) -> str | None:
    """Return the column of the second text, if names say that `name` is the first of two."""
    by_name = {each.lower(): each for each in columns}
    lower = name.lower()
    names = [second for first, second in PAIRS if first == lower]
    if match := _FIRST_OF_TWO.fullmatch(lower):
        names.append(f"{match[1]}{_SECOND[match[2]]}{match[3] or ''}")
    return next((by_name[each] for each in names if each in by_name), None)


_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{8,}={0,2}")
_HEX = re.compile(r"(?:0x)?(?:[0-9a-f]{2}){16,}|(?:0x)?(?:[0-9A-F]{2}){16,}")
# Characters that no word has by chance.
_LEAST_OF_TEXT = 12
_LEAST_OF_BYTES = 40


def is_blob(text: str) -> bool:
    """Whether a text is base64 or hexadecimal digits rather than words.

    Base64 is sure if it decodes to printable UTF-8. If it decodes to other bytes, it must be long
    and have a digit, because a long word is base64, too.
    """
    token = "".join(text.split()) if "\n" in text else text.strip()
    if _HEX.fullmatch(token):
        return True
    if len(token) < _LEAST_OF_TEXT or not _BASE64.fullmatch(token):
        return False
    if token.lower() == token or token.upper() == token:
        return False
    padded = token.rstrip("=") + "=" * (-len(token.rstrip("=")) % 4)
    try:
        content = base64.b64decode(padded, altchars=b"-_" if set(token) & set("-_") else None)
    except (binascii.Error, ValueError):
        return False
    try:
        words = content.decode("utf-8")
    except UnicodeDecodeError:
        return len(token) >= _LEAST_OF_BYTES and any(map(str.isdigit, token))
    return all(map(str.isprintable, words.split()))


PIECE = re.compile(r"##\S+")  # of a word, as WordPiece writes all but the first
_FIRST_CJK = "\u2e80"  # words of characters from here on have no blanks between them


def is_cut(text: str, start: int, end: int) -> bool:
    """Whether an entity begins or ends inside of a word, or with a blank.

    Characters of Chinese and Japanese may be words of their own, and are not cut.
    """
    inner = text[start:end]
    if inner != inner.strip() or not inner:
        return True
    return _is_inside_word(text, start) or _is_inside_word(text, end)


def _is_inside_word(text: str, place: int) -> bool:
    """Whether a position, in characters, is between two letters or digits of a word."""
    pair = text[place - 1 : place + 1] if place else ""
    return len(pair) == 2 and pair.isalnum() and max(pair) < _FIRST_CJK


# Letters that look like a Latin one in lower or upper case, and marks in several shapes, after
# Unicode's confusables (UTS 39). Case is folded before.
_LOOK_ALIKES = str.maketrans(
    "асеорхуіјѕһԁԛԝвнкмтг" + "αβεζηικμνορτυχ" + "’‘ʼ′`´‛" + "“”„‟″«»" + "‐‑‒–—―−",
    "aceopxyijshdqwbhkmtr" + "abezhikmnoptyx" + "'" * 7 + '"' * 7 + "-" * 7,
)
_INVISIBLE = dict.fromkeys((0xAD, *range(0x200B, 0x2010), 0x2060, 0xFEFF))  # width 0


def look_alikes(text: str) -> list[str]:
    """Return the Unicode names of the characters that look like others: CYRILLIC SMALL LETTER A."""
    return [unicodedata.name(each) for each in text if ord(each.lower()) in _LOOK_ALIKES]


def skeleton(text: str) -> str:
    """Write texts that look alike in the same way: without case, spacing and look-alike letters.

    Similar to the skeleton of Unicode's UTS 39, but only for the characters of _LOOK_ALIKES, and
    without quotes around a text. Cells of only marks stay as they are: `''` and two grave accents
    are tags of opening and closing quotes.
    """
    visible = normalize("NFKC", text).translate(_INVISIBLE)
    folded = " ".join(visible.casefold().split())
    if not any(map(str.isalnum, folded)):
        return folded
    folded = folded.translate(_LOOK_ALIKES)
    folded = folded.rstrip(".,;:") or folded
    is_quoted = len(folded) > 2 and folded[0] == folded[-1] and folded[0] in "'\""
    return folded[1:-1] if is_quoted else folded
