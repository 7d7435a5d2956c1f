"""The partition of the work, which follows only from the input's size and the config."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from bert_tf.config.sections.data import PreprocessConfig
from bert_tf.data.tables.dialect import compression_of
from bert_tf.data.text.vocab_file import SPECIALS_OF_PAIR
from pipeline.beam.files import FileInfo
from pipeline.corpus.readers.formats import TEXT_PER_STORED_BYTE

# More buckets than this make the blobs of a block tiny, so documents are partitioned on two levels.
MAX_BUCKETS = 256
_MAX_POOLS = 4 * MAX_BUCKETS**2
# A run has the records of a pool for a shard. More runs than this are first made for groups of
# shards.
_MOST_RUNS = 2**23

# The passes over a pool are divided into tasks, so that few pools are the work of many workers.
# Each task reads the pool again, so it has a minimum of text; its pairs have to fit into memory, so
# it has a maximum of passes.
_TASKS = 16  # of all pools together, at least, if there is enough text
_LEAST_TEXT_OF_TASK = 64e6  # bytes
_MOST_PASSES_OF_TASK = 10

_SHARD_BYTES = 64e6
# Estimates of the bytes of all records.
_BYTES_PER_TOKEN = 4.4  # English text and an English vocabulary of 30,000 entries
_UNFILLED = 1.2  # examples for each that would be needed if all were full


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExamplesPlan:
    """Numbers of partitions of the work.

    Attributes:
        pools: partitions of the documents.
        train_shards, eval_shards: files of records.
        parts: tasks into which the passes over each pool are divided; records do not depend on
            them.
    """

    pools: int
    train_shards: int
    eval_shards: int
    parts: int = 1

    @property
    def buckets(self) -> int:
        """Return the number of first-level partitions.

        They are the pools, or about as many as the square root of the pools if these are many.
        """
        if self.pools <= MAX_BUCKETS:
            return self.pools
        return _power_of_two_not_below(math.sqrt(self.pools))

    def buckets_of_pools(self, pools: np.ndarray) -> np.ndarray:
        """Return the bucket of each pool, int64 like `pools`."""
        return pools // math.ceil(self.pools / self.buckets)

    @property
    def shards_of_run(self) -> int:
        """Return the number of shards whose records are one run of a pool.

        It is 1, or about the square root of the shards if there are too many runs.
        """
        shards = self.train_shards + self.eval_shards
        if self.pools * self.parts * shards <= _MOST_RUNS:
            return 1
        return _power_of_two_not_below(math.sqrt(shards))

    def passes_of_part(self, part: int, passes: int) -> range:
        """Return the passes over a pool that a part makes, of all `passes`."""
        return range(part * passes // self.parts, (part + 1) * passes // self.parts)

    def shards(self, split: str) -> int:
        return self.train_shards if split == "train" else self.eval_shards


def plan_examples(config: PreprocessConfig, files: list[FileInfo]) -> ExamplesPlan:
    """Choose pools and shards for a corpus, regardless of the number of workers.

    Numbers are powers of two (except a given `num_shards`), so that a corpus keeps them when it is
    cut into other files or a line is added.

    Args:
        config: sizes of pools and examples.
        files: the corpus.
    """
    text_bytes = sum(file.bytes * TEXT_PER_STORED_BYTE[compression_of(file.path)] for file in files)
    pools = 2 ** round(math.log2(max(text_bytes / (config.pool_megabytes * 1e6), 1.0)))
    train_shards = config.num_shards
    if not train_shards:
        record_bytes = expected_record_bytes(config, text_bytes)
        train_shards = _power_of_two_not_below(record_bytes / _SHARD_BYTES)
    eval_shards = 0
    if config.eval_fraction > 0:
        eval_shards = _power_of_two_not_below(
            train_shards * config.eval_fraction / (1 - config.eval_fraction)
        )
    pools = min(pools, _MAX_POOLS)
    return ExamplesPlan(
        pools=pools,
        train_shards=train_shards,
        eval_shards=eval_shards,
        parts=_parts(config.passes, pools, text_bytes),
    )


def _parts(passes: int, pools: int, text_bytes: float) -> int:
    """Return the number of parts of a pool: enough to spread the work, and to fit into memory."""
    text_of_pool = text_bytes / pools * passes
    to_spread = min(math.ceil(_TASKS / pools), int(text_of_pool / _LEAST_TEXT_OF_TASK))
    to_fit = math.ceil(passes / _MOST_PASSES_OF_TASK)
    return min(passes, max(to_spread, to_fit))


def expected_record_bytes(config: PreprocessConfig, text_bytes: float) -> float:
    """Estimate the bytes of all records of a text, to choose the number of shards."""
    tokens = text_bytes / _BYTES_PER_TOKEN
    examples = _UNFILLED * config.passes * tokens / (config.max_seq_length - SPECIALS_OF_PAIR)
    # A fixed part, then bytes of each position and of each target.
    record_bytes = 250 + 4 * config.max_seq_length + 8 * config.max_predictions_per_seq
    if config.masking == "dynamic":
        record_bytes = 100 + 3 * config.max_seq_length
    return examples * record_bytes


def _power_of_two_not_below(value: float) -> int:
    return 2 ** math.ceil(math.log2(max(value, 1.0)))
