"""Copies of texts with one token masked in each, for the pseudo-log-likelihood of texts.

To compute it, each token of a text is masked in turn, and the log-probabilities of the masked
tokens are summed (Salazar et al. 2020, "Masked Language Model Scoring", section 2). So a text of n
tokens makes n rows of n + 2 tokens: 512 tokens make 260,000. The copies share the tokens of their
text; only batches hold them as rows of their own.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple, Self

import numpy as np

from bert_tf.base.arrays import flat_ranges, offsets_of
from bert_tf.data.rows.encoded_rows import EncodedRows
from bert_tf.data.rows.host_rows import between_specials
from bert_tf.data.text.host_wordpiece import Tokenizer, Tokens
from bert_tf.data.text.vocab_file import SPECIALS_OF_TEXT

# Limit of the negative log-probability per token, because the perplexity of a model with random
# weights may not fit into float32.
_MOST_NATS = 88.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class MaskedCopies(EncodedRows):
    """A row `[CLS] text [SEP]` for each token of each text, with that token masked.

    `ids` has the row of each text once, without a mask; `offsets` count as if all copies existed.

    Attributes:
        starts: int64 [rows], where the text of a copy begins in `ids`.
        positions: int64 [rows], the place of the mask in its row, from 1.
        targets: int32 [rows], the token that is masked.
        texts: int64 [rows], the text of a copy, ascending.
        counts: int64 [texts], tokens of a text that are scored.
        excess: int64 [texts], tokens that do not fit into a row. A text with any has no copy, since
            the likelihood of its beginning would pass for that of the text.
        mask_id: id of [MASK].
    """

    starts: np.ndarray
    positions: np.ndarray
    targets: np.ndarray
    texts: np.ndarray
    counts: np.ndarray
    excess: np.ndarray
    mask_id: int

    @classmethod
    def of(cls, tokens: Tokens, *, max_seq_length: int, tokenizer: Tokenizer) -> Self:
        """Make the copies.

        Args:
            tokens: the texts, without special tokens.
            max_seq_length: most tokens of a row, [CLS] and [SEP] included.
            tokenizer: has the ids of the special tokens.
        """
        lengths = np.diff(tokens.offsets)
        excess = np.maximum(lengths - (max_seq_length - SPECIALS_OF_TEXT), 0)
        counts = np.where(excess > 0, 0, lengths)
        offsets = offsets_of(counts + SPECIALS_OF_TEXT)
        kept = tokens.ids[flat_ranges(tokens.offsets[:-1], counts)]
        texts = np.repeat(np.arange(len(counts)), counts)
        return cls(
            ids=between_specials(kept, offsets, tokenizer),
            offsets=offsets_of(counts[texts] + SPECIALS_OF_TEXT),
            second_starts=(counts[texts] + SPECIALS_OF_TEXT).astype(np.int32),
            starts=offsets[:-1][texts],
            positions=flat_ranges(np.ones(len(counts), np.int64), counts),
            targets=kept.astype(np.int32),
            texts=texts,
            counts=counts,
            excess=excess,
            mask_id=tokenizer.mask_id,
        )

    def _ids_of(self, rows: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        ids = self.ids[flat_ranges(self.starts[rows], lengths)]
        ids[offsets_of(lengths)[:-1] + self.positions[rows]] = self.mask_id
        return ids


class Likelihoods(NamedTuple):
    """The likelihood of each text.

    Attributes:
        totals: float64 [texts], the pseudo-log-likelihood in nats; 0 for a text without a copy.
        perplexities: float64 [texts], e to the mean negative log-probability of its tokens
            (Salazar et al. 2020, section 2.3, applied to a single text).
    """

    totals: np.ndarray
    perplexities: np.ndarray


def likelihoods_of(copies: MaskedCopies, log_probabilities: np.ndarray) -> Likelihoods:
    """Sum the log-probabilities of the masked tokens, float [rows], by text."""
    totals = np.bincount(
        copies.texts, log_probabilities.astype(np.float64), minlength=len(copies.counts)
    )
    per_token = -totals / np.maximum(copies.counts, 1)
    return Likelihoods(totals, np.exp(np.minimum(per_token, _MOST_NATS)))


def target_log_probabilities(logits: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return the log-probability of a token in each row of logits.

    Args:
        logits: float [rows, vocabulary].
        targets: int [rows].

    Returns:
        float64 [rows].
    """
    wide = logits.astype(np.float64)
    above = wide - wide.max(axis=1, keepdims=True)
    target_logits = np.take_along_axis(above, targets[:, None].astype(np.int64), axis=1)[:, 0]
    return target_logits - np.log(np.exp(above).sum(axis=1))
