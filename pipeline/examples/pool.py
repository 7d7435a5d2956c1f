"""Make runs of records from a pool of documents; every choice follows from the documents.

A pool is a part of the corpus, chosen by a hash of each document's text, that fits into memory.
Documents are sorted by their hashes, and each draws its random numbers from its own key (seed,
hash, number among equals). So the records of a corpus do not depend on its files, blocks, workers
or the order of its documents.

Segments are made as in google-research/bert's `create_pretraining_data.py`, see
`bert_tf.data.examples.segments`, masks as in `bert_tf.data.examples.masking`.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections import Counter
from collections.abc import Iterator

import numpy as np

from bert_tf.base.kernels import combine_keys, seed_key
from bert_tf.base.processor import map_ahead
from bert_tf.config.sections.data import PreprocessConfig
from bert_tf.config.sections.masking import masking_settings
from bert_tf.data.examples.features import (
    RowFormat,
    pair_lengths,
    pretraining_features,
    unmasked_features,
)
from bert_tf.data.examples.flat_documents import FlatDocuments, cut_long_sentences
from bert_tf.data.examples.masking import MaskingRules, masking_rules
from bert_tf.data.examples.segments import (
    RandomNextChoices,
    full_sentences,
    mark_segments,
    no_other_document,
    segment_pairs,
    separate_documents,
)
from bert_tf.data.records.dataset_info import encode_records
from pipeline.examples.runs import Run
from pipeline.examples.tokenized import TokenizedDocuments

# A corpus of one pool with at least this many texts gives one to evaluation, if chance gives none.
_TEXTS_THAT_SPARE_ONE = 10
_BATCH_ROWS = 2048  # records that are encoded at a time
# A run is one element of a shuffle on a cluster: 30 MB at 128 tokens, 95 MB at 512.
_MAX_RECORDS_PER_RUN = 16 * _BATCH_ROWS
_SWAP_PROB = 0.5
EVAL_MASKED_LM_PROB = 0.15
NO_OTHER_DOCUMENT = "one-sentence chunk without another document"


@dataclasses.dataclass(frozen=True)
class Pool:
    """Documents in the order of (split, hash), training first, with their keys and neighbors.

    Attributes:
        documents: equal ones are adjacent.
        keys: uint64 [documents], from the seed, the text's hash and the number among equals.
        choices: sources of random second segments: documents of the same split, never an equal one.
            If all evaluation documents are equal, they take training documents.
        num_train: number of documents for training; the rest are for evaluation.
    """

    documents: FlatDocuments
    keys: np.ndarray
    choices: RandomNextChoices
    num_train: int


def sort_pool(
    tokenized: TokenizedDocuments, *, seed: int, eval_fraction: float, is_only_pool: bool
) -> Pool:
    """Sort a pool's documents, at least one, into an order independent of their arrival.

    Args:
        tokenized: the documents.
        seed: of the job.
        eval_fraction: of the documents, for evaluation.
        is_only_pool: whether the corpus has no other pool; then one text is given to evaluation, if
            chance gives none.
    """
    is_eval = _choose_eval(tokenized.hashes, seed, eval_fraction, is_only_pool)
    lengths = np.diff(tokenized.documents.sentence_offsets[tokenized.documents.document_offsets])
    ordered = tokenized.select(np.lexsort((lengths, tokenized.hashes, is_eval)))
    num_documents = len(ordered)
    num_train = num_documents - int(is_eval.sum())
    own_low, own_high = _runs_of_equals(ordered.hashes)
    numbers = np.arange(num_documents)
    keys = combine_keys(ordered.hashes, seed_key(seed, "documents"))
    keys = combine_keys(keys, (numbers - own_low).astype(np.uint64))
    in_eval = numbers >= num_train
    low = np.where(in_eval, num_train, 0)
    high = np.where(in_eval, num_documents, num_train)
    are_all_equal = own_high - own_low == num_documents - num_train
    low[in_eval & are_all_equal] = 0  # no other evaluation document: take training documents
    choices = RandomNextChoices(low, high, own_low, own_high)
    return Pool(ordered.documents, keys, choices, num_train)


def _choose_eval(
    hashes: np.ndarray, seed: int, eval_fraction: float, is_only_pool: bool
) -> np.ndarray:
    """Choose documents for evaluation, bool [documents]; equal texts are in the same split."""
    draws = combine_keys(hashes, seed_key(seed, "eval"))
    is_eval = draws < np.uint64(min(int(eval_fraction * 2.0**64), 2**64 - 1))
    spares_one = is_only_pool and len(np.unique(hashes)) >= _TEXTS_THAT_SPARE_ONE
    if eval_fraction > 0 and spares_one and not is_eval.any():
        return draws == draws.min()
    return is_eval


def _runs_of_equals(hashes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where each document's run of equal ones begins and ends, int64 [documents] both."""
    begins = np.flatnonzero(np.concatenate([[True], hashes[1:] != hashes[:-1]]))
    ends = np.append(begins[1:], len(hashes))
    return np.repeat(begins, ends - begins), np.repeat(ends, ends - begins)


class ExampleMaker:
    """Makes the examples of pools.

    Evaluation examples always have 15% of their tokens masked, so that losses of differently masked
    runs can be compared.

    Args:
        config: of `preprocess`.
        vocab: tokens in the order of their ids.
        token_counts: int64 [vocabulary], needed if random tokens are drawn by frequency.
    """

    def __init__(
        self, config: PreprocessConfig, vocab: list[str], token_counts: np.ndarray | None = None
    ):
        self._config = config
        make_rules = functools.partial(
            masking_rules,
            vocab,
            max_seq_length=config.max_seq_length,
            max_predictions_per_seq=config.max_predictions_per_seq,
        )
        self._train_rules: MaskingRules | None = None
        if config.masking != "dynamic":
            if config.random_tokens != "unigram":
                token_counts = None
            self._train_rules = make_rules(**masking_settings(config), token_counts=token_counts)
        self._eval_rules = make_rules(masked_lm_prob=EVAL_MASKED_LM_PROB)
        self._row_format = RowFormat(
            max_seq_length=config.max_seq_length,
            cls_id=vocab.index("[CLS]"),
            sep_id=vocab.index("[SEP]"),
            pad_id=vocab.index("[PAD]"),
        )

    def make_runs(
        self,
        pool: Pool,
        *,
        train_shards: int,
        eval_shards: int,
        shards_of_run: int = 1,
        passes: range | None = None,
    ) -> tuple[list[Run], Counter[str]]:
        """Make the examples of a pool, and partition them into shards.

        Args:
            pool: the documents.
            train_shards, eval_shards: numbers of shards.
            shards_of_run: number of shards whose records are one run.
            passes: over the documents; None for all.

        Returns:
            Runs for each shard that gets examples, whose records are encoded while they are read;
            and counts by name, complete once the runs have been read.
        """
        sentences_cut = 0
        if self._config.pair_task != "none":  # otherwise rows take parts of sentences anyway
            documents, sentences_cut = cut_long_sentences(
                pool.documents,
                self._eval_rules.begins_word,
                max_seq_length=self._config.max_seq_length,
            )
            pool = dataclasses.replace(pool, documents=documents)
        passes = range(self._config.passes) if passes is None else passes
        tokens, made = self._segments(pool, passes)
        pairs = np.concatenate([pairs for pairs, _ in made])
        is_eval = pairs["document"] >= pool.num_train
        counts = self._count(pairs, is_eval, left_out=sum(left_out for _, left_out in made))
        if passes.start == 0:
            counts["sentences_cut"] = sentences_cut
            self._count_documents(counts, pool, tokens, made)
        shards = combine_keys(pairs["key"], seed_key(self._config.seed, "shards"))
        places = np.where(
            is_eval,
            train_shards + (shards % np.uint64(max(eval_shards, 1))).astype(np.int64),
            (shards % np.uint64(train_shards)).astype(np.int64),
        )
        # The order in a shard is random, too, and does not depend on the pool that an example is
        # from.
        ranks = combine_keys(pairs["key"], seed_key(self._config.seed, "ranks"))
        order = np.lexsort((ranks, places))
        all_shards = train_shards + eval_shards
        splits = ((0, train_shards), (train_shards, all_shards))
        firsts = [first for bounds in splits for first in range(*bounds, shards_of_run)]
        borders = np.searchsorted(places[order], [*firsts, all_shards])
        runs = []
        for place, (begin, end) in zip(firsts, itertools.pairwise(borders), strict=True):
            split, shift = ("train", 0) if place < train_shards else ("eval", train_shards)
            for start in range(begin, end, _MAX_RECORDS_PER_RUN):
                members = order[start : min(start + _MAX_RECORDS_PER_RUN, end)]
                records = self._encode(split, tokens, pairs[members], counts)
                shards_of_records = places[members] - shift if shards_of_run > 1 else None
                runs.append(Run(split, place - shift, ranks[members], records, shards_of_records))
        return runs, counts

    def _count(self, pairs: np.ndarray, is_eval: np.ndarray, *, left_out: int) -> Counter[str]:
        evals = int(is_eval.sum())
        counts = {
            "examples/train": len(pairs) - evals,
            "examples/eval": evals,
            "truncations": int(pairs["is_truncated"].sum()),
            "labeled": int(pairs["label"].sum()),
            f"chunks_left_out/{NO_OTHER_DOCUMENT}": left_out,
        }
        if self._train_rules is not None:
            counts["row_tokens"] = int(pair_lengths(pairs[~is_eval]).sum())
        return Counter(counts)

    def _count_documents(
        self,
        counts: Counter[str],
        pool: Pool,
        tokens: np.ndarray,
        made: list[tuple[np.ndarray, int]],
    ) -> None:
        """Add counts of documents, and of their tokens that are in an example of any pass.

        Args:
            counts: changed in place.
            pool: the documents.
            tokens: int32, of `_segments`.
            made: pairs of the first passes, of `_segments`; later passes are made here.
        """
        single = np.count_nonzero(np.diff(pool.documents.document_offsets) == 1)
        counts["documents_of_one_sentence"] = int(single)
        counts["documents/train"] = pool.num_train
        counts["documents/eval"] = len(pool.documents) - pool.num_train
        is_reached = tokens == self._row_format.sep_id  # between documents
        separators = int(is_reached.sum())
        for pairs, _ in made:
            mark_segments(pairs, is_reached)
        for number in range(len(made), self._config.passes):
            if is_reached.all():
                break
            _, ((pairs, _),) = self._segments(pool, range(number, number + 1))
            mark_segments(pairs, is_reached)
        counts["tokens_reached"] = int(np.count_nonzero(is_reached)) - separators

    def _segments(
        self, pool: Pool, passes: range
    ) -> tuple[np.ndarray, list[tuple[np.ndarray, int]]]:
        """Return tokens, and for each pass its pairs and the number of chunks left out."""
        config = self._config
        keys_of_pass = {number: combine_keys(pool.keys, np.uint64(number)) for number in passes}
        if config.pair_task == "none":
            sequences = [
                full_sentences(
                    pool.documents,
                    keys,
                    first_of_split=pool.num_train,
                    max_seq_length=config.max_seq_length,
                    short_seq_prob=config.short_seq_prob,
                    shifted=number > 0,
                )
                for number, keys in keys_of_pass.items()
            ]
            tokens = separate_documents(pool.documents, self._row_format.sep_id)
            return tokens, [(pairs, 0) for pairs in sequences]
        choices = pool.choices
        swap_prob = 0.0
        if config.pair_task == "sop":
            choices = no_other_document(len(pool.documents))
            swap_prob = _SWAP_PROB
        made = [
            segment_pairs(
                pool.documents,
                keys,
                choices,
                max_seq_length=config.max_seq_length,
                short_seq_prob=config.short_seq_prob,
                random_next_prob=config.random_next_prob,
                swap_prob=swap_prob,
            )
            for keys in keys_of_pass.values()
        ]
        return pool.documents.tokens, made

    def _encode(
        self, split: str, tokens: np.ndarray, pairs: np.ndarray, counts: Counter[str]
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield framed records of pairs and their offsets in batches, and count masked tokens.

        Args:
            split: "train" or "eval", whose rules mask the tokens.
            tokens: int32, of `_segments`.
            pairs: the examples.
            counts: of masked tokens, changed while records are made.
        """
        rules = self._train_rules if split == "train" else self._eval_rules

        def encode_from(start: int) -> tuple[tuple[np.ndarray, np.ndarray], int]:
            batch = pairs[start : start + _BATCH_ROWS]
            if rules is None:
                features = unmasked_features(
                    tokens, batch, self._eval_rules.begins_word, self._row_format
                )
                lengths = pair_lengths(batch)
                return encode_records(features, self._config.feature_names, lengths=lengths), 0
            features = pretraining_features(
                tokens,
                batch,
                rules,
                self._row_format,
                max_predictions_per_seq=self._config.max_predictions_per_seq,
            )
            masked = int(features["masked_lm_weights"].sum()) if split == "train" else 0
            return encode_records(features, self._config.feature_names), masked

        for records, masked in map_ahead(encode_from, range(0, len(pairs), _BATCH_ROWS)):
            counts["masked"] += masked
            yield records
