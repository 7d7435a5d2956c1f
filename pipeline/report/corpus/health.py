"""The health check of `vocab` and `preprocess`: figures, and warnings with the key to set."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from bert_tf.base.errors import InputError
from bert_tf.base.wording import quantity
from bert_tf.config.sections.data import PreprocessConfig, VocabConfig

# Share of the tokens; more means another language or casing than the vocabulary's.
MOST_UNKNOWN = 0.5
_WARN_UNKNOWN = 0.01
# Relative to the requested fraction of masked tokens.
_LEAST_OF_MASKED = 0.8

Counts = Mapping[str, Any]

# How figures are shown, in this order, by their name among the metrics of the manifest.
_SHOWN = {
    "reached_fraction": "{:.1%} of the tokens are in a record",
    "truncation_fraction": "{:.0%} of the examples are cut",
    "unknown_fraction": "{:.2%} [UNK]",
    "random_next_fraction": "{:.0%} random next sentences",
    "swapped_fraction": "{:.0%} swapped",
    "masked_fraction": "{:.1%} masked",
    "one_sentence_fraction": "{:.0%} of the documents have one sentence",
    "ideographic_fraction": "{:.0%} Chinese characters",
    "corpus_unknown_fraction": "{:.2%} of the words are [UNK]",
    "corpus_pieces_per_word": "{:.2f} tokens per word",
    "too_long_fraction": "{:.2%} of the words are too long",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Health:
    """The result of a health check.

    Attributes:
        figures: by name, rounded, for the manifest.
        line: all figures, for the user.
        warnings: one sentence for each figure that is off.
    """

    figures: dict[str, float]
    line: str
    warnings: list[str]


def examine(counts: Counts, config: PreprocessConfig | VocabConfig) -> Health:
    """Measure the result of a job.

    Args:
        counts: of the job, and the metrics of `vocab`.
        config: of the job.
    """
    if isinstance(config, VocabConfig):
        all_figures = dict(counts)
        if counts["words"]:
            all_figures["too_long_fraction"] = counts["words_too_long"] / counts["words"]
    else:
        all_figures = _preprocess_figures(counts, config)
    figures = {name: all_figures[name] for name in _SHOWN if name in all_figures}
    listed = ", ".join(_SHOWN[name].format(figure) for name, figure in figures.items())
    warnings: list[str | None] = []
    for name, figure in figures.items():
        if isinstance(config, VocabConfig):
            warnings.append(_vocab_advice(name, figure, config))
        else:
            warnings.append(_preprocess_advice(name, figure, config))
    return Health(
        figures={name: round(figure, 6) for name, figure in figures.items()},
        line=f"health: {listed}",
        warnings=[warning for warning in warnings if warning is not None],
    )


def refuse_unknown(unknown: int, tokens: int, config: PreprocessConfig, *, limit: float) -> None:
    """Raise InputError if too many tokens are [UNK].

    Args:
        unknown: number of them.
        tokens: number of all.
        config: names the vocabulary.
        limit: fraction of the tokens.
    """
    if tokens and unknown > limit * tokens:
        raise InputError(
            f"{config.vocab}: {unknown / tokens:.0%} of {quantity(tokens, 'token')} are [UNK], so "
            "the vocabulary does not fit this text; build one from this corpus with bert-pipeline "
            "vocab, or give one for its language with --vocab (and check --encoding)"
        )


def _preprocess_figures(counts: Counts, config: PreprocessConfig) -> dict[str, float]:
    tokens = counts["tokens"]
    examples = sum(counts["examples"].values())
    parts = {
        "reached_fraction": ("tokens_reached", tokens),
        "truncation_fraction": ("truncations", examples),
        "unknown_fraction": ("tokens_unknown", tokens),
        "random_next_fraction": ("random_next", examples),
        "swapped_fraction": ("swapped", examples),
        "masked_fraction": ("masked", counts["row_tokens"]),
    }
    if config.pair_task != "none":
        parts["one_sentence_fraction"] = ("documents_of_one_sentence", counts["documents"])
    if config.whole_word_mask:
        parts["ideographic_fraction"] = ("tokens_ideographic", tokens)
    return {
        name: counts[part] / whole
        for name, (part, whole) in parts.items()
        if whole and part in counts
    }


def _preprocess_advice(name: str, figure: float, config: PreprocessConfig) -> str | None:
    """Return the warning with the key to set, if a figure is out of its bounds; else None."""
    layout = f"preprocess.text_layout={config.text_layout}"
    sentences = f"{layout}, preprocess.sentence_splitter={config.sentence_splitter}"
    no_pairs = "--set preprocess.pair_task=none"
    match name:
        case "reached_fraction" if figure < 0.85:
            return (
                f"only {figure:.1%} of the tokens are in a record, the others are cut off or left "
                f"out; check where documents and sentences end ({sentences}), or raise "
                "--max-seq-length"
            )
        case "truncation_fraction" if figure > 0.98:
            return (
                f"{figure:.1%} of the examples are cut because their segments are too long; check "
                f"where sentences end ({sentences}), or raise --max-seq-length"
            )
        case "unknown_fraction" if figure > _WARN_UNKNOWN:
            return (
                f"{figure:.1%} of the tokens are [UNK]: the vocabulary lacks their characters; "
                "give one for this language with --vocab, or build one from this corpus with "
                "bert-pipeline vocab"
            )
        case "random_next_fraction" if figure == 0:
            return (
                "no example has a random second segment, so next-sentence prediction teaches "
                "nothing; give at least two different documents and a random_next_prob above 0, or "
                f"{no_pairs}"
            )
        case "random_next_fraction" if figure > 0.9:
            return (
                f"{figure:.0%} of the examples have a random second segment, so next-sentence "
                "prediction teaches nothing; without documents of two sentences or more, give "
                f"{no_pairs}"
            )
        case "swapped_fraction" if figure in (0, 1):
            return (
                "all examples have the same sentence order, which teaches nothing; give more "
                f"documents of two sentences or more, or {no_pairs}"
            )
        case "masked_fraction" if figure < _LEAST_OF_MASKED * config.masked_lm_prob:
            wanted = f"{config.masked_lm_prob:.1%}"
            return f"{figure:.1%} of the tokens are masked, not {wanted}: {_mask_limit(config)}"
        case "one_sentence_fraction" if figure > 0.5:
            return (
                f"{figure:.0%} of the documents have one sentence, so no next sentence; check "
                f"where documents end ({layout}), or give {no_pairs}"
            )
        case "ideographic_fraction" if figure > 0.5:
            return (
                f"--whole-word-mask does nothing for {figure:.0%} of the tokens: each Chinese "
                "character is a word to the tokenizer; --set preprocess.masking=ngram masks runs "
                "of characters"
            )
    return None


def _mask_limit(config: PreprocessConfig) -> str:
    """Say why fewer tokens are masked than was asked for."""
    if config.max_predictions_per_seq < config.wanted_predictions:
        return (
            f"--max-predictions-per-seq {config.max_predictions_per_seq} limits rows of "
            f"{config.max_seq_length} tokens; {config.wanted_predictions} are enough"
        )
    return (
        "words have more tokens than may be masked together; give --no-whole-word-mask, "
        "preprocess.masking=token or a vocabulary with more whole words"
    )


def _vocab_advice(name: str, figure: float, config: VocabConfig) -> str | None:
    """Return the warning with the key to set, if a figure is out of its bounds; else None."""
    match name:
        case "corpus_unknown_fraction" if figure > _WARN_UNKNOWN:
            return (
                f"{figure:.1%} of the words become [UNK]: their characters are not among the "
                f"vocab.limit_alphabet={config.limit_alphabet} most frequent; raise it (Chinese "
                "needs some thousands) and --vocab-size"
            )
        case "corpus_pieces_per_word" if figure > 5:
            return (
                f"a word takes {figure:.1f} tokens: split text without spaces between words (Thai, "
                "Lao, Khmer) into words first; for other text, raise --vocab-size "
                f"{config.vocab_size} or give more text"
            )
        case "too_long_fraction" if figure > 0.005:
            return (
                f"{figure:.1%} of the words have more than "
                f"vocab.max_word_length={config.max_word_length} characters and are not counted; "
                "split text without spaces between words (Thai, Lao, Khmer) into words first"
            )
    return None
