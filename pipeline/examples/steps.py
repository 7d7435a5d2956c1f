"""The steps of making examples, between which Beam shuffles references to data."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TypeAlias

import apache_beam as beam
import numpy as np
from apache_beam.metrics import Metrics

from bert_tf.base.json_files import finished_sha256, note_finished
from bert_tf.base.kernels import combine_keys, seed_key
from bert_tf.config.sections.data import PreprocessConfig
from bert_tf.data.records.dataset_info import shard_name
from bert_tf.data.text.casing import lowercase_of
from bert_tf.data.text.normalizer import is_ideograph
from bert_tf.data.text.wordpiece import WordPieceTokenizer
from pipeline.beam.blobs import BlobReference, BlobStore, BlobWriter, LabeledBlob
from pipeline.beam.files import check_shared
from pipeline.beam.packing import pack
from pipeline.beam.progress import Progress, report_progress
from pipeline.beam.stored_path import path_of
from pipeline.corpus.document_block import DocumentBlock
from pipeline.corpus.read import FinishedBlock, block_work
from pipeline.corpus.report import facts_of_block, read_facts
from pipeline.examples.plan import ExamplesPlan
from pipeline.examples.pool import ExampleMaker, sort_pool
from pipeline.examples.runs import merge_runs, split_group_runs, write_shard
from pipeline.examples.tokenized import (
    concatenate,
    count_lengths,
    from_bytes,
    partition_documents,
    to_bytes,
    tokenize_block,
)

# Kinds of work, besides that on blocks, that an interrupted run may have finished.
BUCKET = "bucket"
POOL = "pool"
GROUP = "group"
# Tagged outputs.
TOKEN_COUNTS = "token counts"
FACTS = "facts"
COUNTS = "counts"
NO_TOKENS = "no tokens"
_DOCUMENT_BYTES = 64_000_000  # of documents that are partitioned at a time
_RUN_BYTES = 128_000_000  # of runs that are split at a time

Output: TypeAlias = beam.pvalue.TaggedOutput


@dataclasses.dataclass(frozen=True)
class ExamplesJob:
    """Settings that all steps share.

    Attributes:
        vocab: tokens in the order of their ids.
        plan: pools and shards.
        store: of the data between steps.
        output: absolute path of the folder of the shards, shared by all workers.
        work: shared folder for `read_example_counts`.
    """

    config: PreprocessConfig
    vocab: list[str]
    plan: ExamplesPlan
    store: BlobStore
    output: str
    work: str

    @property
    def counts_tokens(self) -> bool:
        """Return whether tokens are counted, for drawing random ones here or in training."""
        return self.config.random_tokens == "unigram" or self.config.masking == "dynamic"

    def shard_names(self, split: str) -> list[str]:
        return [self.name_of_shard(split, number) for number in range(self.plan.shards(split))]

    def name_of_shard(self, split: str, number: int) -> str:
        shards = self.plan.shards(split)
        return shard_name(split, number, shards, compression=self.config.compression)


def pools_of(hashes: np.ndarray, pools: int) -> np.ndarray:
    """Return the pool of each document, int64 [documents].

    It depends only on the text, so copies are in the same pool.

    Args:
        hashes: uint64 [documents], of their texts.
        pools: number of pools.
    """
    return (combine_keys(hashes, seed_key(0, "pools")) % np.uint64(pools)).astype(np.int64)


class TokenizeBlocks(beam.DoFn):
    """Turns blocks into (bucket, reference to documents), and counts their tokens."""

    def __init__(self, job: ExamplesJob):
        self._job = job

    def setup(self) -> None:
        check_shared(self._job.work)
        config = self._job.config
        self._tokenizer = WordPieceTokenizer(  # takes half a second and cannot be pickled
            self._job.vocab, lowercase=lowercase_of(config.lowercase, config.keep_accents)
        )
        self._ideographs = [is_ideograph(entry) for entry in self._job.vocab]

    def process(
        self, block: DocumentBlock | FinishedBlock
    ) -> Iterator[tuple[int, BlobReference] | Output]:
        store = self._job.store
        work = store.once(block_work(block), lambda writer: self._tokenize(block, writer))
        for label, reference in work:
            if label == COUNTS:
                yield _report_counts(store, reference)
            elif label == FACTS:
                yield Output(FACTS, read_facts(store.read(reference)))
            elif label == TOKEN_COUNTS:
                counts = np.frombuffer(store.read(reference), np.int64)
                yield Output(TOKEN_COUNTS, counts)
            else:
                yield int(label), reference

    def _tokenize(
        self, block: DocumentBlock | FinishedBlock, writer: BlobWriter
    ) -> Iterator[LabeledBlob]:
        assert isinstance(block, DocumentBlock)
        plan = self._job.plan
        tokenized, without_tokens = tokenize_block(block, self._tokenizer)
        tokens = tokenized.documents.tokens
        yield FACTS, writer.add(pack(facts_of_block(block)))
        token_counts = np.bincount(tokens, minlength=len(self._job.vocab)).astype(np.int64)
        counted = {
            "tokens": len(tokens),
            "tokens_unknown": int(token_counts[self._tokenizer.unk_id]),
            "tokens_ideographic": int(token_counts[self._ideographs].sum()),
            f"dropped/{NO_TOKENS}": without_tokens,
            **count_lengths(tokenized.documents),
        }
        yield _store_counts(writer, counted)
        pools = pools_of(tokenized.hashes, plan.pools)
        for bucket, documents in partition_documents(tokenized, plan.buckets_of_pools(pools)):
            yield bucket, writer.add(to_bytes(documents))
        if self._job.counts_tokens:
            yield TOKEN_COUNTS, writer.add([token_counts.tobytes()])


def partition_bucket(
    bucket: tuple[int, Iterable[BlobReference]], job: ExamplesJob
) -> Iterator[tuple[int, BlobReference]]:
    """Split the documents of a bucket into those of its pools, some megabytes at a time.

    Args:
        bucket: its number, and references to documents.
        job: pools and store.

    Yields:
        A pool, and a reference to documents.
    """
    number, references = bucket

    def partition(writer: BlobWriter) -> Iterator[LabeledBlob]:
        for blobs in _read_some(job.store, references, _DOCUMENT_BYTES):
            documents = concatenate([from_bytes(blob) for blob in blobs])
            pools = pools_of(documents.hashes, job.plan.pools)
            for pool, members in partition_documents(documents, pools):
                yield pool, writer.add(to_bytes(members))

    for pool, reference in job.store.once(f"{BUCKET}-{number:06d}", partition):
        yield int(pool), reference


class MakeExamples(beam.DoFn):
    """Turns a part of a pool into (name of a shard or group of shards, reference to a run)."""

    def __init__(self, job: ExamplesJob):
        self._job = job

    def setup(self) -> None:
        self._maker: ExampleMaker | None = None  # made when the counts are there

    def process(
        self, task: tuple[int, int, list[BlobReference]], token_counts: np.ndarray | None
    ) -> Iterator[tuple[str, BlobReference] | Output]:
        pool, part, references = task
        store = self._job.store
        for label, reference in store.once(
            f"{POOL}-{pool:06d}-{part:03d}",
            lambda writer: self._make(references, part, token_counts, writer),
        ):
            if label == COUNTS:
                yield _report_counts(store, reference)
            else:
                yield str(label), reference

    def _make(
        self,
        references: list[BlobReference],
        part: int,
        token_counts: np.ndarray | None,
        writer: BlobWriter,
    ) -> Iterator[LabeledBlob]:
        plan = self._job.plan
        config = self._job.config
        if self._maker is None:
            self._maker = ExampleMaker(config, self._job.vocab, token_counts)
        blobs = map(self._job.store.read, references)
        pool = sort_pool(
            concatenate([from_bytes(blob) for blob in blobs]),
            seed=config.seed,
            eval_fraction=config.eval_fraction,
            is_only_pool=plan.pools == 1,
        )
        runs, counts = self._maker.make_runs(
            pool,
            train_shards=plan.train_shards,
            eval_shards=plan.eval_shards,
            shards_of_run=plan.shards_of_run,
            passes=plan.passes_of_part(part, config.passes),
        )
        for run in runs:
            if run.shards is None:
                label = self._job.name_of_shard(run.split, run.shard)
            else:
                label = f"{run.split}-{run.shard:06d}"
            yield label, writer.add(run.parts())
        yield _store_counts(writer, counts)


def partition_group(
    group: tuple[str, Iterable[BlobReference]], job: ExamplesJob
) -> Iterator[tuple[str, BlobReference]]:
    """Split the runs of a group into runs of its shards, some megabytes at a time.

    For terabytes of text, a pool has one or two records for each of 524,288 shards. References to
    so many runs would be larger than the records, so pools make runs for groups of shards.

    Args:
        group: its label, and references to runs.
        job: shards and store.

    Yields:
        The name of a shard, and a reference to a run.
    """
    label, references = group
    split = label.partition("-")[0]

    def partition(writer: BlobWriter) -> Iterator[LabeledBlob]:
        for blobs in _read_some(job.store, references, _RUN_BYTES):
            for run in split_group_runs(split, blobs):
                yield job.name_of_shard(split, run.shard), writer.add(run.parts())

    for name, reference in job.store.once(f"{GROUP}-{label}", partition):
        yield str(name), reference


def write_shard_once(
    shard: tuple[str, Iterable[BlobReference | None]], job: ExamplesJob
) -> Iterator[tuple[str, str]]:
    """Merge a shard's runs into its file, unless that is finished.

    Args:
        shard: its name, and references to runs, with a None among them, so that a shard without
            runs is written, too.
        job: output and store.

    Yields:
        The name and the SHA-256.
    """
    check_shared(job.work)
    name, references = shard
    path = path_of(job.output) / name
    note = path_of(job.work) / f"{name}.written.json"
    is_new = not path.is_file()
    sha256 = finished_sha256(note, path)
    if sha256 is None:
        runs = [reference for reference in references if reference is not None]
        parts = merge_runs(job.store, runs)
        sha256 = write_shard(path, parts, compression=job.config.compression)
        note_finished(note, path, sha256=sha256)
    if is_new:
        report_progress(Progress.SHARDS, 1)
    yield name, sha256


def _store_counts(writer: BlobWriter, counts: dict[str, int]) -> LabeledBlob:
    return COUNTS, writer.add([json.dumps(counts).encode()])


def _report_counts(store: BlobStore, reference: BlobReference) -> Output:
    """Return counts as data, and add them to the runner's counters.

    The runner's counters may include work that was done twice.
    """
    counts = json.loads(store.read(reference))
    for name, amount in counts.items():
        Metrics.counter(COUNTS, name).inc(amount)
    return Output(COUNTS, Counter(counts))


def _read_some(
    store: BlobStore, references: Iterable[BlobReference], most_bytes: int
) -> Iterator[list[bytes]]:
    """Yield blobs together, up to a number of bytes."""
    loaded: list[bytes] = []
    size = 0
    for reference in references:
        if loaded and size + reference.length > most_bytes:
            yield loaded
            loaded = []
            size = 0
        loaded.append(store.read(reference))
        size += reference.length
    if loaded:
        yield loaded
