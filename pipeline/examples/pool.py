"""A pool of documents to runs of records: every choice follows from the documents themselves."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator

import numpy as np

from bert_tf.config.sections.data import PreprocessConfig
from bert_tf.data.flat_documents import FlatDocuments
from bert_tf.data.masking import MaskingRules, masking_rules
from bert_tf.data.pretraining_rows import pretraining_features
from bert_tf.data.random_numbers import combine_keys, seed_key
from bert_tf.data.records import encode_records
from bert_tf.data.segments import RandomNextChoices, segment_pairs
from pipeline.examples.ahead import map_ahead
from pipeline.examples.runs import Run
from pipeline.examples.tokenised import TokenisedDocuments

# A corpus of one pool with at least this many texts gives one to evaluation, if chance gives none.
_TEXTS_THAT_SPARE_ONE = 10
_ROWS_AT_ONCE = 2048


@dataclasses.dataclass(frozen=True)
class Pool:
    """Documents in the order of (split, hash), training first, with all that choices depend on.

    Attributes:
        documents: the documents; equal ones stand side by side.
        keys: uint64 [documents], from the seed, the text's hash and the number among equals.
        choices: where random second segments come from: documents of the same split, never an
            equal one. An evaluation document without company may take training documents.
        num_train: documents before this one are for training, the rest for evaluation.
    """

    documents: FlatDocuments
    keys: np.ndarray
    choices: RandomNextChoices
    num_train: int


@dataclasses.dataclass(frozen=True)
class PoolCounts:
    """What was made of a pool.

    Attributes:
        documents: documents for training and for evaluation.
        examples: examples made of them.
        truncated: examples whose segments were cut to fit.
        random_next: examples with a random second segment.
        left_out: chunks of one sentence that had no other document to go with.
    """

    documents: tuple[int, int]
    examples: tuple[int, int]
    truncated: int
    random_next: int
    left_out: int


def sort_pool(
    tokenised: TokenisedDocuments, *, seed: int, eval_fraction: float, is_only_pool: bool
) -> Pool:
    """Brings a pool's documents into an order that does not depend on how they came.

    Args:
        tokenised: at least one document.
        seed: the run's.
        eval_fraction: share of texts for evaluation.
        is_only_pool: whether the pool is the whole corpus.
    """
    is_eval = _choose_eval(tokenised.hashes, seed, eval_fraction, is_only_pool)
    lengths = np.diff(tokenised.documents.sentence_offsets[tokenised.documents.document_offsets])
    ordered = tokenised.select(np.lexsort((lengths, tokenised.hashes, is_eval)))
    num_documents = len(ordered)
    num_train = num_documents - int(is_eval.sum())
    own_low, own_high = _runs_of_equals(ordered.hashes)
    numbers = np.arange(num_documents)
    keys = combine_keys(ordered.hashes, seed_key(seed, "documents"))
    keys = combine_keys(keys, (numbers - own_low).astype(np.uint64))
    in_eval = numbers >= num_train
    low = np.where(in_eval, num_train, 0)
    low[in_eval & (own_high - own_low == num_documents - num_train)] = 0
    high = np.where(in_eval, num_documents, num_train)
    return Pool(ordered.documents, keys, RandomNextChoices(low, high, own_low, own_high), num_train)


def _choose_eval(
    hashes: np.ndarray, seed: int, eval_fraction: float, is_only_pool: bool
) -> np.ndarray:
    """bool [documents]; equal texts always go the same way."""
    draws = combine_keys(hashes, seed_key(seed, "eval"))
    is_eval = draws < np.uint64(min(int(eval_fraction * 2.0**64), 2**64 - 1))
    spares_one = is_only_pool and len(np.unique(hashes)) >= _TEXTS_THAT_SPARE_ONE
    if eval_fraction > 0 and spares_one and not is_eval.any():
        return draws == draws.min()
    return is_eval


def _runs_of_equals(hashes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each document where its run of equal ones begins and ends: int64 [documents] both."""
    begins = np.flatnonzero(np.concatenate([[True], hashes[1:] != hashes[:-1]]))
    ends = np.append(begins[1:], len(hashes))
    return np.repeat(begins, ends - begins), np.repeat(ends, ends - begins)


class ExampleMaker:
    """Makes the examples of pools.

    Args:
        config: the job's section.
        vocab: pieces in the order of their ids.
    """

    def __init__(self, config: PreprocessConfig, vocab: list[str]):
        self._config = config
        self._rules: MaskingRules = masking_rules(
            vocab,
            max_seq_length=config.max_seq_length,
            max_predictions_per_seq=config.max_predictions_per_seq,
            masked_lm_prob=config.masked_lm_prob,
            whole_word_mask=config.whole_word_mask,
        )
        self._special_ids = {
            "cls_id": vocab.index("[CLS]"),
            "sep_id": vocab.index("[SEP]"),
            "pad_id": vocab.index("[PAD]"),
        }

    def make_runs(
        self, pool: Pool, *, train_shards: int, eval_shards: int
    ) -> tuple[list[Run], PoolCounts]:
        """Deals the pool's examples to shards.

        Returns:
            A run a shard that gets examples, whose records are encoded while they are read; and
            what was made.
        """
        pairs, left_out = self._segment_pairs(pool)
        is_eval = pairs["document"] >= pool.num_train
        shards = combine_keys(pairs["key"], seed_key(self._config.seed, "shards"))
        places = np.where(
            is_eval,
            train_shards + (shards % np.uint64(max(eval_shards, 1))).astype(np.int64),
            (shards % np.uint64(train_shards)).astype(np.int64),
        )
        ranks = combine_keys(pairs["key"], seed_key(self._config.seed, "ranks"))
        order = np.lexsort((ranks, places))
        borders = np.searchsorted(places[order], np.arange(train_shards + eval_shards + 1))
        runs = []
        for place, (begin, end) in enumerate(itertools.pairwise(borders)):
            if begin == end:
                continue
            members = order[begin:end]
            split = "train" if place < train_shards else "eval"
            shard = place if place < train_shards else place - train_shards
            runs.append(Run(split, shard, ranks[members], self._encode(pool, pairs, members)))
        evals = int(is_eval.sum())
        return runs, PoolCounts(
            documents=(pool.num_train, len(pool.documents) - pool.num_train),
            examples=(len(pairs) - evals, evals),
            truncated=int(pairs["is_truncated"].sum()),
            random_next=int(pairs["is_random"].sum()),
            left_out=left_out,
        )

    def _segment_pairs(self, pool: Pool) -> tuple[np.ndarray, int]:
        passes = [
            segment_pairs(
                pool.documents,
                combine_keys(pool.keys, np.uint64(number)),
                pool.choices,
                max_seq_length=self._config.max_seq_length,
                short_seq_prob=self._config.short_seq_prob,
                random_next_prob=self._config.random_next_prob,
            )
            for number in range(self._config.dupe_factor)
        ]
        return np.concatenate([pairs for pairs, _ in passes]), sum(left for _, left in passes)

    def _encode(
        self, pool: Pool, pairs: np.ndarray, members: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        def encode_from(start: int) -> tuple[np.ndarray, np.ndarray]:
            features = pretraining_features(
                pool.documents.pieces,
                pairs[members[start : start + _ROWS_AT_ONCE]],
                self._rules,
                max_seq_length=self._config.max_seq_length,
                max_predictions_per_seq=self._config.max_predictions_per_seq,
                **self._special_ids,
            )
            return encode_records(features, self._config.feature_names)

        return map_ahead(encode_from, range(0, len(members), _ROWS_AT_ONCE))
