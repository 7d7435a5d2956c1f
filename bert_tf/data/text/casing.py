"""Lower-casing and accents, the casing of vocabularies, and Unicode normal forms."""

from __future__ import annotations

import dataclasses
import functools
import re
import unicodedata
from collections.abc import Sequence
from typing import Literal, TypeAlias

from bert_tf.base.wording import quantity
from bert_tf.data.text.vocab_file import CONTINUATION

# Change of text before tokenization: False keeps letters as they are, True lower-cases them and
# strips their accents, like BERT does, and KEEP_ACCENTS only lower-cases them. As conditions, the
# first is false and the others are true.
Lowercase: TypeAlias = bool | Literal["keep-accents"]
KEEP_ACCENTS: Literal["keep-accents"] = "keep-accents"


def lowercase_of(is_lowercase: bool | None, keep_accents: bool | None) -> Lowercase:
    """Return the setting for the two keys of files; None stands for a missing key."""
    return KEEP_ACCENTS if keep_accents else is_lowercase is not False


# [MASK] and users' own tokens in brackets ([EMAIL], <URL>) are not words of a text.
_BRACKETED = re.compile(r"\[.+\]|<.+>")
# A vocabulary is cased if this fraction of its entries with letters has capitals. A lower-cased
# vocabulary has fewer, even with names and acronyms added to it.
_MANY_CAPITALS = 0.1
# It is also cased if one of so many single letters is a capital: a small vocabulary of cased text
# has all letters of its text as entries.
_LETTERS_PER_CAPITAL = 3
_NAMED = 3  # entries named in the reason


@dataclasses.dataclass(frozen=True, kw_only=True)
class Casing:
    """Casing of a vocabulary, judged by its entries.

    Attributes:
        is_cased: whether texts keep their capital letters.
        has_accents: whether entries contain marks that lower-casing strips.
        reason: the evidence for `is_cased`, for the user.
    """

    is_cased: bool
    has_accents: bool
    reason: str


def vocabulary_casing(vocab: Sequence[str]) -> Casing:
    """Decide whether a vocabulary is cased.

    It is cased if at least a tenth of the entries with letters contain a capital, or if at least a
    third of the single letters are capitals: a vocabulary has all letters of the text that it was
    learned from.
    """
    pieces = [piece for piece in vocab if not _BRACKETED.fullmatch(piece)]
    with_letters = [piece for piece in pieces if piece.lower() != piece.upper()]
    capitals = [piece for piece in with_letters if piece != piece.lower()]
    without_prefix = {piece.removeprefix(CONTINUATION) for piece in with_letters}
    letters = {piece for piece in without_prefix if len(piece) == 1}
    capital_letters = sum(letter != letter.lower() for letter in letters)
    has_many = len(capitals) >= _MANY_CAPITALS * len(with_letters)
    has_letters = _LETTERS_PER_CAPITAL * capital_letters >= max(len(letters), 1)
    is_cased = bool(capitals) and (has_many or has_letters)
    verb = "holds" if len(capitals) == 1 else "hold"
    entries = quantity(len(with_letters), "entry")
    reason = f"{len(capitals):,} of {entries} with letters {verb} capitals"
    if capitals and not is_cased:
        reason += f": {', '.join(capitals[:_NAMED])}"
        if len(capitals) > _NAMED:
            reason += ", …"
    return Casing(is_cased=is_cased, has_accents=any(map(_has_accent, pieces)), reason=reason)


def _has_accent(piece: str) -> bool:
    return not piece.isascii() and any(
        unicodedata.category(part) == "Mn" for part in unicodedata.normalize("NFD", piece)
    )


# The longest run of marks that Python may sort itself. No script has letters with more marks
# (UAX 15's Stream-Safe Text Format allows 30).
_LONGEST_RUN = 64


def normalize(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """Return the same as `unicodedata.normalize`, but in linear time.

    Python sorts the marks after a letter by insertion, so a megabyte of two alternating marks takes
    hours. Here, long runs of marks are sorted first.
    """
    if not text.isascii():
        text = _long_runs().sub(_in_order, text)
    return unicodedata.normalize(form, text)


@functools.cache
def _long_runs() -> re.Pattern[str]:
    """Return a pattern for long runs of characters that are, or consist of, marks."""
    marks = [
        chr(code_point)
        for code_point in range(0x20000)  # ideographs and private use follow
        if all(map(unicodedata.combining, unicodedata.normalize("NFD", chr(code_point))))
    ]
    return re.compile(f"[{re.escape(''.join(marks))}]{{{_LONGEST_RUN},}}+")


def _in_order(run: re.Match[str]) -> str:
    """Return a run of marks decomposed and in canonical order, by combining class."""
    decomposed = "".join(unicodedata.normalize("NFD", mark) for mark in run[0])
    return "".join(sorted(decomposed, key=unicodedata.combining))
