"""Lower-casing and accents, the casing of vocabularies, and normal forms."""

from __future__ import annotations

import dataclasses
import functools
import re
import unicodedata
from collections.abc import Sequence
from typing import Literal, TypeAlias

from bert_tf.base.wording import quantity
from bert_tf.data.text.vocab_file import CONTINUATION

# False keeps letters as they are, True lower-cases them and strips their accents, as BERT does, and
# KEEP_ACCENTS lower-cases them only. The first of these is false, the others are true.
Lowercase: TypeAlias = bool | Literal["keep-accents"]
KEEP_ACCENTS: Literal["keep-accents"] = "keep-accents"


def lowercase_of(is_lowercase: bool | None, keep_accents: bool | None) -> Lowercase:
    return KEEP_ACCENTS if keep_accents else is_lowercase is not False


# [MASK] and own tokens in brackets ([EMAIL], <URL>) are no words of a text.
_BRACKETED = re.compile(r"\[.+\]|<.+>")
# Of entries with letters. Names and acronyms that were added to a lower-cased vocabulary are fewer.
_MANY_CAPITALS = 0.1
_NAMED = 3


@dataclasses.dataclass(frozen=True, kw_only=True)
class Casing:
    is_cased: bool  # whether texts keep their capital letters
    has_accents: bool  # whether entries hold marks that lower-casing strips
    reason: str  # the evidence for `is_cased`, for the user


def vocabulary_casing(vocab: Sequence[str]) -> Casing:
    """Decide whether a vocabulary is cased: at least a tenth of the entries with letters hold a
    capital, or capital letters are entries, as are all letters of the text it was learned from.
    """
    pieces = [piece for piece in vocab if not _BRACKETED.fullmatch(piece)]
    with_letters = [piece for piece in pieces if piece.lower() != piece.upper()]
    capitals = [piece for piece in with_letters if piece != piece.lower()]
    letters = {each for piece in with_letters if len(each := piece.removeprefix(CONTINUATION)) == 1}
    large = sum(letter != letter.lower() for letter in letters)
    is_cased = bool(capitals) and (
        len(capitals) >= _MANY_CAPITALS * len(with_letters) or 3 * large >= max(len(letters), 1)
    )
    named = ", ".join(capitals[:_NAMED]) + (", …" if len(capitals) > _NAMED else "")
    verb = "holds" if len(capitals) == 1 else "hold"
    return Casing(
        is_cased=is_cased,
        has_accents=any(map(_has_accent, pieces)),
        reason=f"{len(capitals):,} of {quantity(len(with_letters), 'entry')} with letters {verb} "
        "capitals" + (f": {named}" if capitals and not is_cased else ""),
    )


def _has_accent(piece: str) -> bool:
    return not piece.isascii() and any(
        unicodedata.category(part) == "Mn" for part in unicodedata.normalize("NFD", piece)
    )


# Runs that Python may sort itself; no script has letters with more marks (UAX 15's Stream-Safe Text
# Format allows 30).
_LONGEST_RUN = 64


def normalize(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """Same as `unicodedata.normalize`, in linear time.

    Python sorts the marks after a letter by insertion: a megabyte of two marks takes hours.
    """
    if not text.isascii():
        text = _long_runs().sub(_in_order, text)
    return unicodedata.normalize(form, text)


@functools.cache
def _long_runs() -> re.Pattern[str]:
    """Runs of characters that are, or consist of, marks with a combining class."""
    marks = [
        chr(code_point)
        for code_point in range(0x20000)  # ideographs and private use follow
        if all(map(unicodedata.combining, unicodedata.normalize("NFD", chr(code_point))))
    ]
    return re.compile(f"[{re.escape(''.join(marks))}]{{{_LONGEST_RUN},}}+")


def _in_order(run: re.Match[str]) -> str:
    decomposed = "".join(unicodedata.normalize("NFD", mark) for mark in run[0])
    return "".join(sorted(decomposed, key=unicodedata.combining))
