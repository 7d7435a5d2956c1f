"""Masked-LM targets: the tokens of a row to predict, and their replacements."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from bert_tf.base.compiled import numba
from bert_tf.base.kernels import combine_keys, next_below, next_unit, seed_key
from bert_tf.data.text.vocab_file import SPECIAL_TOKENS

# Numbers of the kinds of masking in compiled code.
_TOKEN = 0
_NGRAM = 1
_SPAN = 2
_MASKING_NUMBERS = {"token": _TOKEN, "ngram": _NGRAM, "span": _SPAN}
# Fractions of the targets that become [MASK], become a random token, and stay (Devlin et al. 2019,
# 3.1).
_REPLACEMENTS = (0.8, 0.1, 0.1)


@dataclasses.dataclass(frozen=True)
class MaskingRules:
    """Rules of masking, made from the vocabulary and the config by `masking_rules`.

    Attributes:
        masking: "token", "ngram" or "span", see `mask_rows`.
        max_ngram_size: words of the longest n-gram.
        by_words: whether the tokens of a word are masked together.
        mask_id: id of [MASK].
        never_masked: bool [vocabulary], True for [CLS], [SEP] and [PAD].
        begins_word: bool [vocabulary], False for tokens that continue a word.
        replacements: int32 [replacements], ids that a target may be replaced by: all except the
            special tokens.
        replacement_totals: int64 [replacements], running sums of their weights; empty if all weigh
            the same.
        predictions: int32 [row length + 1], number of targets of a row of each length.
        mask_fraction: fraction of the targets that become [MASK].
        changed_fraction: fraction of the targets that become [MASK] or a random token.
    """

    masking: str
    max_ngram_size: int
    by_words: bool
    mask_id: int
    never_masked: np.ndarray
    begins_word: np.ndarray
    replacements: np.ndarray
    replacement_totals: np.ndarray
    predictions: np.ndarray
    mask_fraction: float
    changed_fraction: float


def predictions_by_length(
    *, max_seq_length: int, max_predictions_per_seq: int, masked_lm_prob: float
) -> np.ndarray:
    """Return the number of targets of rows with 0, 1, … max_seq_length tokens: int32 [n + 1].

    min(max_predictions_per_seq, max(1, round(length x masked_lm_prob))), where the length includes
    special tokens, and halves are rounded to the even number, like Python does:

    | length | probability | maximum | targets |
    |--------|-------------|---------|---------|
    | 3      | 0.15        | 20      | 1       |
    | 30     | 0.15        | 20      | 4       |
    | 128    | 0.15        | 20      | 19      |
    | 128    | 0.3         | 20      | 20      |
    """
    rounded = np.rint(np.arange(max_seq_length + 1) * masked_lm_prob)
    return np.clip(rounded, 1, max_predictions_per_seq).astype(np.int32)


def masking_rules(
    vocab: list[str],
    *,
    max_seq_length: int,
    max_predictions_per_seq: int,
    masked_lm_prob: float,
    whole_word_mask: bool = False,
    masking: str = "token",
    max_ngram_size: int = 3,
    mask_replacements: Sequence[float] = _REPLACEMENTS,
    token_counts: np.ndarray | None = None,
) -> MaskingRules:
    """Return the rules for a vocabulary, which must have the five special tokens.

    Args:
        vocab: tokens in the order of their ids.
        max_seq_length: tokens of a row.
        max_predictions_per_seq: most targets of a row.
        masked_lm_prob: fraction of tokens that become targets.
        whole_word_mask: whether words are masked instead of tokens; n-grams and spans always
            consist of words.
        masking: "token", "ngram" or "span", see `mask_rows`.
        max_ngram_size: words of the longest n-gram.
        mask_replacements: fractions of the targets that become [MASK], become a random token, and
            stay. With [MASK] only, models of Wettig et al. 2023 ("Should You Mask 15% in Masked
            Language Modeling?") were as good or better after fine-tuning.
        token_counts: int64 [vocabulary], frequency of each token in the corpus, by which random
            replacements are drawn; None draws all alike.
    """
    specials = np.array([vocab.index(token) for token in SPECIAL_TOKENS])
    never_masked = np.zeros(len(vocab), np.bool_)
    never_masked[[vocab.index(token) for token in ("[PAD]", "[CLS]", "[SEP]")]] = True
    replacements = np.setdiff1d(np.arange(len(vocab), dtype=np.int32), specials)
    totals = np.zeros(0, np.int64)
    if token_counts is not None and token_counts[replacements].any():
        totals = np.cumsum(token_counts[replacements], dtype=np.int64)
    return MaskingRules(
        masking=masking,
        max_ngram_size=max_ngram_size,
        by_words=whole_word_mask or masking != "token",
        mask_id=vocab.index("[MASK]"),
        never_masked=never_masked,
        begins_word=np.array([not token.startswith("##") for token in vocab]),
        replacements=replacements,
        replacement_totals=totals,
        predictions=predictions_by_length(
            max_seq_length=max_seq_length,
            max_predictions_per_seq=max_predictions_per_seq,
            masked_lm_prob=masked_lm_prob,
        ),
        mask_fraction=float(mask_replacements[0]),
        changed_fraction=float(mask_replacements[0] + mask_replacements[1]),
    )


@dataclasses.dataclass(frozen=True)
class MaskedRows:
    """Rows with targets.

    Attributes:
        ids: int32 [rows, length], with the targets replaced.
        positions: int32 [rows, targets], positions of the targets in rising order, then zeros.
        target_ids: int32 [rows, targets], the original tokens there, then zeros.
        counts: int32 [rows], number of targets before the zeros.
    """

    ids: np.ndarray
    positions: np.ndarray
    target_ids: np.ndarray
    counts: np.ndarray


def mask_rows(
    ids: np.ndarray,
    lengths: np.ndarray,
    keys: np.ndarray,
    rules: MaskingRules,
    *,
    max_predictions_per_seq: int,
    word_starts: np.ndarray | None = None,
    targets: np.ndarray | None = None,
) -> MaskedRows:
    """Choose and hide targets in rows.

    Targets are chosen at random until the row has as many as `rules.predictions` asks for:
    - "token": single tokens, or words, see `choose_words`.
    - "ngram": runs of 1 to `max_ngram_size` words, see `choose_ngrams`.
    - "span": runs of 1 to 10 words, see `choose_spans`.

    A token that follows [CLS] or [SEP] begins a word. A target becomes [MASK] with probability 0.8,
    stays with 0.1 and becomes one of `rules.replacements` with 0.1, unless the rules have other
    probabilities (`mask_replacements`). With "token" each token is decided independently, with
    "ngram" all tokens of an n-gram together, and with "span" all tokens of adjacent spans together.

    Args:
        ids: int32 [rows, length], unmasked.
        lengths: int32 [rows], tokens of each row before its padding.
        keys: uint64 [rows]; all choices in a row follow from its key.
        rules: result of `masking_rules`.
        max_predictions_per_seq: width of the target arrays.
        word_starts: bool [rows, length], where words begin; None infers it from the vocabulary.
        targets: int32 [rows], number of targets of each row; None takes that of the rules.

    References: create_masked_lm_predictions in google-research/bert create_pretraining_data.py,
    whose random replacements may be special tokens; TF Model Garden for n-grams; Joshi et al. 2020
    (SpanBERT), section 3.1, and its fairseq/data/masking.py, which may cut the last word of a row's
    last span.
    """
    rows = len(ids)
    masked = MaskedRows(
        ids.copy(),
        np.zeros((rows, max_predictions_per_seq), np.int32),
        np.zeros((rows, max_predictions_per_seq), np.int32),
        np.zeros(rows, np.int32),
    )
    if not rules.by_words:
        begins = np.ones(ids.shape, np.bool_)
    else:
        begins = rules.begins_word[ids] if word_starts is None else word_starts
    _mask_rows(
        masked.ids,
        begins,
        lengths,
        combine_keys(keys, seed_key(0, "masks")),
        rules.predictions[lengths] if targets is None else targets,
        (rules.never_masked, rules.replacements, rules.replacement_totals),
        (np.int32(rules.mask_id), _MASKING_NUMBERS[rules.masking], rules.max_ngram_size),
        (rules.mask_fraction, rules.changed_fraction),
        masked.positions,
        masked.target_ids,
        masked.counts,
    )
    return masked


@numba.njit(cache=True, nogil=True)
def _mask_rows(
    ids,
    begins,
    lengths,
    keys,
    targets,
    tables,
    settings,
    fractions,
    positions,
    target_ids,
    counts,
):
    """Choose and hide targets in rows; see `mask_rows`.

    Args:
        ids: int32 [rows, length], targets are replaced.
        begins: bool [rows, length], where words begin.
        lengths: int32 [rows], tokens before the padding.
        keys: uint64 [rows], seeds of the random numbers.
        targets: int32 [rows], number of targets to choose.
        tables: `never_masked`, `replacements` and `replacement_totals` of `MaskingRules`.
        settings: id of [MASK], number of the way of masking, and words of the longest n-gram.
        fractions: `mask_fraction` and `changed_fraction` of `MaskingRules`.
        positions, target_ids, counts: arrays of `MaskedRows`, all 0, to fill.
    """
    never_masked, replacements, replacement_totals = tables
    mask_id, masking, max_ngram_size = settings
    mask_fraction, changed_fraction = fractions
    state = np.empty(1, np.uint64)
    width = ids.shape[1]
    starts = np.empty(width, np.int32)
    ends = np.empty(width, np.int32)
    group = np.zeros(width, np.int32)  # see `choose_words`; all 0 again after each row
    for row in range(ids.shape[0]):
        state[0] = keys[row]
        length = lengths[row]
        words = find_words(ids[row], begins[row], length, never_masked, starts, ends)
        num_targets = targets[row]
        if masking == _TOKEN:
            choose_words(starts, ends, words, num_targets, group, state)
        elif masking == _NGRAM:
            choose_ngrams(starts, ends, words, num_targets, max_ngram_size, group, state)
        else:
            choose_spans(starts, ends, words, num_targets, group, state)
        made = 0
        last = np.int32(0)
        draw = 0.0
        # Adjacent targets of the same group share one draw.
        for position in range(length):
            if group[position] != last or last == 0:
                last = group[position]
                if last == 0:
                    continue
                draw = next_unit(state)
            group[position] = 0
            positions[row, made] = position
            target_ids[row, made] = ids[row, position]
            made += 1
            if draw < mask_fraction:
                ids[row, position] = mask_id
            elif draw < changed_fraction:
                ids[row, position] = _random_token(replacements, replacement_totals, state)
        counts[row] = made


@numba.njit(cache=True, nogil=True)
def _random_token(replacements, totals, state):
    """Draw a replacement: all alike, or by the running sums of their weights."""
    if len(totals) == 0:
        return replacements[next_below(state, len(replacements))]
    return replacements[np.searchsorted(totals, next_below(state, totals[-1]), side="right")]


# Parameter and limit of the geometric distribution of a span's words, as in SpanBERT (mean 3.8).
_SPAN_P = 0.2
_MAX_SPAN_WORDS = 10


@numba.njit(cache=True, nogil=True)
def find_words(ids, begins, length, never_masked, starts, ends):
    """Find the words of a row.

    A token of `never_masked` belongs to no word, and the token after it begins one.

    Args:
        ids, begins: ids and word begins of the row, [row length].
        length: tokens before the padding.
        never_masked: bool [vocabulary].
        starts, ends: int32 [row length] to fill with the positions where words start, and after
            their ends.

    Returns:
        The number of words.
    """
    num_words = 0
    in_word = False
    for position in range(length):
        if never_masked[ids[position]]:
            in_word = False
        elif in_word and not begins[position]:
            ends[num_words - 1] = position + 1
        else:
            starts[num_words] = position
            ends[num_words] = position + 1
            num_words += 1
            in_word = True
    return num_words


@numba.njit(cache=True, nogil=True)
def choose_words(starts, ends, num_words, num_targets, group, state):
    """Mark random words of a row as targets (Devlin et al. 2019, with whole words as an option).

    Shuffles the words (Fisher-Yates, only as far as needed), and takes each word that fits into the
    remaining number of targets. A longer word is skipped, not cut. So a row never has more than
    `num_targets` targets, and has fewer only if no remaining word fits.

    Args:
        starts, ends: int32, result of `find_words`; shuffled.
        num_words: number of words.
        num_targets: tokens to mark.
        group: int32 [row length], 0 before. Targets get numbers above 0; adjacent targets with
            equal numbers will share a replacement, which no two tokens do here.
        state: uint64 [1], state of the random numbers.
    """
    marked = 0
    for i in range(num_words):
        if marked >= num_targets:
            return
        j = i + next_below(state, num_words - i)
        starts[i], starts[j] = starts[j], starts[i]
        ends[i], ends[j] = ends[j], ends[i]
        if marked + ends[i] - starts[i] <= num_targets:
            marked += ends[i] - starts[i]
            for position in range(starts[i], ends[i]):
                group[position] = position + 1


@numba.njit(cache=True, nogil=True)
def choose_ngrams(starts, ends, num_words, num_targets, max_size, group, state):
    """Mark random runs of words that do not overlap as targets.

    Repeatedly draws a length n with weight 1 / n, and then one of the n-grams of that length,
    without replacement. An n-gram is skipped if it has too many tokens for the remaining targets,
    or overlaps a marked one. A length is given up when its n-grams are used up or cannot fit. Runs
    never cross [CLS] or [SEP].

    The loop ends: each pass removes an n-gram or a length, or draws a length again.

    Args:
        starts, ends: int32, result of `find_words`.
        num_words: number of words.
        num_targets: tokens to mark.
        max_size: words of the longest n-gram.
        group: see `choose_words`; the tokens of an n-gram share a number, different n-grams do not.
        state: uint64 [1], state of the random numbers.

    Reference: `_masking_ngrams` in TF Model Garden's create_pretraining_data.py.
    """
    # `candidates[n - 1, : left[n - 1]]` are the first words of the n-grams not drawn yet.
    candidates = np.empty((max_size, num_words), np.int32)
    left = np.zeros(max_size, np.int64)
    run = 0  # adjacent words up to this one
    for word in range(num_words):
        if word == 0 or starts[word] != ends[word - 1]:
            run = 0
        run += 1
        for size in range(1, min(run, max_size) + 1):
            candidates[size - 1, left[size - 1]] = word - size + 1
            left[size - 1] += 1
    weights = 0.0
    for size in range(1, max_size + 1):
        weights += 1.0 / size
    marked = 0
    number = 0
    while marked < num_targets and left.any():
        size = 1
        draw = next_unit(state) * weights - 1.0
        while draw >= 0.0 and size < max_size:
            size += 1
            draw -= 1.0 / size
        if marked + size > num_targets:  # every n-gram of that size has too many tokens
            left[size - 1] = 0
        if left[size - 1] == 0:
            continue
        left[size - 1] -= 1
        i = next_below(state, left[size - 1] + 1)
        first = candidates[size - 1, i]
        candidates[size - 1, i] = candidates[size - 1, left[size - 1]]
        begin = starts[first]
        end = ends[first + size - 1]
        if marked + end - begin > num_targets or group[begin:end].any():
            continue
        number += 1
        group[begin:end] = number
        marked += end - begin


@numba.njit(cache=True, nogil=True)
def choose_spans(starts, ends, num_words, num_targets, group, state):
    """Mark random runs of 1 to 10 words as targets.

    Shuffles the tokens of the row (Fisher-Yates, only as far as needed). The word of each one is
    the anchor of a span, so long words are anchors more often. The number of words is geometric
    with p = 0.2, truncated at 10. Words that are targets already are skipped. The span ends before
    [SEP], and before a word with too many tokens for the remaining targets, so no word is cut.

    Arguments are those of `choose_words`, which describes `group`; all targets have the same
    number, so adjacent spans share a replacement.

    Reference: Joshi et al. 2020 (SpanBERT), section 3.1.
    """
    anchors = np.empty(len(group), np.int32)  # the word of every token
    tokens = 0
    for word in range(num_words):
        for _ in range(starts[word], ends[word]):
            anchors[tokens] = word
            tokens += 1
    # Probability of at most `_MAX_SPAN_WORDS`: drawing below it truncates the distribution there.
    longest = 1.0 - (1.0 - _SPAN_P) ** _MAX_SPAN_WORDS
    marked = 0
    for i in range(tokens):
        if marked >= num_targets:
            return
        j = i + next_below(state, tokens - i)
        anchors[i], anchors[j] = anchors[j], anchors[i]
        first = anchors[i]
        if group[starts[first]] != 0:
            continue
        # The inverse of the distribution function.
        draw = np.log(1.0 - next_unit(state) * longest) / np.log(1.0 - _SPAN_P)
        words = min(1 + np.int64(draw), _MAX_SPAN_WORDS)
        for word in range(first, min(first + words, num_words)):
            if word > first and starts[word] != ends[word - 1]:
                break
            if group[starts[word]] != 0:
                continue
            if marked + ends[word] - starts[word] > num_targets:
                break
            group[starts[word] : ends[word]] = 1
            marked += ends[word] - starts[word]
