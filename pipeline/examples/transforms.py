"""The Beam transform between blocks of documents and finished shards."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator

import apache_beam as beam
import numpy as np

from bert_tf.base.console import Advance
from bert_tf.base.wording import quantity
from bert_tf.data.records.dataset_info import write_token_counts
from pipeline.beam.blobs import BlobReference
from pipeline.beam.files import read_shared_files, write_shared_json
from pipeline.beam.progress import Progress, ProgressLine, text_line
from pipeline.beam.stored_path import path_of
from pipeline.corpus.document_block import DocumentBlock
from pipeline.corpus.evidence import sum_counts
from pipeline.corpus.read import FinishedBlock
from pipeline.corpus.report import BlockFacts
from pipeline.examples import steps
from pipeline.examples.plan import MAX_BUCKETS
from pipeline.examples.steps import ExamplesJob

_COUNTS_FILE = "example-counts.json"
_HASHES_FILE = "shard-hashes.json"


class WriteExamples(beam.PTransform):
    """Makes shards of records from blocks; returns the facts on blocks, for `ReportCorpus`."""

    def __init__(self, job: ExamplesJob):
        super().__init__()
        self._job = job

    def expand(
        self, blocks: beam.PCollection[DocumentBlock | FinishedBlock]
    ) -> beam.PCollection[BlockFacts]:
        job = self._job
        tokenized = blocks | "TokenizeBlocks" >> beam.ParDo(steps.TokenizeBlocks(job)).with_outputs(
            steps.TOKEN_COUNTS, steps.FACTS, steps.COUNTS, main="documents"
        )
        documents = tokenized.documents | "GatherBuckets" >> beam.GroupByKey()
        if job.plan.pools > MAX_BUCKETS:
            documents = (
                documents
                | "PartitionBuckets" >> beam.FlatMap(steps.partition_bucket, job)
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
            total = tokenized[steps.TOKEN_COUNTS] | "SumTokenCounts" >> beam.CombineGlobally(
                _sum_token_counts, len(job.vocab)
            )
            _ = total | "WriteTokenCounts" >> beam.Map(write_token_counts, path_of(job.output))
            token_counts = beam.pvalue.AsSingleton(total)
        made = documents | "MakeExamples" >> beam.ParDo(
            steps.MakeExamples(job), token_counts
        ).with_outputs(steps.COUNTS, main="runs")
        (
            (tokenized[steps.COUNTS], made[steps.COUNTS])
            | "GatherCounts" >> beam.Flatten()
            | "AddUpCounts" >> beam.CombineGlobally(sum_counts)
            | "WriteCounts" >> beam.Map(write_shared_json, job.work, _COUNTS_FILE)
        )
        runs = made.runs
        if job.plan.shards_of_run > 1:
            runs = (
                runs
                | "GatherGroups" >> beam.GroupByKey()
                | "PartitionGroups" >> beam.FlatMap(steps.partition_group, job)
            )
        # Shards without records are written, too.
        all_shards = (
            blocks.pipeline
            | "ListSplits" >> beam.Create(["train", "eval"])
            # Made in a worker: half a million names are too much for the description of a job.
            | "ListShards" >> beam.FlatMap(lambda split, job: job.shard_names(split), job)
            | "WithoutRuns" >> beam.Map(lambda name: (name, None))
        )
        (
            (runs, all_shards)
            | "AddEmptyShards" >> beam.Flatten()
            | "GatherShards" >> beam.GroupByKey()
            | "WriteShards" >> beam.FlatMap(steps.write_shard_once, job)
            | "GatherHashes" >> beam.combiners.ToDict()
            | "WriteHashes" >> beam.Map(write_shared_json, job.work, _HASHES_FILE)
        )
        return tokenized[steps.FACTS]


def read_example_counts(work: str) -> Counter[str]:
    """Read the counts of `WriteExamples` by name.

    Raises:
        InputError: they are missing.
    """
    (text,) = read_shared_files(work, _COUNTS_FILE)
    return Counter(json.loads(text))


def read_shard_hashes(work: str) -> dict[str, str]:
    """Read the SHA-256 of the shards of `WriteExamples` by name.

    Raises:
        InputError: they are missing.
    """
    (text,) = read_shared_files(work, _HASHES_FILE)
    return json.loads(text)


def _sum_token_counts(counts: Iterable[np.ndarray], size: int) -> np.ndarray:
    return np.sum([np.zeros(size, np.int64), *counts], axis=0)


def _divide_pool(
    pool: tuple[int, Iterable[BlobReference]], parts: int
) -> Iterator[tuple[int, int, list[BlobReference]]]:
    number, references = pool
    documents = list(references)
    for part in range(parts):
        yield number, part, documents


def examples_line(*, earlier: int, shards: int) -> ProgressLine:
    """Return the `ProgressLine` on text read, intermediate data and shards.

    Args:
        earlier: number of shards that an earlier run has finished.
        shards: number of all shards.
    """
    of_all = f"of {quantity(shards, 'shard')} finished"

    def line(done: Counter[int], seconds: float) -> Advance | None:
        text = text_line(done, seconds)
        if text is None:
            return None
        megabytes = done[Progress.SPILLED_BYTES] / 1e6
        spilled = f"{megabytes:,.0f} MB of tokens and records, " if megabytes >= 1 else ""
        finished = earlier + done[Progress.SHARDS]
        fraction = finished / shards if done[Progress.SHARDS] else text.fraction
        return Advance(f"{text.text}; {spilled}{finished} {of_all}", fraction)

    return line
