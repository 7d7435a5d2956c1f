"""The health check of `vocab` and `preprocess`: figures, and warnings with the key to set."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bert_tf.base.errors import InputError
from bert_tf.base.wording import quantity
from bert_tf.config.sections.data import PreprocessConfig, VocabConfig

# Of the tokens; more are another language or casing than the vocabulary's.
MOST_UNKNOWN = 0.5
_WARN_UNKNOWN = 0.01
# Of the fraction of masked tokens that was asked for.
_LEAST_OF_MASKED = 0.8

Counts = Mapping[str, Any]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Check:
    name: str  # of the figure among the metrics of the manifest
    shown: str  # the figure in the line for the user, a format of one number
    # from the counts and the config; None where there is nothing to measure
    figure: Callable[[Counts, Any], float | None]
    is_off: Callable[[float, Any], bool]  # whether a figure is out of its bounds, by the config
    advice: str  # the warning, a format of the figure (`{0}`) and of the config (`{config.key}`)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Health:
    figures: dict[str, float]  # by name, rounded, for the manifest
    line: str  # all figures, for the user
    warnings: list[str]  # one sentence for each figure that is off


def examine(
    checks: Sequence[Check], counts: Counts, config: PreprocessConfig | VocabConfig
) -> Health:
    figures: dict[str, float] = {}
    shown, warnings = [], []
    for check in checks:
        figure = check.figure(counts, config)
        if figure is None:
            continue
        if check.name not in figures:
            shown.append(check.shown.format(figure))
        figures[check.name] = round(figure, 6)
        if check.is_off(figure, config):
            warnings.append(check.advice.format(figure, config=config))
    return Health(figures=figures, line=f"health: {', '.join(shown)}", warnings=warnings)


def refuse_unknown(unknown: int, tokens: int, config: PreprocessConfig, *, limit: float) -> None:
    """Raises InputError if more than `limit` (a fraction) of the tokens is [UNK]."""
    if tokens and unknown > limit * tokens:
        raise InputError(
            f"{config.vocab}: {unknown / tokens:.0%} of {quantity(tokens, 'token')} are [UNK], so "
            "the vocabulary is not for this text; make one of this corpus with bert-pipeline "
            "vocab, or give one of its language with --vocab (and check --encoding)"
        )


def _of_all(part: str, whole: str) -> Callable[[Counts, Any], float | None]:
    return lambda counts, _: counts[part] / counts[whole] if counts.get(whole) else None


def _of_examples(name: str) -> Callable[[Counts, Any], float | None]:
    """A count as a fraction of the examples; None where the recipe has no such count."""

    def figure(counts: Counts, _: Any) -> float | None:
        examples = sum(counts["examples"].values())
        return counts[name] / examples if examples and name in counts else None

    return figure


def _one_sentence(counts: Counts, config: PreprocessConfig) -> float | None:
    if config.pair_task == "none":  # which has no pairs to lack
        return None
    return counts["documents_of_one_sentence"] / max(counts["documents"], 1)


def _ideographic(counts: Counts, config: PreprocessConfig) -> float | None:
    if not config.whole_word_mask or not counts["tokens"]:
        return None
    return counts["tokens_ideographic"] / counts["tokens"]


def _metric(name: str) -> Callable[[Counts, Any], float | None]:
    return lambda counts, _: counts.get(name)


def _is_too_few(masked: float, config: PreprocessConfig) -> bool:
    return masked < _LEAST_OF_MASKED * config.masked_lm_prob


def _is_limited(config: PreprocessConfig) -> bool:
    return config.max_predictions_per_seq < config.wanted_predictions


_MASKED: dict[str, Any] = {
    "name": "masked_fraction",
    "shown": "{:.1%} masked",
    "figure": _of_all("masked", "row_tokens"),
}
_RANDOM_NEXT: dict[str, Any] = {
    "name": "random_next_fraction",
    "shown": "{:.0%} random next sentences",
    "figure": _of_examples("random_next"),
}

PREPROCESS_CHECKS = (
    Check(
        name="reached_fraction",
        shown="{:.1%} of the tokens are in a record",
        figure=_of_all("tokens_reached", "tokens"),
        is_off=lambda figure, _: figure < 0.85,
        advice="only {0:.1%} of the tokens are in a record, the others are cut off or left out; "
        "check where documents and sentences end (preprocess.text_layout={config.text_layout}, "
        "preprocess.sentence_splitter={config.sentence_splitter}), or raise --max-seq-length",
    ),
    Check(
        name="truncation_fraction",
        shown="{:.0%} of the examples are cut",
        figure=_of_examples("truncations"),
        is_off=lambda figure, _: figure > 0.98,
        advice="{0:.1%} of the examples are cut because their segments are too long; check where "
        "sentences end (preprocess.text_layout={config.text_layout}, "
        "preprocess.sentence_splitter={config.sentence_splitter}), or raise --max-seq-length",
    ),
    Check(
        name="unknown_fraction",
        shown="{:.2%} [UNK]",
        figure=_of_all("tokens_unknown", "tokens"),
        is_off=lambda figure, _: figure > _WARN_UNKNOWN,
        advice="{0:.1%} of the tokens are [UNK]: the vocabulary lacks their characters; give one "
        "of this language with --vocab, or make one of this corpus with bert-pipeline vocab",
    ),
    Check(
        **_RANDOM_NEXT,
        is_off=lambda figure, _: figure == 0,
        advice="no example has a random second segment, so next-sentence prediction teaches "
        "nothing; that takes at least two different documents and random_next_prob above 0, else "
        "--set preprocess.pair_task=none",
    ),
    Check(
        **_RANDOM_NEXT,
        is_off=lambda figure, _: figure > 0.9,
        advice="{0:.0%} of the examples have a random second segment, so next-sentence prediction "
        "teaches nothing; without documents of two sentences or more, give "
        "--set preprocess.pair_task=none",
    ),
    Check(
        name="swapped_fraction",
        shown="{:.0%} swapped",
        figure=_of_examples("swapped"),
        is_off=lambda figure, _: figure in (0, 1),
        advice="all examples have the same sentence order, which teaches nothing; that takes more "
        "documents of two sentences or more, else --set preprocess.pair_task=none",
    ),
    Check(
        **_MASKED,
        is_off=lambda figure, config: _is_too_few(figure, config) and _is_limited(config),
        advice="{0:.1%} of the tokens are masked, not {config.masked_lm_prob:.1%}: "
        "--max-predictions-per-seq {config.max_predictions_per_seq} limits rows of "
        "{config.max_seq_length} tokens; {config.wanted_predictions} would do",
    ),
    Check(
        **_MASKED,
        is_off=lambda figure, config: _is_too_few(figure, config) and not _is_limited(config),
        advice="{0:.1%} of the tokens are masked, not {config.masked_lm_prob:.1%}: words have more "
        "tokens than may be masked together; give --no-whole-word-mask, preprocess.masking=token "
        "or a vocabulary with more whole words",
    ),
    Check(
        name="one_sentence_fraction",
        shown="{:.0%} of the documents have one sentence",
        figure=_one_sentence,
        is_off=lambda figure, _: figure > 0.5,
        advice="{0:.0%} of the documents have one sentence, which has no next one; check where "
        "documents end (preprocess.text_layout={config.text_layout}), else give "
        "--set preprocess.pair_task=none",
    ),
    Check(
        name="ideographic_fraction",
        shown="{:.0%} Chinese characters",
        figure=_ideographic,
        is_off=lambda figure, _: figure > 0.5,
        advice="--whole-word-mask does nothing for {0:.0%} of the tokens: each Chinese character "
        "is a word to the tokenizer; --set preprocess.masking=ngram masks runs of characters",
    ),
)
VOCAB_CHECKS = (
    Check(
        name="corpus_unknown_fraction",
        shown="{:.2%} of the words are [UNK]",
        figure=_metric("corpus_unknown_fraction"),
        is_off=lambda figure, _: figure > _WARN_UNKNOWN,
        advice="{0:.1%} of the words become [UNK]: their characters are not among the "
        "vocab.limit_alphabet={config.limit_alphabet} most frequent; raise it (Chinese needs some "
        "thousands) and --vocab-size",
    ),
    Check(
        name="corpus_pieces_per_word",
        shown="{:.2f} tokens per word",
        figure=_metric("corpus_pieces_per_word"),
        is_off=lambda figure, _: figure > 5,
        advice="a word takes {0:.1f} tokens: text that does not separate words (Thai, Lao, Khmer) "
        "has to be split into words first; other text needs more than --vocab-size "
        "{config.vocab_size}, or more of it",
    ),
    Check(
        name="too_long_fraction",
        shown="{:.2%} of the words are too long",
        figure=_of_all("words_too_long", "words"),
        is_off=lambda figure, _: figure > 0.005,
        advice="{0:.1%} of the words have more than vocab.max_word_length={config.max_word_length} "
        "characters and are not counted; text that does not separate words (Thai, Lao, Khmer) has "
        "to be split into words first",
    ),
)
