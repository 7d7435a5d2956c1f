"""The keys of masking, which `preprocess` and `train` share."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Annotated, Any

from bert_tf.config.section import Section, option
from bert_tf.config.values import Bounds

MASKINGS = ("token", "ngram", "span")
NgramSize = Annotated[int, Bounds(1, 100)]
# Devlin et al. 2019, section 3.1.
DEFAULT_REPLACEMENTS = (0.8, 0.1, 0.1)
SUM_TOLERANCE = 1e-6  # of fractions that add up to 1: for thirds with seven decimals
# Help, default and choices of each key. `{}` in the help is where `masking_option` says to which
# records the key applies.
_MASKING: dict[str, tuple[str, Any, tuple[str, ...] | None]] = {
    "masking": (
        "unit of masking{}: token (words with whole_word_mask), ngram or span (of words)",
        "token",
        MASKINGS,
    ),
    "masked_lm_prob": ("fraction of tokens to mask{}", 0.15, None),
    "whole_word_mask": ("mask all tokens of a word together{}", False, None),
    "max_ngram_size": ("maximum words per n-gram of masking=ngram", 3, None),
    "mask_replacements": (
        "fractions of the masked tokens{} that become [MASK], become a random token, and stay; "
        "1,0,0 is [MASK] only",
        DEFAULT_REPLACEMENTS,
        None,
    ),
    "random_tokens": (
        "distribution of random replacements of masked tokens{}: uniform, or unigram (by "
        "frequency in the corpus)",
        "uniform",
        ("uniform", "unigram"),
    ),
}


def masking_option(key: str, *, where: str = "", also: str = "", **changes: Any) -> Any:
    """Declare a key of masking.

    Args:
        key: name of the key.
        where: the tokens or records to which it applies, within its help; "" for all.
        also: end of its help.
        **changes: arguments of `option` in place of the common ones.
    """
    doc, default, choices = _MASKING[key]
    declared = {"advanced": True, "choices": choices, **changes}
    return option(doc.format(where) + also, default, **declared)


def masking_settings(config: Section) -> dict[str, Any]:
    """Return the arguments of `masking_rules` that are config keys."""
    return {key: getattr(config, key) for key in _MASKING if key != "random_tokens"}


def changed_masking(config: Section) -> list[str]:
    """Return the keys of masking whose values differ from their defaults."""
    fields = [field for field in dataclasses.fields(config) if field.name in _MASKING]
    return [field.name for field in fields if getattr(config, field.name) != field.default]


def replacement_faults(config: Section) -> Iterator[str]:
    """Yield the faults of the key `mask_replacements`."""
    fractions = config.mask_replacements  # type: ignore[attr-defined]
    if len(fractions) != len(DEFAULT_REPLACEMENTS) or abs(sum(fractions) - 1) > SUM_TOLERANCE:
        listed = ", ".join(f"{fraction:g}" for fraction in fractions)
        yield (
            f"mask_replacements: is [{listed}]; give three fractions with the sum 1: of the masked "
            "tokens that become [MASK], become a random token, and stay"
        )
