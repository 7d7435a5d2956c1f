"""Seconds and pieces per word of learning a vocabulary: ours against HuggingFace's trainer.

    python benchmarks/vocabulary.py --input 'corpus/*.txt.gz' [--input ...] [--vocab-size 30000]
        [--other wikipedia.xml.bz2] [--rounds 3] [--held-out 0.05]

The corpus is read once; one document in twenty is held out and the rest written as plain text, one
sentence per line. Both sides then turn that file into a vocabulary, in turns, in one process: ours
with the whole `vocab` job (Beam, manifest and all), theirs with `BertWordPieceTokenizer.train` (all
cores). A first round over a few documents compiles our kernels and is not counted. Both
vocabularies write the held-out documents' words with the longest pieces first, and those of the
files given by --other, for text of another kind.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from tokenizers import BertWordPieceTokenizer

from bert_tf.base.console import Console
from bert_tf.base.processor import describe_processor
from bert_tf.config.section import build_section
from bert_tf.config.sections import RunnerConfig, VocabConfig
from pipeline.beam.files import match_files
from pipeline.corpus.document_block import DocumentBlock
from pipeline.corpus.documents import DocumentRules
from pipeline.corpus.read import ReadTask, plan_reading, read_blocks
from pipeline.corpus.readers.formats import make_reader
from pipeline.jobs import vocabulary
from pipeline.outputs.job_spec import RunOptions
from pipeline.vocabulary.counting import held_out_documents
from pipeline.vocabulary.quality import Fit, measure_fit
from pipeline.vocabulary.word_counter import WordCounter

_BLOCK_BYTES = 16_000_000


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--input", action="append", required=True)
    parser.add_argument("--other", action="append", default=[])
    parser.add_argument("--vocab-size", type=int, default=30_000)
    parser.add_argument("--held-out", type=float, default=0.05)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    print(f"processor: {describe_processor()}")
    with tempfile.TemporaryDirectory() as folder:
        text, held_out = Path(folder, "text.txt"), WordCounter(lowercase=True, max_word_length=100)
        few = Path(folder, "few.txt")
        write_corpus(tuple(arguments.input), arguments.held_out, text, held_out)
        few.write_bytes(b"\n".join(text.read_bytes().splitlines()[:1000]))
        our_vocabulary(few, folder, 500)
        seconds: dict[str, list[float]] = {"ours": [], "peer": []}
        for _ in range(arguments.rounds):
            for name, learn in (("ours", our_vocabulary), ("peer", peer_vocabulary)):
                start = time.perf_counter()
                pieces = learn(text, folder, arguments.vocab_size)
                seconds[name].append(time.perf_counter() - start)
                if name == "ours":
                    ours = pieces
                else:
                    peer = pieces
        print(
            f"text: {text.stat().st_size / 1e6:.1f} MB; {len(held_out):,} distinct held-out words"
        )
    texts = {"held out": held_out}
    if arguments.other:
        texts["other text"] = WordCounter(lowercase=True, max_word_length=100)
        for block in blocks_of(tuple(arguments.other)):
            texts["other text"].count(block.sentences)
    print_comparison(seconds, ours, peer)
    for name, words in texts.items():
        print_fits(name, *(measure_fit(pieces, *words.words()) for pieces in (ours, peer)))
    print(f"entries in both: {len(set(ours) & set(peer)):,}")


def blocks_of(patterns: tuple[str, ...]) -> Iterator[DocumentBlock]:
    """Read files as the jobs do."""
    config = build_section(VocabConfig, {"input": patterns, "output": "unused"})
    for file in match_files(patterns):
        rules = DocumentRules.from_config(config)
        task = ReadTask(file.path, make_reader(file.path, config), rules=rules)
        for planned in plan_reading(task, _BLOCK_BYTES):
            yield from read_blocks(planned, _BLOCK_BYTES)


def write_corpus(
    patterns: tuple[str, ...], fraction: float, text: Path, held_out: WordCounter
) -> None:
    """Write the documents to learn from and count the words of the others."""
    with text.open("w", encoding="utf-8") as stream:
        for block in blocks_of(patterns):
            split_block(block, fraction, stream, held_out)


def split_block(block: DocumentBlock, fraction: float, stream, held_out: WordCounter) -> None:
    """Write or count each document of a block."""
    is_held_out = held_out_documents(block, fraction)
    bounds = block.document_offsets.tolist()
    for document in range(block.num_documents):
        sentences = block.sentences[bounds[document] : bounds[document + 1]]
        if is_held_out[document]:
            held_out.count(sentences)
        else:
            stream.write("\n".join(sentences.to_pylist()) + "\n\n")


def our_vocabulary(text: Path, folder: str, vocab_size: int) -> list[str]:
    """Run the `vocab` job."""
    output = Path(folder, "ours.txt")
    values = {
        "input": (str(text),),
        "output": str(output),
        "vocab_size": vocab_size,
        "text_layout": "sentences",
        "held_out_fraction": 0,
    }
    with Path(os.devnull).open("w") as silence:
        vocabulary.run(
            build_section(VocabConfig, values),
            build_section(RunnerConfig, {}),
            RunOptions(overwrite=True, console=Console(silence)),
        )
    return output.read_text(encoding="utf-8").splitlines()


def peer_vocabulary(text: Path, folder: str, vocab_size: int) -> list[str]:
    """Run HuggingFace's trainer with the same settings."""
    tokenizer = BertWordPieceTokenizer(lowercase=True)
    tokenizer.train(
        [str(text)],
        vocab_size=vocab_size,
        min_frequency=2,
        limit_alphabet=1000,
        show_progress=False,
    )
    shutil.rmtree(Path(folder, "peer"), ignore_errors=True)
    Path(folder, "peer").mkdir()
    tokenizer.save_model(str(Path(folder, "peer")))
    return Path(folder, "peer", "vocab.txt").read_text(encoding="utf-8").splitlines()


def print_comparison(seconds: dict[str, list[float]], ours: list[str], peer: list[str]) -> None:
    """Print ours, the peer's and the ratio, a line a figure."""
    print(f"{'':34}{'ours':>10}{'peer':>10}{'ratio':>8}")
    for name, value in (("fastest", min), ("median", statistics.median)):
        row(f"seconds, {name} of {len(seconds['ours'])}", *(value(seconds[s]) for s in seconds))
    row("entries", len(ours), len(peer))


def print_fits(text: str, ours: Fit | None, peer: Fit | None) -> None:
    """Print how the words of a text are written."""
    for key in ("words", "pieces_per_word", "unknown_fraction", "whole_word_fraction"):
        row(f"{key.replace('_', ' ')}, {text}", getattr(ours, key), getattr(peer, key))


def row(name: str, ours: float, peer: float) -> None:
    """Print one figure."""
    ratio = ours / peer if peer else float(np.nan)
    print(f"{name:34}{ours:>10,.5g}{peer:>10,.5g}{ratio:>8.4f}")


if __name__ == "__main__":
    main()
