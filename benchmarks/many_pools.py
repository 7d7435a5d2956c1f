"""The numbers of a terabyte on one machine: its pools and shards, with next to no text in each.

    python benchmarks/many_pools.py [--pools 32768] [--shards 4096] [--workers 1] [--output data]

A terabyte of text has 32,768 pools; a hundred thousand are asked for with `--pools 131072`. What
grows with these numbers and not with the text is measured: files, memory, seconds. The records are
counted in the end, and the shards are all there.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import sys
import time
from pathlib import Path

import numpy as np

from bert_tf.base.console import Console
from bert_tf.config.section import build_section
from bert_tf.config.sections import RunnerConfig
from bert_tf.config.sections.data import PreprocessConfig
from bert_tf.data.text.vocab_file import SPECIAL_TOKENS
from pipeline.beam.blobs import BlobStore
from pipeline.beam.files import match_files
from pipeline.beam.runner import run_pipeline
from pipeline.corpus.read import ReadDocuments
from pipeline.corpus.readers.formats import look_at_text
from pipeline.corpus.report import ReportCorpus
from pipeline.examples.plan import ExamplesPlan
from pipeline.examples.steps import ExamplesJob
from pipeline.examples.transforms import WriteExamples, read_example_counts

WORDS = [f"{first}{second}" for first in "bcdfghjklm" for second in "aeiou"]
DOCUMENTS_OF_POOL = 2
BLOCK_MEGABYTES = 0.1


def write_corpus(path: Path, documents: int) -> None:
    """Documents of two sentences of five words."""
    words = np.array(WORDS)[np.random.default_rng(0).integers(0, len(WORDS), (documents, 2, 5))]
    with path.open("w", encoding="utf-8") as stream:
        for first, second in words:
            stream.write(f"{' '.join(first)}\n{' '.join(second)}\n\n")


def run(options: argparse.Namespace) -> dict[str, float]:
    """Make the records, and return the measures."""
    output = Path(options.output).absolute()
    work = output / "work"
    shutil.rmtree(output, ignore_errors=True)
    work.mkdir(parents=True)
    corpus = output / "corpus.txt"
    write_corpus(corpus, DOCUMENTS_OF_POOL * options.pools)
    values = {
        "input": [str(corpus)], "vocab": "unused", "output": str(output), "max_seq_length": 32,
        "max_predictions_per_seq": 5, "dupe_factor": 1, "block_megabytes": BLOCK_MEGABYTES,
    }  # fmt: skip
    config = build_section(PreprocessConfig, values)
    plan = ExamplesPlan(pools=options.pools, train_shards=options.shards, eval_shards=1)
    vocab = [*SPECIAL_TOKENS, *WORDS]
    store = BlobStore(str(work))
    job = ExamplesJob(config, vocab, plan, store, output=str(output), work=str(work))
    files = match_files(config.input)
    begin = time.monotonic()
    run_pipeline(
        RunnerConfig(workers=options.workers),
        lambda pipeline: (
            pipeline
            | ReadDocuments(config, files, look_at_text(config, files).layouts, store=store)
            | WriteExamples(job)
            | ReportCorpus(str(work))
        ),
        console=Console(),
        input_bytes=corpus.stat().st_size,
    )
    seconds = time.monotonic() - begin
    counts = read_example_counts(str(work))
    missing = [
        name
        for split in ("train", "eval")
        for name in job.shard_names(split)
        if not (output / name).exists()
    ]
    assert not missing, missing[:3]
    assert counts["documents/train"] + counts["documents/eval"] == DOCUMENTS_OF_POOL * options.pools
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return {
        "pools": options.pools,
        "buckets": plan.buckets,
        "shards": options.shards + 1,
        "shards of a run": plan.shards_of_run,
        "examples": counts["examples/train"] + counts["examples/eval"],
        "files in the work folder": sum(1 for _ in work.iterdir()),
        "seconds": round(seconds, 1),
        "processor seconds": round(sum(usage.ru_utime + usage.ru_stime for usage in usages), 1),
        "peak memory, MB": round(max(usage.ru_maxrss for usage in usages) / 1e3),
    }


def main() -> None:
    """Print the measurements as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pools", type=int, default=32_768)
    parser.add_argument("--shards", type=int, default=4096)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--output", default="many-pools")
    json.dump(run(parser.parse_args()), sys.stdout, indent=2)


if __name__ == "__main__":
    main()
