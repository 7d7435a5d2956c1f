"""Candidates for masks from logits, in NumPy, for engines without TensorFlow."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bert_tf.base.arrays import flat_ranges, offsets_of
from bert_tf.data.rows.encoded_rows import EncodedRows
from bert_tf.data.rows.host_rows import between_specials
from bert_tf.data.text.host_wordpiece import Tokenizer, Tokens
from bert_tf.data.text.vocab_file import CONTINUATION
from bert_tf.serving.signatures import LOST_MASKS, MOST_CANDIDATE_BYTES, MOST_MASKS
from bert_tf.tasks.base.declaration import ServedTaskDeclaration
from bert_tf.tasks.base.host_task import HostRows, HostTask
from bert_tf.tasks.base.prediction_rows import rounded_probabilities
from bert_tf.tasks.fill_mask.declaration import FILL_MASK, MASK

_BLANKS = " \t\n\f\r"
_POSITIONS = "masked_lm_positions"  # input of the graph, see `onnx_model`


class _Masks(NamedTuple):
    """The masks of all texts.

    Attributes:
        parts: the text before, between and after the masks, of each text.
        owners: int64 [predicted masks], the text of each, ascending.
    """

    parts: list[list[str]]
    owners: np.ndarray
    vocab: Sequence[str]


@dataclasses.dataclass(frozen=True, kw_only=True)
class FillMaskHost(HostTask):
    """See `MaskFiller` for the predictions."""

    declaration: ClassVar[ServedTaskDeclaration] = FILL_MASK

    top_k: int

    def encode(self, tokenizer: Tokenizer, columns: Mapping[str, Sequence[Any]]) -> HostRows:
        parts = [text.split(MASK) for text in columns["text"]]
        tokens, masks, owners = _masked_tokens(tokenizer, parts)
        capacity = self.max_seq_length - 2
        starts, lengths = tokens.offsets[:-1][owners], np.diff(tokens.offsets)[owners]
        positions = masks - starts
        begins = np.maximum(np.minimum(positions - capacity // 2, lengths - capacity), 0)
        kept = np.minimum(lengths, capacity)
        offsets = offsets_of(kept + 2)
        ids = tokens.ids[flat_ranges(starts + begins, kept)]
        return HostRows(
            sequences=EncodedRows(
                ids=between_specials(ids, offsets, tokenizer),
                offsets=offsets,
                second_starts=np.diff(offsets).astype(np.int32),
            ),
            inputs={_POSITIONS: (positions - begins + 1)[:, None]},
            details=_Masks(parts, owners, tokenizer.vocab),
        )

    def reduce(
        self, rows: HostRows, chosen: np.ndarray, outputs: dict[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        logits = outputs["logits"][:, 0]
        above = logits - logits.max(axis=1, keepdims=True)
        totals = np.exp(above).sum(axis=1, keepdims=True)
        best = _best_entries(above, self.top_k)
        found = np.take_along_axis(above, best, axis=1)
        order = np.argsort(-found, axis=1, kind="stable")
        return {
            "tokens": np.take_along_axis(best, order, axis=1),
            "scores": np.exp(np.take_along_axis(found, order, axis=1)) / totals,
        }

    def predict(
        self, rows: HostRows, columns: Mapping[str, Sequence[Any]], reduced: dict[str, np.ndarray]
    ) -> dict[str, Any]:
        parts, owners, vocab = rows.details
        tokens = reduced["tokens"].tolist()
        scores = rounded_probabilities(reduced["scores"])
        products = np.ones(len(parts), np.float32)
        np.multiply.at(products, owners, reduced["scores"][:, 0])
        bounds = np.searchsorted(owners, np.arange(len(parts) + 1)).tolist()
        filled: list[str] = []
        candidates: list[list[list[dict[str, Any]]]] = []
        for text_parts, (begin, end) in zip(parts, itertools.pairwise(bounds), strict=True):
            entries = [[vocab[token] for token in best] for best in tokens[begin:end]]
            filled.append(_filled(text_parts, [best[0] for best in entries]))
            texts = _candidate_texts(text_parts, entries)
            found = zip(entries, scores[begin:end], texts, strict=True)
            listed = [_objects(*of_mask) for of_mask in found]
            candidates.append([*listed, *([] for _ in range(len(text_parts) - 1 - len(listed)))])
        lost = np.array([len(text_parts) - 1 for text_parts in parts]) - np.diff(bounds)
        return {
            "predicted_text": filled,
            "predicted_score": products,
            "predicted_tokens": candidates,
            LOST_MASKS: lost.astype(np.int32),
        }


def _filled(parts: Sequence[str], entries: Sequence[str]) -> str:
    """Join a text with an entry at each of its first masks."""
    count = len(entries)
    pieces = [_joined(part, entry) for part, entry in zip(parts, entries, strict=False)]
    return "".join(pieces) + MASK.join(parts[count:])


def _candidate_texts(
    parts: Sequence[str], entries: Sequence[Sequence[str]]
) -> list[list[str | None]]:
    """Return the text with each entry at its mask alone, for each of the first masks.

    None instead of all of them if they take more than MOST_CANDIDATE_BYTES.
    """
    text = MASK.join(parts)
    if len(text.encode()) * sum(map(len, entries)) > MOST_CANDIDATE_BYTES:
        return [[None] * len(best) for best in entries]
    ends = np.cumsum([len(part) + len(MASK) for part in parts]).tolist()
    return [
        [_joined(text[: end - len(MASK)], entry) + text[end:] for entry in best]
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
    """The `number` entries of the greatest values of each row, ascending; of equals the first."""
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
        The tokens; position in them and text of each mask that is predicted, int64 [masks].
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


def _joined(before: str, entry: str) -> str:
    if entry.startswith(CONTINUATION) and entry != CONTINUATION:
        return before.rstrip(_BLANKS) + entry.removeprefix(CONTINUATION)
    return before + entry
