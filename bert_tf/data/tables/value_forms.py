"""Forms of values: truths, scores, splits, pairs of texts, base64, cut words and look-alikes."""

from __future__ import annotations

import base64
import binascii
import math
import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from bert_tf.data.tables.cells import GAPS, cell_text
from bert_tf.data.text.casing import normalize

_PAIRS_OF_TRUTHS = (
    *(("0", "1"), ("0.0", "1.0"), ("-1", "1"), ("-1.0", "1.0"), ("false", "true"), ("f", "t")),
    *(("no", "yes"), ("n", "y"), ("nein", "ja"), ("nee", "ja"), ("nej", "ja"), ("non", "oui")),
    *(("no", "si"), ("no", "sí"), ("não", "sim"), ("nie", "tak"), ("нет", "да"), ("否", "是")),
    *(("いいえ", "はい"), ("아니오", "예"), ("different", "same"), ("wrong", "right")),
)
_TRUTHS = {word: str(place) for pair in _PAIRS_OF_TRUTHS for place, word in enumerate(pair)}
_NEGATION = re.compile(
    r"(?:not|non|no|un|in|ir|[dm]is|is_?not)(?:[\s_-]+an?\b)?[\s_-]*([^\s_-].{2,})"
)

# Words for a text that matches another one; their negations say that the two do not match
_MATCHING = frozenset(
    (
        *("match", "matches", "matched", "matching", "duplicate", "duplicates", "duplicated"),
        *("dup", "relevant", "relevance", "same", "similar", "equivalent", "equal", "identical"),
        *("paraphrase", "paraphrases", "related", "correct", "entailment", "entailed", "entails"),
        *("answer", "synonym", "synonyms", "synonymous", "consistent"),
    )
)


def _truths(words: Collection[str]) -> dict[str, str] | None:
    """Return 0 or 1 by word if two words, in lower case, say no and yes; else None."""
    if any(set(words) == set(pair) for pair in _PAIRS_OF_TRUTHS):
        return {word: _TRUTHS[word] for word in words}
    return None


def _negations(words: Collection[str]) -> dict[str, str] | None:
    """Return 0 or 1 by word if one of two words, in lower case, negates the other; else None.

    Examples are `not_duplicate` and `duplicate`, `irrelevant` and `relevant`, `informal` and
    `formal`.
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
        of_any_word: whether any word counts, also one that does not speak of matching, such as
            `formal`.
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


_SCALES_OF_SCORES = ((0.0, 1.0), (-1.0, 1.0), (0.0, 5.0), (0.0, 10.0))


def are_scores(values: Iterable[Any]) -> bool:
    """Whether values look like scores: numbers on a usual scale, some of them fractions.

    Whole numbers may be anything, such as annotators, lengths and years.
    """
    try:
        numbers = {float(text) for text in _words_of_column(values)}
    except ValueError:
        return False
    if len(numbers) < 2 or not all(map(math.isfinite, numbers)):
        return False
    if all(map(float.is_integer, numbers)):
        return False
    return any(low <= min(numbers) and max(numbers) <= high for low, high in _SCALES_OF_SCORES)


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
    """Whether a column with this name may hold splits as truths or folds, such as `is_train`."""
    forms = (_NAMES_OF_TRUTHS, _NAMES_OF_FOLDS)
    return any(form.fullmatch(name.strip()) for form in forms)


def is_split(name: str, values: Iterable[Any]) -> bool:
    """Whether a column tells training rows from others: `split`, `is_valid`, `fold`, `Usage`.

    Either its values are names of splits, one of them for training; or it has a name such as
    `is_valid` and truths, or a name for folds and at most _MOST_FOLDS values.
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
    """Return the column of the second text if `name` is that of the first of two; else None."""
    by_name = {column.lower(): column for column in columns}
    lower = name.lower()
    names = [second for first, second in PAIRS if first == lower]
    if match := _FIRST_OF_TWO.fullmatch(lower):
        names.append(f"{match[1]}{_SECOND[match[2]]}{match[3] or ''}")
    return next((by_name[second] for second in names if second in by_name), None)


_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{8,}={0,2}")
_HEX = re.compile(r"(?:0x)?(?:[0-9a-f]{2}){16,}|(?:0x)?(?:[0-9A-F]{2}){16,}")
# Characters of base64, too many for a word that is valid base64 by chance: if it decodes to text,
# and if it decodes to other bytes.
_LEAST_OF_TEXT = 12
_LEAST_OF_BYTES = 40


def is_blob(text: str) -> bool:
    """Whether a text is base64 or hexadecimal digits rather than words.

    Base64 is certain if it decodes to printable UTF-8. If it decodes to other bytes, it must be
    long and have a digit, because a long word is valid base64, too.
    """
    token = "".join(text.split()) if "\n" in text else text.strip()
    if _HEX.fullmatch(token):
        return True
    if len(token) < _LEAST_OF_TEXT or not _BASE64.fullmatch(token):
        return False
    if token.lower() == token or token.upper() == token:
        return False
    digits = token.rstrip("=")
    padding = "=" * (-len(digits) % 4)
    try:
        altchars = b"-_" if set(token) & set("-_") else None
        content = base64.b64decode(digits + padding, altchars=altchars)
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
    """Whether an entity begins or ends inside a word, or with a blank.

    A border between characters of Chinese or Japanese is not inside a word.
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
    alike = [character for character in text if ord(character.lower()) in _LOOK_ALIKES]
    return [unicodedata.name(character) for character in alike]


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
