"""Recall of `--exclude` on planted texts, its false alarms on clean ones, and its speed.

    python benchmarks/decontamination.py CORPUS [CORPUS ...] --exclude FILE [FILE ...]
        [--megabytes 100] [--seed 1] [--shown 5]

The corpora (any format that `preprocess` reads) are repeated, the sentences of each document in
another order, up to so many megabytes. Every text of the files to exclude is planted in other
letter case and with other punctuation:

- alone: as a document of its own;
- paragraph, sentence: as one between those of a few sentences of the corpus, the next of which
  begins with a capital letter (the splitter ends no sentence before a small one);
- inside: in the middle of a sentence, without punctuation around it.

Printed are, by file and length of the texts, how many planted documents are dropped; the clean
documents that are dropped, with examples of the shared text; and megabytes per second of processor
time, of making blocks without `--exclude`, and of `--exclude` by itself.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import tempfile
import time
from collections import Counter
from collections.abc import Iterator

import numpy as np

from bert_tf.base.processor import describe_processor
from bert_tf.config.sections import PreprocessConfig
from pipeline.beam.blobs import BlobStore
from pipeline.beam.files import FileInfo, match_files
from pipeline.corpus.curation.excluded_files import read_texts, store_excluded
from pipeline.corpus.documents import DocumentRules, make_block
from pipeline.corpus.raw_block import RawBlock, Texts
from pipeline.corpus.readers.formats import look_at_text, make_reader

KINDS = ("alone", "paragraph", "sentence", "inside")
LENGTHS = {1: "1 to 3", 4: "4 to 7", 8: "8 to 12", 13: "13 or more"}
BLOCK_BYTES = 16_000_000
CLEAN = -1


@dataclasses.dataclass(frozen=True)
class Row:
    text: str
    planted: int  # number of the text, or CLEAN
    kind: str = ""


def sentences_of(config: PreprocessConfig) -> list[list[list[str]]]:
    """Sentences of the lines of the documents of a corpus."""
    files = match_files(config.input)
    layouts = look_at_text(config, files).layouts
    found = []
    for file in files:
        reader = make_reader(file.path, config, layouts).resolved(file.path)
        for split in reader.splits(file.path, BLOCK_BYTES):
            for raw in reader.read_split(file.path, split, BLOCK_BYTES):
                block = make_block(raw, DocumentRules())
                sentences, bounds = block.sentences.to_pylist(), block.line_offsets.tolist()
                lines = [sentences[a:b] for a, b in itertools.pairwise(bounds)]
                bounds = block.lines_of_documents.tolist()
                found += [lines[a:b] for a, b in itertools.pairwise(bounds)]
    return found


def shuffled(document: list[list[str]], random: np.random.Generator) -> list[str]:
    sentences = [sentence for line in document for sentence in line]
    order = iter(random.permutation(len(sentences)).tolist())
    return [" ".join(sentences[next(order)] for _ in line) for line in document]


def texts_of(config: PreprocessConfig, files: list[FileInfo]) -> tuple[list[str], list[int]]:
    texts, owners = [], []
    for number, file in enumerate(files):
        seen = set()
        for block, bounds in read_texts(file, config):
            sentences = block.sentences.to_pylist()
            for first, last in itertools.pairwise(bounds):
                seen.add(" ".join(sentences[first:last]))
        texts += sorted(seen)
        owners += [number] * len(seen)
    return texts, owners


def plant(text: str, kind: str, host: list[str]) -> str:
    """Return a document around a text, which is in capitals and between other marks."""
    middle = len(host) // 2
    planted = text.upper().replace(" , ", " ; ").strip(" .!?")
    before, after = " ".join(host[:middle]), " ".join(host[middle:])
    if kind == "alone":
        return f'"{planted}!"'
    if kind == "paragraph":
        return f"{before}\n* {planted}\n{after}"
    if kind == "sentence":
        return f"{before} {planted}. {after[0].upper()}{after[1:]}"
    half = host[middle].split()
    place = len(half) // 2
    return f"{before} {' '.join(half[:place])} {planted} {' '.join(half[place:])} {after}"


def rows_of(
    documents: list[list[list[str]]], texts: list[str], size: int, random: np.random.Generator
) -> list[Row]:
    rows, written = [], 0
    while written < size:
        for document in documents:
            rows.append(Row("\n".join(shuffled(document, random)), CLEAN))
            written += len(rows[-1].text.encode())
    hosts = [
        sentences[:6]
        for document in documents
        if len(sentences := [sentence for line in document for sentence in line]) >= 6
    ]
    for number, text in enumerate(texts):
        for kind in KINDS:
            host = hosts[random.integers(len(hosts))]
            rows.append(Row(plant(text, kind, host), number, kind))
    return [rows[place] for place in random.permutation(len(rows))]


def blocks_of(rows: list[Row]) -> Iterator[RawBlock]:
    """Rows in blocks; lines are their numbers."""
    texts, lines, size = [], [], 0
    for number, row in enumerate(rows):
        texts.append(row.text.encode())
        lines.append(number)
        size += len(texts[-1])
        if size >= BLOCK_BYTES or number == len(rows) - 1:
            yield RawBlock(source="rows", index=number, texts=Texts.of_rows(texts, lines))
            texts, lines, size = [], [], 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("corpus", nargs="+")
    parser.add_argument("--exclude", nargs="+", required=True)
    parser.add_argument("--megabytes", type=float, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--shown", type=int, default=5)
    arguments = parser.parse_args()
    random = np.random.default_rng(arguments.seed)
    config = PreprocessConfig(input=tuple(arguments.corpus), exclude=tuple(arguments.exclude))
    files = match_files(config.exclude)
    texts, owners = texts_of(config, files)
    rows = rows_of(sentences_of(config), texts, int(arguments.megabytes * 1e6), random)
    number_of_clean = sum(row.planted == CLEAN for row in rows)
    print(f"{describe_processor()}; {number_of_clean:,} documents, {len(texts):,} texts to plant")

    dropped = np.ones(len(rows), np.bool_)
    examples, seconds = [], dict.fromkeys(("blocks", "exclude", "bytes"), 0.0)
    with tempfile.TemporaryDirectory() as folder:
        exclusion, warnings = store_excluded(config, files, BlobStore(folder))
        assert exclusion is not None, warnings
        rules = DocumentRules()
        warm = make_block(next(blocks_of(rows[:100])), rules)
        exclusion.apply(warm)
        for raw in blocks_of(rows):
            begin = time.process_time()
            block = make_block(raw, rules)
            middle = time.process_time()
            kept = exclusion.apply(block)
            seconds["blocks"] += middle - begin
            seconds["exclude"] += time.process_time() - middle
            seconds["bytes"] += raw.texts.data.nbytes
            dropped[kept.document_lines] = False
            examples += [each for each in kept.evidence.shared if rows[each.line].planted == CLEAN]
    report(rows, texts, [files[owner].path for owner in owners], dropped)
    clean = [row.planted == CLEAN for row in rows]
    print(f"clean documents dropped: {int(dropped[clean].sum()):,} of {number_of_clean:,}")
    distinct = {shared.text.casefold(): shared for shared in examples}
    print(f"they share {len(distinct):,} distinct texts, such as")
    for each in [*distinct.values()][: arguments.shown]:
        print(f"  {each.words} words: {each.text[:200]}  ({each.exclude}:{each.exclude_line})")
    for name in ("blocks", "exclude"):
        print(f"{name}: {seconds['bytes'] / 1e6 / seconds[name]:.1f} MB per CPU second")


def report(rows: list[Row], texts: list[str], paths: list[str], dropped: np.ndarray) -> None:
    lengths = [
        max(least for least in LENGTHS if least <= max(words, 1))
        for words in (len("".join(c if c.isalnum() else " " for c in t).split()) for t in texts)
    ]
    found = Counter[tuple[str, int, str]]()
    for row, is_dropped in zip(rows, dropped.tolist(), strict=True):
        if row.planted != CLEAN:
            found[paths[row.planted], lengths[row.planted], row.kind] += is_dropped
    numbers = Counter(zip(paths, lengths, strict=True))
    print(f"{'file':<40} {'words':<10} {'texts':>6}" + "".join(f" {kind:>9}" for kind in KINDS))
    for (path, least), number in sorted(numbers.items()):
        of_kinds = "".join(f" {found[path, least, kind]:>9,}" for kind in KINDS)
        print(f"{path[-40:]:<40} {LENGTHS[least]:<10} {number:>6,}{of_kinds}")


if __name__ == "__main__":
    main()
