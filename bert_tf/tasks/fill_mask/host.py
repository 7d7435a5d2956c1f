"""Candidates for masks from logits, in NumPy, for engines without TensorFlow."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bert_tf.base.arrays import flat_ranges, offsets_of
from bert_tf.data.rows.candidate_words import WordGroup, group_words, most_rows
from bert_tf.data.rows.encoded_rows import EncodedRows
from bert_tf.data.rows.host_rows import between_specials
from bert_tf.data.text.host_wordpiece import Tokenizer, Tokens
from bert_tf.data.text.vocab_file import CONTINUATION, SPECIALS_OF_TEXT
from bert_tf.serving.signatures import LOST_MASKS, MOST_CANDIDATE_BYTES, MOST_MASKS
from bert_tf.tasks.base.declaration import ServedTaskDeclaration
from bert_tf.tasks.base.host_task import HostRows, HostTask, kept_if_set
from bert_tf.tasks.base.prediction_rows import rounded_probabilities
from bert_tf.tasks.fill_mask.declaration import FILL_MASK, MASK

_BLANKS = " \t\n\f\r"
_POSITIONS = "masked_lm_positions"  # input of the graph, see `onnx_model`
_NO_WORD = -1.0  # score of missing words, if a group has fewer than `top_k`
# Joins the text before a mask and a token or word.
Join = Callable[[str, str], str]


class _Masks(NamedTuple):
    """The masks of all texts.

    Attributes:
        parts: the text before, between and after the masks, of each text.
        owners: int64 [predicted masks], the text of each, ascending.
        names: entries of the vocabulary, or the words to choose from.
        groups: words to choose from, by their number of tokens; [] for the vocabulary. Every mask
            has a sequence for each group.
    """

    parts: list[list[str]]
    owners: np.ndarray
    names: Sequence[str]
    groups: list[WordGroup]


@dataclasses.dataclass(frozen=True, kw_only=True)
class FillMaskHost(HostTask):
    """The task around its graph; see `MaskFiller` for the predictions.

    Each mask is a sequence of its own: the text, or where it is too long, the part with the mask in
    the middle. So the candidates of a mask depend on the other masks only through their [MASK]
    tokens.
    """

    declaration: ClassVar[ServedTaskDeclaration] = FILL_MASK

    top_k: int
    candidates: tuple[str, ...] = kept_if_set(())

    def encode(self, tokenizer: Tokenizer, columns: Mapping[str, Sequence[Any]]) -> HostRows:
        parts = [text.split(MASK) for text in columns["text"]]
        tokens, masks, owners = _masked_tokens(tokenizer, parts)
        groups = group_words(self.candidates, tokenizer) if self.candidates else []
        widths = [group.length for group in groups] or [1]
        capacity = self.max_seq_length - SPECIALS_OF_TEXT
        # A word of n tokens is scored in a sequence with n masks in place of the one. So each mask
        # has a sequence for each group of words, in which `width` masks replace it.
        width = np.tile(widths, len(owners))
        of_text = np.repeat(owners, len(widths))
        starts = tokens.offsets[:-1][of_text]
        lengths = np.diff(tokens.offsets)[of_text] + width - 1
        positions = np.repeat(masks, len(widths)) - starts
        # A long text is cut to the tokens around the masks. Near an end of the text, the window
        # ends with the text.
        begins = np.minimum(positions - (capacity - width + 1) // 2, lengths - capacity)
        begins = np.maximum(begins, 0)
        kept = np.minimum(lengths, capacity)
        before = positions - begins
        ids = np.append(tokens.ids, np.full(max(widths), tokenizer.mask_id, np.int32))
        # A sequence is joined from three ranges of `ids`: before the mask, masks, after the mask.
        parts_of_rows = flat_ranges(
            np.stack(
                [starts + begins, np.full_like(starts, len(tokens.ids)), starts + positions + 1],
                axis=1,
            ).ravel(),
            np.stack([before, width, kept - before - width], axis=1).ravel(),
        )
        offsets = offsets_of(kept + 2)
        steps = np.minimum(np.arange(max(widths)), width[:, None] - 1)
        return HostRows(
            sequences=EncodedRows(
                ids=between_specials(ids[parts_of_rows], offsets, tokenizer),
                offsets=offsets,
                second_starts=np.diff(offsets).astype(np.int32),
            ),
            inputs={_POSITIONS: before[:, None] + 1 + steps},
            details=_Masks(parts, owners, self.candidates or tokenizer.vocab, groups),
            max_rows=most_rows(max(widths), len(tokenizer.vocab)) if groups else None,
        )

    def reduce(
        self, rows: HostRows, chosen: np.ndarray, outputs: dict[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        if self.candidates:
            return self._best_words(rows.details.groups, chosen, outputs["logits"])
        logits = outputs["logits"][:, 0]
        # Differences from the largest keep the exponentials finite.
        above = logits - logits.max(axis=1, keepdims=True)
        totals = np.exp(above).sum(axis=1, keepdims=True)
        best = _best_entries(above, self.top_k)
        best_logits = np.take_along_axis(above, best, axis=1)
        order = np.argsort(-best_logits, axis=1, kind="stable")
        return {
            "tokens": np.take_along_axis(best, order, axis=1),
            "scores": np.exp(np.take_along_axis(best_logits, order, axis=1)) / totals,
        }

    def _best_words(
        self, groups: Sequence[WordGroup], chosen: np.ndarray, logits: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Keep the best words of the group of each sequence; missing ones have score -1.

        Args:
            groups: the words, by their number of tokens.
            chosen: int [n], numbers of the sequences.
            logits: float [n, most tokens of a word, vocabulary].
        """
        shape = (len(chosen), self.top_k)
        tokens = np.zeros(shape, np.int64)
        scores = np.full(shape, _NO_WORD, np.float32)
        for place, group in enumerate(groups):
            rows = np.flatnonzero(chosen % len(groups) == place)
            of_group = logits[rows, : group.length]
            above = of_group - of_group.max(axis=2, keepdims=True)
            norms = np.log(np.exp(above).sum(axis=2))
            by_token = above[:, np.arange(group.length), group.tokens] - norms[:, None]
            products = np.exp(by_token.sum(axis=2))
            number = min(self.top_k, len(group.numbers))
            order = np.argsort(-products, axis=1, kind="stable")[:, :number]
            tokens[rows, :number] = group.numbers[order]
            scores[rows, :number] = np.take_along_axis(products, order, axis=1)
        return {"tokens": tokens, "scores": scores}

    def _merged(self, reduced: dict[str, np.ndarray], groups: int) -> dict[str, np.ndarray]:
        """Merge the best words of all groups of each mask."""
        tokens = reduced["tokens"].reshape(-1, groups * self.top_k)
        scores = reduced["scores"].reshape(-1, groups * self.top_k)
        order = np.argsort(-scores, axis=1, kind="stable")[:, : self.top_k]
        return {
            "tokens": np.take_along_axis(tokens, order, axis=1),
            "scores": np.take_along_axis(scores, order, axis=1),
        }

    def predict(
        self, rows: HostRows, columns: Mapping[str, Sequence[Any]], reduced: dict[str, np.ndarray]
    ) -> dict[str, Any]:
        parts, owners, vocab, groups = rows.details
        if groups:
            reduced = self._merged(reduced, len(groups))
        tokens = reduced["tokens"].tolist()
        scores = rounded_probabilities(reduced["scores"])
        products = np.ones(len(parts), np.float32)
        np.multiply.at(products, owners, reduced["scores"][:, 0])
        join = _followed_by if groups else _joined
        bounds = np.searchsorted(owners, np.arange(len(parts) + 1)).tolist()
        filled: list[str] = []
        candidates: list[list[list[dict[str, Any]]]] = []
        for text_parts, (begin, end) in zip(parts, itertools.pairwise(bounds), strict=True):
            entries = [[vocab[token] for token in best] for best in tokens[begin:end]]
            filled.append(_filled(text_parts, [best[0] for best in entries], join))
            texts = _candidate_texts(text_parts, entries, join)
            masks = zip(entries, scores[begin:end], texts, strict=True)
            listed = [_objects(*of_mask) for of_mask in masks]
            unpredicted = len(text_parts) - 1 - len(listed)  # masks beyond MOST_MASKS
            candidates.append([*listed, *([] for _ in range(unpredicted))])
        lost = np.array([len(text_parts) - 1 for text_parts in parts]) - np.diff(bounds)
        return {
            "predicted_text": filled,
            "predicted_score": products,
            "predicted_tokens": candidates,
            LOST_MASKS: lost.astype(np.int32),
        }


def _filled(parts: Sequence[str], entries: Sequence[str], join: Join) -> str:
    """Join a text with an entry at each of its first masks."""
    count = len(entries)
    pieces = [join(part, entry) for part, entry in zip(parts, entries, strict=False)]
    return "".join(pieces) + MASK.join(parts[count:])


def _candidate_texts(
    parts: Sequence[str], entries: Sequence[Sequence[str]], join: Join
) -> list[list[str | None]]:
    """Return, for each of the first masks, the text with only that mask filled by each entry.

    All are None if the texts would take more than MOST_CANDIDATE_BYTES.
    """
    text = MASK.join(parts)
    if len(text.encode()) * sum(map(len, entries)) > MOST_CANDIDATE_BYTES:
        return [[None] * len(best) for best in entries]
    ends = np.cumsum([len(part) + len(MASK) for part in parts]).tolist()
    return [
        [join(text[: end - len(MASK)], entry) + text[end:] for entry in best]
        for best, end in zip(entries, ends, strict=False)
    ]


def _objects(
    entries: Sequence[str], scores: Sequence[float], texts: Sequence[str | None]
) -> list[dict[str, Any]]:
    return [
        {"token": entry, "score": score, "text": text}
        for entry, score, text in zip(entries, scores, texts, strict=True)
    ]


def _best_entries(values: np.ndarray, number: int) -> np.ndarray:
    """Return the entries of the greatest values of each row, the first ones among equals.

    `np.partition` finds the least of these values, but would choose among equals at random.

    Args:
        values: float [rows, entries].
        number: number of entries to return.

    Returns:
        int64 [rows, number], ascending.
    """
    least = -np.partition(-values, number - 1, axis=1)[:, number - 1 : number]
    is_taken = values > least
    is_least = ~is_taken & ~(values < least)  # or not a number, like all of such a row
    missing = number - is_taken.sum(axis=1, keepdims=True)
    is_taken |= is_least & (np.cumsum(is_least, axis=1) <= missing)
    return np.nonzero(is_taken)[1].reshape(-1, number)


def _masked_tokens(
    tokenizer: Tokenizer, parts: Sequence[Sequence[str]]
) -> tuple[Tokens, np.ndarray, np.ndarray]:
    """Tokenize texts and keep [MASK] apart.

    Returns:
        The tokens; and of each mask to predict its position in them and its text, int64 [masks].
    """
    counts = np.array([len(text_parts) for text_parts in parts], np.int64)
    owners = np.repeat(np.arange(len(parts)), counts)
    tokens = tokenizer.tokenize_texts(list(itertools.chain.from_iterable(parts)))
    is_before_mask = np.ones(len(owners), bool)
    is_before_mask[np.cumsum(counts) - 1] = False
    lengths = np.diff(tokens.offsets)
    offsets = offsets_of(lengths + is_before_mask)
    ids = np.full(offsets[-1], tokenizer.mask_id, np.int32)
    ids[flat_ranges(offsets[:-1], lengths)] = tokens.ids
    text_offsets = offsets[offsets_of(counts)]
    numbers = np.arange(len(owners)) - offsets_of(counts)[owners]  # of each part in its text
    is_predicted = is_before_mask & (numbers < MOST_MASKS)
    return Tokens(ids, text_offsets), (offsets[1:] - 1)[is_predicted], owners[is_predicted]


def _followed_by(before: str, word: str) -> str:
    return before + word


def _joined(before: str, entry: str) -> str:
    """Append an entry of the vocabulary to a text; one that continues a word leaves out blanks."""
    if entry.startswith(CONTINUATION) and entry != CONTINUATION:
        return before.rstrip(_BLANKS) + entry.removeprefix(CONTINUATION)
    return before + entry
