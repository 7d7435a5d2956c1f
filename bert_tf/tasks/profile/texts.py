"""Measures of texts that add up over blocks of rows: lengths, [UNK] and vocabulary.

A profile has the counts of training rows; `score` counts new rows the same way. Training rows are
split by a hash of their text. The first half decides the measures (which lengths, which tokens are
frequent, which never occur), and the second half is counted. So the counted rows are as new to the
measures as rows to score, and a difference is not an effect of choosing measures on counted rows.
"""

from __future__ import annotations

import base64
import dataclasses
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from bert_tf.data.text.host_wordpiece import HostTokenizer, Tokenizer, Tokens

MOST_TRAINING_ROWS = 20_000  # a second of tokenizing; a share has a standard error below 0.005
_LENGTH_QUANTILES = np.array([0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99])
_FREQUENT = 1000  # tokens with a count of their own
_BUCKETS = 256  # counts that all other tokens share, so that any new ones are noticed


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextMeasures:
    """The measures of texts, as chosen on training rows.

    Attributes:
        edges: int64 [lengths], numbers of tokens, ascending.
        frequent: int64 [tokens], ids of frequent tokens.
        seen: bool [vocabulary], the tokens that training rows have.
        unknown: id of [UNK].
    """

    edges: np.ndarray
    frequent: np.ndarray
    seen: np.ndarray
    unknown: int

    @classmethod
    def of(cls, tokens: Tokens, *, vocab_size: int, unknown: int) -> Self:
        """Choose measures on the first half of the training rows.

        Args:
            tokens: their tokens.
            vocab_size: entries of the vocabulary.
            unknown: id of [UNK].
        """
        lengths = np.diff(tokens.offsets)
        owners = np.repeat(np.arange(len(lengths)), lengths)
        rows = np.bincount(
            np.unique(owners * vocab_size + tokens.ids) % vocab_size, minlength=vocab_size
        )
        frequent = np.argsort(-rows, kind="stable")[:_FREQUENT]
        quantiles = np.quantile(lengths, _LENGTH_QUANTILES, method="lower")
        return cls(
            edges=np.unique(quantiles).astype(np.int64),
            frequent=np.sort(frequent[rows[frequent] > 0]),
            seen=rows > 0,
            unknown=unknown,
        )

    def names(self, vocab: Sequence[str]) -> list[str]:
        """Describe the rows of each count of `counts`, to follow "5% of rows"."""
        return [
            *self.first_names(),
            *(f"have the token {vocab[token]!r}" for token in self.frequent.tolist()),
            *("have some of the rarer tokens",) * _BUCKETS,
        ]

    def first_names(self) -> list[str]:
        """Return the first of `names`, which name no token."""
        return [
            *(f"have more than {edge:,} tokens" for edge in self.edges.tolist()),
            "have a word unknown to the vocabulary",
            "have a token that is rare or new to the training rows",
        ]

    @property
    def families(self) -> list[int]:
        """The size of each family of counts: lengths, [UNK], new tokens, vocabulary."""
        return [len(self.edges), 1, 1, len(self.frequent) + _BUCKETS]

    def counts(self, tokens: Tokens) -> np.ndarray:
        """Count the rows with each property, int64 [sum of `families`]."""
        lengths = np.diff(tokens.offsets)
        owners = np.repeat(np.arange(len(lengths)), lengths)
        # The count to which each token of the vocabulary belongs.
        places = len(self.frequent) + np.arange(len(self.seen)) % _BUCKETS
        places[self.frequent] = np.arange(len(self.frequent))
        number = len(self.frequent) + _BUCKETS
        pieces_of_texts = np.unique(owners * number + places[tokens.ids]) % number
        return np.concatenate(
            [
                (lengths[:, None] > self.edges).sum(axis=0),
                [len(np.unique(owners[tokens.ids == self.unknown]))],
                [len(np.unique(owners[~self.seen[tokens.ids]]))],
                np.bincount(pieces_of_texts, minlength=number),
            ]
        ).astype(np.int64)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextProfile:
    """The texts of training rows.

    Attributes:
        measures: the measures.
        rows: number of training rows that are counted.
        counts: int64, see `TextMeasures.counts`.
    """

    measures: TextMeasures
    rows: int
    counts: np.ndarray

    @classmethod
    def of(cls, texts: Mapping[str, Sequence[Any]], tokenizer: HostTokenizer) -> Self | None:
        """Make the profile of evenly spread training rows; None if one of the halves is empty.

        Args:
            texts: texts, or lists of texts, of each row by input.
            tokenizer: the model's.
        """
        joined = joined_texts(texts)
        number = min(len(joined), MOST_TRAINING_ROWS)
        kept = np.unique(np.linspace(0, len(joined) - 1, number).astype(np.int64))
        halves: tuple[list[str], list[str]] = ([], [])
        for row in kept.tolist():
            halves[zlib.crc32(joined[row].encode("utf-8", "replace")) % 2].append(joined[row])
        if not all(halves):
            return None
        choosing, counted = halves
        measures = TextMeasures.of(
            tokenizer.tokenize_texts(choosing),
            vocab_size=len(tokenizer.vocab),
            unknown=tokenizer.unk_id,
        )
        counts = measures.counts(tokenizer.tokenize_texts(counted))
        return cls(measures=measures, rows=len(counted), counts=counts)

    def as_json(self) -> dict[str, Any]:
        """Return the entry `texts`."""
        measures = self.measures
        return {
            "rows": self.rows,
            "lengths": measures.edges.tolist(),
            "frequent_tokens": measures.frequent.tolist(),
            "vocab_size": len(measures.seen),
            "seen_tokens": base64.b64encode(np.packbits(measures.seen).tobytes()).decode(),
            "unknown_token": measures.unknown,
            "counts": self.counts.tolist(),
        }

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Self:
        """Read `as_json`; KeyError, TypeError or ValueError if it is something else."""
        bits = np.frombuffer(base64.b64decode(entry["seen_tokens"]), np.uint8)
        measures = TextMeasures(
            edges=np.array(entry["lengths"], np.int64),
            frequent=np.array(entry["frequent_tokens"], np.int64),
            seen=np.unpackbits(bits, count=int(entry["vocab_size"])).astype(bool),
            unknown=int(entry["unknown_token"]),
        )
        counts = np.array(entry["counts"], np.int64)
        if counts.shape != (sum(measures.families),):
            raise ValueError("counts of something else")
        return cls(measures=measures, rows=int(entry["rows"]), counts=counts)


def joined_texts(texts: Mapping[str, Sequence[Any]]) -> list[str]:
    """Join the texts of each row, of all inputs and lists: blanks separate tokens anyway."""
    columns = [
        [cell if isinstance(cell, str) else " ".join(cell) for cell in column]
        for column in texts.values()
    ]
    return [" ".join(cells) for cells in zip(*columns, strict=True)]


def text_counts(
    measures: TextMeasures, texts: Mapping[str, Sequence[Any]], tokenizer: Tokenizer
) -> np.ndarray:
    """Count rows as `TextMeasures.counts`, from their texts by input."""
    return measures.counts(tokenizer.tokenize_texts(joined_texts(texts)))
