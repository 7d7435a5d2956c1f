"""Near duplicates: quality and speed beside other libraries, and the memory of many candidates.

    python benchmarks/near_duplicates.py [--pairs 3000] [--documents 10000000] [--work /tmp]

The first table has planted pairs: texts of 100 to 700 words, and copies with 1 to 40% of the words
replaced, one after the other or scattered. Pairs whose sets of word 5-grams have a Jaccard
similarity of at least 0.8 are to be found. datasketch and rensa take part if they are installed;
their candidates are compared by all hashes, as ours are.

Then the steps run on generated records of that many documents, all of them candidates in groups of
four: one of the 64 partitions in every step, and all documents in the one that runs on one worker.

Each row is a process of its own; its peak memory includes the libraries.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import pickle
import random
import tempfile
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from bert_tf.base.processor import describe_processor
from pipeline.beam.blobs import BlobReference, BlobStore
from pipeline.beam.packing import pack
from pipeline.corpus.document_block import DocumentBlock
from pipeline.corpus.duplicates.elsewhere import pair_across
from pipeline.corpus.duplicates.find_near import (
    Nodes,
    Similar,
    connect_similar,
    describe_dropped,
    find_similar,
    pair_in_bands,
    select_candidates,
    send_left,
)
from pipeline.corpus.duplicates.folding import fold_block
from pipeline.corpus.duplicates.near_duplicates import (
    BAND,
    GRAM_WORDS,
    NUM_HASHES,
    PAIR,
    SIGNATURE,
    band_keys,
    choose_bands,
    estimated_similarity,
    pair_candidates,
    signatures_of,
)
from pipeline.corpus.duplicates.occurrences import OCCURRENCE, NamedRows

THRESHOLD = 0.8
BANDS = choose_bands(THRESHOLD)[0]
PARTITIONS, GROUP, BLOCK = 64, 4, 8192
Pair = tuple[int, int]


def plant_pairs(count: int) -> list[str]:
    """Texts; of two after each other the second is a copy of the first with replaced words."""
    source = random.Random(0)
    words = [f"w{number}" for number in range(50_000)]
    texts = []
    for pair in range(count):
        original = source.choices(words, k=source.randrange(100, 700))
        copy = list(original)
        edited = max(1, round(source.uniform(0.01, 0.4) * len(copy)))
        first = source.randrange(len(copy) - edited + 1)
        places = (
            source.sample(range(len(copy)), edited) if pair % 2 else range(first, first + edited)
        )
        for place in places:
            copy[place] = source.choice(words)
        texts += [" ".join(original), " ".join(copy)]
    return texts


def grams_of(text: str) -> set[str]:
    words = text.split()
    return {" ".join(words[i : i + GRAM_WORDS]) for i in range(len(words) - GRAM_WORDS + 1)}


def pairs_to_find(texts: list[str]) -> set[Pair]:
    grams = [grams_of(text) for text in texts]
    return {
        (left, left + 1)
        for left in range(0, len(texts), 2)
        if len(grams[left] & grams[left + 1]) >= THRESHOLD * len(grams[left] | grams[left + 1])
    }


def find_ours(texts: list[str]) -> set[Pair]:
    sketches, rows = _signed(texts)
    return _similar(pair_candidates(rows), sketches)


def _signed(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Sketches, and BAND rows whose keys are the numbers of texts."""
    numbers = np.arange(len(texts) + 1)
    block = DocumentBlock(
        source="", index=0, sentences=pa.array(texts), document_offsets=numbers,
        line_offsets=numbers, document_lines=numbers[1:],
    )  # fmt: skip
    folded = fold_block(block)
    minima, sketches = signatures_of(folded.words, folded.document_offsets, numbers[:-1])
    bands = choose_bands(THRESHOLD)
    rows = np.empty(len(texts) * bands[0], BAND)
    rows["band"] = band_keys(minima, *bands).ravel()
    rows["key"] = np.repeat(numbers[:-1], bands[0])
    return sketches, rows


def find_across(texts: list[str]) -> set[Pair]:
    """Compare the copies with the originals, as a corpus with another one."""
    sketches, rows = _signed(texts)
    of_original = rows["key"] % 2 == 0
    found = _similar(pair_across(rows[~of_original], rows[of_original]), sketches)
    return {(original, copy) for copy, original in found}


def _similar(candidates: Iterable[np.ndarray], sketches: np.ndarray) -> set[Pair]:
    found: set[Pair] = set()
    for pairs in candidates:
        left, right = (pairs[side].astype(np.int64) for side in ("left", "right"))
        similar = estimated_similarity(sketches[left], sketches[right]) >= THRESHOLD
        found.update(zip(left[similar].tolist(), right[similar].tolist(), strict=True))
    return found


def find_datasketch(texts: list[str]) -> set[Pair]:
    from datasketch import MinHash, MinHashLSH

    index = MinHashLSH(threshold=THRESHOLD, num_perm=NUM_HASHES, params=choose_bands(THRESHOLD))

    def sketch_of(text: str) -> MinHash:
        sketch = MinHash(num_perm=NUM_HASHES)
        sketch.update_batch([gram.encode() for gram in grams_of(text)])
        return sketch

    return _similar_pairs(index, map(sketch_of, texts))


def find_rensa(texts: list[str]) -> set[Pair]:
    from rensa import RMinHash, RMinHashLSH

    index = RMinHashLSH(threshold=THRESHOLD, num_perm=NUM_HASHES, num_bands=16)  # divides 128

    def sketch_of(text: str) -> RMinHash:
        sketch = RMinHash(num_perm=NUM_HASHES, seed=42)
        sketch.update(list(grams_of(text)))
        return sketch

    return _similar_pairs(index, map(sketch_of, texts))


def _similar_pairs(index: Any, made: Iterable[Any]) -> set[Pair]:
    """Add sketches to an index, and compare each with its candidates before it."""
    sketches: list[Any] = []
    found: set[Pair] = set()
    for number, sketch in enumerate(made):
        similar = (
            each for each in index.query(sketch) if sketches[each].jaccard(sketch) >= THRESHOLD
        )
        found.update((each, number) for each in similar)
        index.insert(number, sketch)
        sketches.append(sketch)
    return found


def in_process(work: Callable[..., Any], *values: Any) -> tuple[Any, float, float]:
    """Run work in a forked process: the result, CPU seconds, peak memory in GB."""
    receiver, sender = os.pipe()
    child = os.fork()
    if not child:
        with os.fdopen(sender, "wb") as stream:
            pickle.dump(work(*values), stream)
        os._exit(0)
    os.close(sender)
    with os.fdopen(receiver, "rb") as stream:
        result = pickle.load(stream)
    usage = os.wait4(child, 0)[2]
    return result, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 2**20


def compare_sides(count: int) -> None:
    texts = plant_pairs(count)
    expected = pairs_to_find(texts)
    print(f"{len(texts):,} documents, {len(expected):,} pairs to find")
    sides = {
        "ours": find_ours,
        "across": find_across,
        "datasketch": find_datasketch,
        "rensa": find_rensa,
    }
    for name, find in sides.items():
        if find not in (find_ours, find_across) and importlib.util.find_spec(name) is None:
            print(f"{name}: not installed")
            continue
        find(texts[:20])  # compiles
        found, seconds, memory = in_process(find, texts)
        correct = len(found & expected)
        print(
            f"{name}: F1 {2 * correct / (len(found) + len(expected)):.4f} "
            f"(precision {correct / len(found):.4f}, recall {correct / len(expected):.4f}), "
            f"{len(texts) / seconds:,.0f} documents per CPU second, {memory:.2f} GB"
        )


def partition_of_records(store: BlobStore, documents: int) -> dict[str, list[BlobReference]]:
    """Bands, occurrences and signatures of documents whose keys and bands are in partition 0."""
    random_numbers = np.random.default_rng(0)
    keys = in_partition(0, random_numbers, documents)
    bands = np.repeat(in_partition(0, random_numbers, BANDS * documents // GROUP), GROUP)
    stored: dict[str, list[BlobReference]] = {"bands": [], "signatures": [], "occurrences": []}
    with store.writer() as writer:
        for number, begin in enumerate(range(0, documents, BLOCK)):
            own = keys[begin : begin + BLOCK]
            rows = np.empty(len(own) * BANDS, BAND)
            rows["band"] = bands[begin * BANDS : begin * BANDS + len(rows)]
            rows["key"] = own.reshape(-1, GROUP).repeat(BANDS, axis=0).ravel()
            stored["bands"].append(writer.add([rows.tobytes()]))
            signatures = np.zeros(len(own), SIGNATURE)  # all are equal
            signatures["key"] = own
            stored["signatures"].append(writer.add([signatures.tobytes()]))
            occurrences = np.zeros(len(own), OCCURRENCE)
            occurrences["key"], occurrences["identity"] = own, own[::-1]
            part = b"".join(pack(NamedRows([("file", number)], occurrences)))
            stored["occurrences"].append(writer.add([part]))
    return stored


def in_partition(number: int, source: np.random.Generator, count: int) -> np.ndarray:
    """Random hashes of a partition, of which there are 64."""
    keys = source.integers(0, 2**63, count, np.uint64)
    return keys & ~np.uint64(63 << 40) | np.uint64(number << 40)


def similar_of_all(store: BlobStore, size: int) -> list[Similar]:
    """Documents of all partitions, each similar to one of the partition 16 before its own."""
    random_numbers = np.random.default_rng(0)
    parts = []
    with store.writer() as writer:
        for number in range(PARTITIONS):
            keys = np.sort(in_partition(number, random_numbers, size))
            identities = random_numbers.permutation(keys)
            stored, own = (writer.add([each.tobytes()]) for each in (keys, identities))
            edges = []
            if number >= PARTITIONS // GROUP:
                both = np.repeat(random_numbers.permutation(size).astype(np.uint32), 2)
                edges.append((number - PARTITIONS // GROUP, writer.add([both.tobytes()])))
            parts.append((number, Nodes(stored, stored, own, stored), edges))
    return parts


def run_steps(documents: int, store: BlobStore) -> None:
    def step(run: Callable[..., Iterator[Any]], *values: Any) -> list[Any]:
        result, seconds, memory = in_process(lambda: list(run(*values)))
        print(f"{run.__name__}: {seconds:,.1f} CPU seconds, {memory:.2f} GB", flush=True)
        return result

    def halves(pairs: list[BlobReference]) -> tuple[int, dict[str, list[Any]]]:
        sent = step(send_left, (0, {"pairs": pairs, "nodes": [nodes]}), store)
        return 0, {"halves": [half for _, half in sent], "nodes": [nodes]}

    size = max(1, documents // PARTITIONS // GROUP) * GROUP
    print(f"one partition of {PARTITIONS}: {size:,} documents")
    records = in_process(partition_of_records, store, size)[0]
    paired = step(pair_in_bands, (0, records.pop("bands")), store)
    keys = [each.value[1] for each in paired if not isinstance(each, tuple)]
    ((_, nodes),) = step(select_candidates, (0, {"keys": keys, "gone": [], **records}), store)
    pairs = [each[1] for each in paired if isinstance(each, tuple)]
    similar = step(find_similar, halves(pairs), store, THRESHOLD)
    dropped = in_process(lambda: list(connect_similar((0, [each for _, each in similar]), store)))[
        0
    ]
    step(describe_dropped, halves([reference for _, reference in dropped]), store)
    print(f"all {PARTITIONS} partitions: {PARTITIONS * size:,} documents")
    similar = in_process(similar_of_all, store, size)[0]
    dropped = step(connect_similar, (0, similar), store)
    found = sum(reference.length for _, reference in dropped) // PAIR.itemsize
    print(f"dropped {found:,} of {PARTITIONS * size:,}: all but one of each group of {GROUP}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=3000)
    parser.add_argument("--documents", type=int, default=10_000_000)
    parser.add_argument("--work", default=None, help="folder for 30 bytes per document")
    arguments = parser.parse_args()
    print(describe_processor())
    compare_sides(arguments.pairs)
    with tempfile.TemporaryDirectory(dir=arguments.work) as folder:
        run_steps(arguments.documents, BlobStore(folder))


if __name__ == "__main__":
    main()
