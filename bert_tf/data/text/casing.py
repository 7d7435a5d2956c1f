"""Whether a vocabulary was made from text with its capital letters, by its entries."""

from __future__ import annotations

import dataclasses
import re
import unicodedata
from collections.abc import Sequence

from bert_tf.base.wording import quantity
from bert_tf.data.text.vocab_file import CONTINUATION

# [MASK] and own tokens in brackets ([EMAIL], <URL>) are no words of a text.
_BRACKETED = re.compile(r"\[.+\]|<.+>")
# Of entries with letters. Names and acronyms that were added to a lower-cased vocabulary are fewer.
_MANY_CAPITALS = 0.1
_NAMED = 3


@dataclasses.dataclass(frozen=True, kw_only=True)
class Casing:
    """What a vocabulary's entries say of the text it was made from.

    Attributes:
        is_cased: whether texts keep their capital letters.
        has_accents: whether entries hold marks that BERT's lower-casing strips, so that no
            lower-cased text has them.
        reason: the evidence for `is_cased`, for the user.
    """

    is_cased: bool
    has_accents: bool
    reason: str


def vocabulary_casing(vocab: Sequence[str]) -> Casing:
    """Decides whether a vocabulary is cased.

    It is where at least a tenth of the entries with letters hold a capital, or where capital
    letters are entries of their own as small ones are: every letter of the text that a vocabulary
    was learned from is one. A few other entries with capitals were added to a lower-cased one.

    | entries                                   | is_cased |
    |-------------------------------------------|----------|
    | a b ##a ##b house man COVID [EMAIL]       | False    |
    | a b ##a ##b A B ##A ##B house Man         | True     |
    """
    pieces = [piece for piece in vocab if not _BRACKETED.fullmatch(piece)]
    with_letters = [piece for piece in pieces if piece.lower() != piece.upper()]
    capitals = [piece for piece in with_letters if piece != piece.lower()]
    letters = {piece.removeprefix(CONTINUATION) for piece in with_letters}
    large = sum(len(letter) == 1 and letter != letter.lower() for letter in letters)
    small = sum(len(letter) == 1 and letter == letter.lower() for letter in letters)
    is_cased = bool(capitals) and (
        len(capitals) >= _MANY_CAPITALS * len(with_letters) or 2 * large >= max(small, 1)
    )
    named = ", ".join(capitals[:_NAMED]) + (", …" if len(capitals) > _NAMED else "")
    verb = "holds" if len(capitals) == 1 else "hold"
    return Casing(
        is_cased=is_cased,
        has_accents=any(map(_has_accent, pieces)),
        reason=(
            f"{len(capitals):,} of {quantity(len(with_letters), 'entry')} with letters {verb} "
            "capitals"
        )
        + (f": {named}" if capitals and not is_cased else ""),
    )


def _has_accent(piece: str) -> bool:
    return not piece.isascii() and any(
        unicodedata.category(part) == "Mn" for part in unicodedata.normalize("NFD", piece)
    )
