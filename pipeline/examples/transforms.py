"""The Beam transforms between blocks of documents and finished shards."""

from __future__ import annotations

import dataclasses
import json
import pickle
from collections import Counter
from collections.abc import Iterable, Iterator

import apache_beam as beam
import numpy as np
from apache_beam.metrics import Metrics

from bert_tf.base.json_files import finished_sha256, note_finished
from bert_tf.config.sections.data import PreprocessConfig
from bert_tf.data.examples.random_numbers import combine_keys, seed_key
from bert_tf.data.examples.token_counts import write_token_counts
from bert_tf.data.records.schema import shard_name
from bert_tf.data.text.lowercase import lowercase_of
from bert_tf.data.text.normalizer import is_ideograph
from bert_tf.data.text.wordpiece import WordPieceTokenizer
from pipeline.beam.blobs import BlobReference, BlobStore, BlobWriter, LabeledBlob
from pipeline.beam.files import check_shared, read_shared_files, write_shared_file
from pipeline.beam.progress import Progress, report_progress
from pipeline.beam.stored_path import path_of
from pipeline.corpus.blocks.document_block import DocumentBlock
from pipeline.corpus.read import FinishedBlock, block_work
from pipeline.corpus.report import BlockFacts, facts_of_block
from pipeline.examples.plan import MAX_BUCKETS, ExamplesPlan
from pipeline.examples.pool import ExampleMaker, sort_pool
from pipeline.examples.runs import merge_runs, write_shard
from pipeline.examples.shard_groups import PartitionGroups, group_label
from pipeline.examples.tokenized import (
    TokenizedDocuments,
    concatenate,
    from_bytes,
    partition_documents,
    to_bytes,
    tokenize_block,
)

# The kinds of work, besides that on blocks, that an interrupted run may have finished.
BUCKET, POOL = "bucket", "pool"
TOKEN_COUNTS, FACTS = "token counts", "facts"
NO_TOKENS = "no tokens"
NO_OTHER_DOCUMENT = "one-sentence chunk without another document"
_PARTITION_CHUNK_BYTES = 64_000_000
_COUNTS = "counts"
_COUNTS_FILE = "example-counts.json"
_HASHES_FILE = "shard-hashes.json"


def _store_counts(writer: BlobWriter, counts: dict[str, int]) -> LabeledBlob:
    return _COUNTS, writer.add([json.dumps(counts).encode()])


def _report_counts(store: BlobStore, reference: BlobReference) -> beam.pvalue.TaggedOutput:
    """Shows counts on the runner's pages, and returns them as data.

    A runner's counters may include work that was done twice; data do not.
    """
    counts = json.loads(store.read(reference))
    for name, amount in counts.items():
        Metrics.counter(_COUNTS, name).inc(amount)
    return beam.pvalue.TaggedOutput(_COUNTS, Counter(counts))


@dataclasses.dataclass(frozen=True)
class ExamplesJob:
    """What every transform of a run needs; sent to the workers.

    Attributes:
        config: the job's section.
        vocab: tokens in the order of their ids.
        plan: pools and shards.
        store: where bulky data lie on their way.
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
        """Whether tokens are counted, which weights random ones here or in training."""
        return self.config.random_tokens == "unigram" or self.config.masking == "dynamic"

    def shard_names(self, split: str) -> list[str]:
        """Names of the files of "train" or "eval"."""
        return [self.name_of_shard(split, number) for number in range(self.plan.shards(split))]

    def name_of_shard(self, split: str, number: int) -> str:
        """Name of one of these files."""
        shards = self.plan.shards(split)
        return shard_name(split, number, shards, compression=self.config.compression)


class WriteExamples(beam.PTransform):
    """From `DocumentBlock`s to shards of records; what it returns is for `ReportCorpus`."""

    def __init__(self, job: ExamplesJob):
        super().__init__()
        self._job = job

    def expand(
        self, blocks: beam.PCollection[DocumentBlock | FinishedBlock]
    ) -> beam.PCollection[BlockFacts]:
        """Tokenizes, partitions into pools, makes examples, partitions into shards, writes."""
        job = self._job
        tokenized = blocks | "TokenizeBlocks" >> beam.ParDo(TokenizeBlocks(job)).with_outputs(
            TOKEN_COUNTS, FACTS, _COUNTS, main="documents"
        )
        documents = tokenized.documents | "GatherBuckets" >> beam.GroupByKey()
        if job.plan.pools > MAX_BUCKETS:
            documents = (
                documents
                | "PartitionBuckets" >> beam.ParDo(PartitionBuckets(job))
                | "GatherPools" >> beam.GroupByKey()
            )
        # A runner that places keys by their hash gives some workers twice the pools of others.
        documents = (
            documents
            | "DividePools" >> beam.FlatMap(_divide_pool, job.plan.parts)
            | "SpreadPools" >> beam.Reshuffle()
        )
        token_counts = None
        if job.counts_tokens:
            total = tokenized[TOKEN_COUNTS] | "SumTokenCounts" >> beam.CombineGlobally(
                SumTokenCounts(len(job.vocab))
            )
            _ = total | "WriteTokenCounts" >> beam.Map(write_token_counts, path_of(job.output))
            token_counts = beam.pvalue.AsSingleton(total)
        made = documents | "MakeExamples" >> beam.ParDo(
            MakeExamples(job), token_counts
        ).with_outputs(_COUNTS, main="runs")
        (
            (tokenized[_COUNTS], made[_COUNTS])
            | "GatherCounts" >> beam.Flatten()
            | "AddUpCounts" >> beam.CombineGlobally(_add_up_counts)
            | "WriteCounts" >> beam.Map(_write_counts, job.work)
        )
        runs = made.runs
        if job.plan.shards_of_run > 1:
            runs = (
                runs
                | "GatherGroups" >> beam.GroupByKey()
                | "PartitionGroups" >> beam.ParDo(PartitionGroups(job.store, job.name_of_shard))
            )
        # A shard without a single record is written as well.
        all_shards = (
            blocks.pipeline
            | "ListSplits" >> beam.Create(["train", "eval"])
            | "ListShards" >> beam.FlatMap(_empty_shards, job)
        )
        (
            (runs, all_shards)
            | "AddEmptyShards" >> beam.Flatten()
            | "GatherShards" >> beam.GroupByKey()
            | "WriteShards" >> beam.ParDo(WriteShard(job))
            | "GatherHashes" >> beam.combiners.ToDict()
            | "WriteHashes" >> beam.Map(_write_hashes, job.work)
        )
        return tokenized[FACTS]


def read_example_counts(work: str) -> Counter[str]:
    """What `WriteExamples` counted, by name.

    Raises:
        InputError: it has not arrived.
    """
    (text,) = read_shared_files(work, _COUNTS_FILE)
    return Counter(json.loads(text))


def read_shard_hashes(work: str) -> dict[str, str]:
    """SHA-256 of every shard that `WriteExamples` wrote, by name.

    Raises:
        InputError: they have not arrived.
    """
    (text,) = read_shared_files(work, _HASHES_FILE)
    return json.loads(text)


def _add_up_counts(counts: Iterable[Counter[str]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for some in counts:
        total.update(some)
    return total


def _write_counts(counts: Counter[str], work: str) -> None:
    write_shared_file(work, _COUNTS_FILE, json.dumps(counts).encode())


def _write_hashes(hashes: dict[str, str], work: str) -> None:
    write_shared_file(work, _HASHES_FILE, json.dumps(hashes).encode())


def pools_of(hashes: np.ndarray, pools: int) -> np.ndarray:
    """The pool of each document, int64 [documents]: a function of its text, so copies meet."""
    return (combine_keys(hashes, seed_key(0, "pools")) % np.uint64(pools)).astype(np.int64)


class TokenizeBlocks(beam.DoFn):
    """Turns blocks into (bucket, reference to documents), and counts their tokens."""

    def __init__(self, job: ExamplesJob):
        self._job = job

    def setup(self) -> None:
        """Builds the tokenizer once per worker: it takes half a second and cannot be pickled."""
        check_shared(self._job.work)
        config = self._job.config
        self._tokenizer = WordPieceTokenizer(
            self._job.vocab, lowercase=lowercase_of(config.lowercase, config.keep_accents)
        )
        self._ideographs = [is_ideograph(entry) for entry in self._job.vocab]

    def process(
        self, block: DocumentBlock | FinishedBlock
    ) -> Iterator[tuple[int, BlobReference] | beam.pvalue.TaggedOutput]:
        """Yields a reference for each bucket that has documents of this block, and its facts."""
        store = self._job.store
        for label, reference in store.once(
            block_work(block), lambda writer: self._tokenize(block, writer)
        ):
            if label == _COUNTS:
                yield _report_counts(store, reference)
            elif label == FACTS:
                yield beam.pvalue.TaggedOutput(FACTS, pickle.loads(store.read(reference)))
            elif label == TOKEN_COUNTS:
                counts = np.frombuffer(store.read(reference), np.int64)
                yield beam.pvalue.TaggedOutput(TOKEN_COUNTS, counts)
            else:
                yield int(label), reference

    def _tokenize(
        self, block: DocumentBlock | FinishedBlock, writer: BlobWriter
    ) -> Iterator[LabeledBlob]:
        assert isinstance(block, DocumentBlock)
        plan = self._job.plan
        tokenized, without_tokens = tokenize_block(block, self._tokenizer)
        tokens = tokenized.documents.tokens
        yield FACTS, writer.add([pickle.dumps(facts_of_block(block))])
        token_counts = np.bincount(tokens, minlength=len(self._job.vocab)).astype(np.int64)
        counted = {
            "tokens": len(tokens),
            "tokens_unknown": int(token_counts[self._tokenizer.unk_id]),
            "tokens_ideographic": int(token_counts[self._ideographs].sum()),
            f"dropped/{NO_TOKENS}": without_tokens,
        }
        yield _store_counts(writer, counted)
        pools = pools_of(tokenized.hashes, plan.pools)
        for bucket, documents in partition_documents(tokenized, plan.buckets_of_pools(pools)):
            yield bucket, writer.add(to_bytes(documents))
        if self._job.counts_tokens:
            yield TOKEN_COUNTS, writer.add([token_counts.tobytes()])


class SumTokenCounts(beam.CombineFn):
    """Adds up int64 [vocabulary] arrays.

    Args:
        size: of the vocabulary.
    """

    def __init__(self, size: int):
        self._size = size

    def create_accumulator(self) -> np.ndarray:
        """Zeros."""
        return np.zeros(self._size, np.int64)

    def add_input(self, total: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Counts of one more block."""
        return total + counts

    def merge_accumulators(self, totals: Iterable[np.ndarray]) -> np.ndarray:
        """Counts of several workers."""
        return np.sum([self.create_accumulator(), *totals], axis=0)

    def extract_output(self, total: np.ndarray) -> np.ndarray:
        """Counts of the corpus."""
        return total


class PartitionBuckets(beam.DoFn):
    """Splits the documents of a bucket into its pools, a bounded number of bytes at a time."""

    def __init__(self, job: ExamplesJob):
        self._job = job

    def process(
        self, bucket: tuple[int, Iterable[BlobReference]]
    ) -> Iterator[tuple[int, BlobReference]]:
        """Yields (pool, reference to documents)."""
        number, references = bucket
        for pool, reference in self._job.store.once(
            f"{BUCKET}-{number:06d}", lambda writer: self._partition(references, writer)
        ):
            yield int(pool), reference

    def _partition(
        self, references: Iterable[BlobReference], writer: BlobWriter
    ) -> Iterator[LabeledBlob]:
        for documents in _load_some(self._job.store, references):
            pools = pools_of(documents.hashes, self._job.plan.pools)
            for pool, members in partition_documents(documents, pools):
                yield pool, writer.add(to_bytes(members))


def _load_some(
    store: BlobStore, references: Iterable[BlobReference]
) -> Iterator[TokenizedDocuments]:
    loaded: list[TokenizedDocuments] = []
    size = 0
    for reference in references:
        if loaded and size + reference.length > _PARTITION_CHUNK_BYTES:
            yield concatenate(loaded)
            loaded, size = [], 0
        loaded.append(from_bytes(store.read(reference)))
        size += reference.length
    if loaded:
        yield concatenate(loaded)


def _divide_pool(
    pool: tuple[int, Iterable[BlobReference]], parts: int
) -> Iterator[tuple[int, int, list[BlobReference]]]:
    number, references = pool
    documents = list(references)
    for part in range(parts):
        yield number, part, documents


class MakeExamples(beam.DoFn):
    """Turns a part of a pool into (name of a shard or group of shards, reference to a run)."""

    def __init__(self, job: ExamplesJob):
        self._job = job

    def setup(self) -> None:
        """The tables of the vocabulary are built once per worker, when the counts are there."""
        self._maker: ExampleMaker | None = None

    def process(
        self, task: tuple[int, int, list[BlobReference]], token_counts: np.ndarray | None
    ) -> Iterator[tuple[str, BlobReference] | beam.pvalue.TaggedOutput]:
        """Yields runs for each shard, or group, that gets examples of this part of a pool."""
        pool, part, references = task
        store = self._job.store
        for label, reference in store.once(
            f"{POOL}-{pool:06d}-{part:03d}",
            lambda writer: self._make(references, part, token_counts, writer),
        ):
            if label == _COUNTS:
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
        plan, store = self._job.plan, self._job.store
        if self._maker is None:
            self._maker = ExampleMaker(self._job.config, self._job.vocab, token_counts)
        runs, counts = self._maker.make_runs(
            sort_pool(
                concatenate([from_bytes(store.read(reference)) for reference in references]),
                seed=self._job.config.seed,
                eval_fraction=self._job.config.eval_fraction,
                is_only_pool=plan.pools == 1,
            ),
            train_shards=plan.train_shards,
            eval_shards=plan.eval_shards,
            shards_of_run=plan.shards_of_run,
            passes=plan.passes_of_part(part, self._job.config.passes),
        )
        for run in runs:
            if run.shards is None:
                label = self._job.name_of_shard(run.split, run.shard)
            else:
                label = group_label(run.split, run.shard)
            yield label, writer.add(run.parts())
        counted = {
            "truncations": counts.truncated,
            "documents_of_one_sentence": counts.single,
            "tokens_reached": counts.reached,
            "row_tokens": counts.row_tokens,
            "masked": counts.masked,
            "labeled": counts.labeled,
            f"chunks_left_out/{NO_OTHER_DOCUMENT}": counts.left_out,
        }
        for split, documents, examples in zip(
            ("train", "eval"), counts.documents, counts.examples, strict=True
        ):
            # Every part has the documents of the whole pool.
            counted |= {
                f"documents/{split}": documents if part == 0 else 0,
                f"examples/{split}": examples,
            }
        if part == 0:
            counted["sentences_cut"] = counts.sentences_cut
        yield _store_counts(writer, counted)


def _empty_shards(split: str, job: ExamplesJob) -> Iterator[tuple[str, None]]:
    """Lists the names in a worker: half a million are too much for the description of a job."""
    return ((name, None) for name in job.shard_names(split))


class WriteShard(beam.DoFn):
    """Merges the runs of a shard into its file, unless that is there as it was written."""

    def __init__(self, job: ExamplesJob):
        self._job = job

    def setup(self) -> None:
        """Checks that the output folder is the one of the submitting process."""
        check_shared(self._job.work)

    def process(
        self, shard: tuple[str, Iterable[BlobReference | None]]
    ) -> Iterator[tuple[str, str]]:
        """Writes one file; yields its name and SHA-256."""
        name, references = shard
        path = path_of(self._job.output) / name
        note = path_of(self._job.work) / f"{name}.written.json"
        is_new = not path.is_file()
        sha256 = finished_sha256(note, path)
        if sha256 is None:
            runs = [reference for reference in references if reference is not None]
            sha256 = write_shard(
                path,
                merge_runs(self._job.store, runs),
                compression=self._job.config.compression,
            )
            note_finished(note, path, sha256=sha256)
        if is_new:
            report_progress(Progress.SHARDS, 1)
        yield name, sha256
