"""How letters are lower-cased before a vocabulary is looked up."""

from __future__ import annotations

from typing import Literal, TypeAlias

# False keeps letters as they are, True lower-cases them and strips their accents, as BERT does, and
# KEEP_ACCENTS lower-cases them only. The first of these is false, the others are true.
Lowercase: TypeAlias = bool | Literal["keep-accents"]
KEEP_ACCENTS: Literal["keep-accents"] = "keep-accents"


def lowercase_of(is_lowercase: bool | None, keep_accents: bool | None) -> Lowercase:
    """The value of two settings; lower-casing is the default."""
    return KEEP_ACCENTS if keep_accents else is_lowercase is not False
