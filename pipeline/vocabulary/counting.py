"""Counts words over a whole corpus: within each bundle first, so that little is shuffled."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.windowed_value import WindowedValue

from bert_tf.data.text.casing import Lowercase
from pipeline.beam.files import (
    check_shared,
    read_shared_files,
    write_shared_file,
    write_shared_json,
)
from pipeline.corpus.document_block import (
    DocumentBlock,
    document_hashes,
    hash_ranges,
    offsets_and_data,
)
from pipeline.vocabulary.word_counter import WordCounter

NUM_PARTITIONS = 16  # of all words; each is added up on one worker
# A bundle's counter is emptied at this many distinct words: at about 100 bytes each it stays below
# half a gigabyte. Nothing is pruned, so counts are exact for any size of corpus. The number of
# distinct words grows with about the square root of the text, so the shuffled counts are only a
# percent or two of it.
MOST_WORDS_IN_MEMORY = 4_000_000
_PARTITION_SHIFT = np.uint64(40)
_LEARNING = "learning"
_HELD_OUT = "held-out"
_COUNTS = "word-counts-{}-{}.arrow"
_TOO_LONG = "words-too-long.txt"

# The kind of documents, `_LEARNING` or `_HELD_OUT`, and the partition; or `_TOO_LONG` and 0.
Key = tuple[str, int]
# Key and value: an Arrow stream of words and counts, or a number of words that were too long.
Output = tuple[Key, bytes]


class CountWords(beam.PTransform):
    """Counts the words of all blocks and writes the counts to a folder, for `read_counts`.

    Args:
        folder: shared by all workers and the submitting process.
        lowercase: of the vocabulary.
        max_word_length: characters; of longer words only the number is counted.
        held_out_fraction: fraction of documents, chosen by the hash of their text, whose words are
            counted separately.
    """

    def __init__(
        self, folder: str, *, lowercase: Lowercase, max_word_length: int, held_out_fraction: float
    ):
        super().__init__()
        self._folder = folder
        new_counter = functools.partial(
            WordCounter, lowercase=lowercase, max_word_length=max_word_length
        )
        self._count = _CountInBundle(folder, new_counter, held_out_fraction)

    def expand(self, blocks: beam.PCollection[DocumentBlock]) -> beam.PCollection[None]:
        return (
            blocks
            | "CountInBundle" >> beam.ParDo(self._count)
            | "GroupByPartition" >> beam.GroupByKey()
            | "AddUpPartition"
            >> beam.MapTuple(functools.partial(_add_up_partition, folder=self._folder))
        )


class _CountInBundle(beam.DoFn):
    """Counts the words of a bundle in memory, those of held-out documents separately."""

    def __init__(
        self, folder: str, new_counter: Callable[[], WordCounter], held_out_fraction: float
    ):
        super().__init__()
        self._folder = folder
        self._new_counter = new_counter
        self._held_out_fraction = held_out_fraction

    def setup(self) -> None:
        check_shared(self._folder)

    def start_bundle(self) -> None:
        self._counters = {kind: self._new_counter() for kind in (_LEARNING, _HELD_OUT)}

    def process(self, block: DocumentBlock) -> Iterator[Output]:
        is_held_out = held_out_documents(block, self._held_out_fraction)
        of_held_out = np.repeat(is_held_out, np.diff(block.document_offsets))
        for kind, mask in ((_LEARNING, ~of_held_out), (_HELD_OUT, of_held_out)):
            if not mask.any():
                continue
            sentences = block.sentences
            if not mask.all():
                sentences = sentences.filter(pa.array(mask))
            self._counters[kind].count(sentences)
            if len(self._counters[kind]) > MOST_WORDS_IN_MEMORY:
                yield from self._empty(kind)

    def finish_bundle(self) -> Iterator[WindowedValue]:
        window = GlobalWindow()
        for kind in (_LEARNING, _HELD_OUT):
            for element in self._empty(kind):
                yield WindowedValue(element, window.max_timestamp(), (window,))

    def _empty(self, kind: str) -> Iterator[Output]:
        """Yield the counts of a counter by partition, and begin a new one."""
        counter = self._counters[kind]
        if counter.too_long:
            yield (_TOO_LONG, 0), str(counter.too_long).encode()
        words, counts = counter.words()
        partitions = word_partitions(words)
        for partition in range(NUM_PARTITIONS):
            mask = pa.array(partitions == partition)
            part = words.filter(mask)
            if len(part):
                yield (kind, partition), _to_bytes(part, counts[mask.to_numpy(False)])
        self._counters[kind] = self._new_counter()


@dataclasses.dataclass(frozen=True)
class WordCounts:
    """Distinct words of a corpus with their numbers of occurrences.

    Attributes:
        words: string [words], to learn from.
        counts: int64 [words].
        held_out_words: string [held-out words], of the held-out documents.
        held_out_counts: int64 [held-out words].
        too_long: number of words of all documents that were longer than allowed.
    """

    words: pa.Array
    counts: np.ndarray
    held_out_words: pa.Array
    held_out_counts: np.ndarray
    too_long: int


def read_counts(folder: str) -> WordCounts:
    """Read the output of `CountWords`."""
    words, counts = _read_kind(folder, _LEARNING)
    held_out_words, held_out_counts = _read_kind(folder, _HELD_OUT)
    too_long = read_shared_files(folder, _TOO_LONG, may_be_none=True)
    return WordCounts(
        words=words,
        counts=counts,
        held_out_words=held_out_words,
        held_out_counts=held_out_counts,
        too_long=int(too_long[0]) if too_long else 0,
    )


def _read_kind(folder: str, kind: str) -> tuple[pa.Array, np.ndarray]:
    """Read the words and counts of all partitions of a kind of documents."""
    files = read_shared_files(folder, _COUNTS.format(kind, "*"), may_be_none=True)
    if not files:
        return pa.array([], pa.string()), np.zeros(0, np.int64)
    words, counts = zip(*(_from_bytes(data) for data in files), strict=True)
    return pa.concat_arrays(words), np.concatenate(counts)


def held_out_documents(block: DocumentBlock, fraction: float) -> np.ndarray:
    """Choose the documents that are held out for measuring, by the hash of their text.

    Args:
        block: documents.
        fraction: of documents to hold out.

    Returns:
        bool [documents].
    """
    return document_hashes(block) < np.uint64(min(int(fraction * 2**64), 2**64 - 1))


def word_partitions(words: pa.Array) -> np.ndarray:
    """Return the partition of each word, by a hash of its bytes, int64 [words]."""
    offsets, data = offsets_and_data(words)
    hashes = hash_ranges(data, offsets[:-1], offsets[1:])
    # Partitions take high bits of the hashes, since the counters' tables take low ones.
    return ((hashes >> _PARTITION_SHIFT) % np.uint64(NUM_PARTITIONS)).astype(np.int64)


def _add_up_partition(key: Key, parts: Iterable[bytes], *, folder: str) -> None:
    """Add up the counts of a partition from all bundles, and write them."""
    kind, partition = key
    if kind == _TOO_LONG:
        write_shared_json(sum(map(int, parts)), folder, _TOO_LONG)
        return
    # The limits and rules of a counter do not matter for adding up counts.
    counter = WordCounter(lowercase=False, max_word_length=1)
    for part in parts:
        counter.add(*_from_bytes(part))
    name = _COUNTS.format(kind, f"{partition:05d}")
    write_shared_file(folder, name, _to_bytes(*counter.words()))


def _to_bytes(words: pa.Array, counts: np.ndarray) -> bytes:
    batch = pa.record_batch({"word": words, "count": counts})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return sink.getvalue().to_pybytes()


def _from_bytes(data: bytes) -> tuple[pa.Array, np.ndarray]:
    with pa.ipc.open_stream(data) as stream:
        batch = stream.read_next_batch()
    return batch.column("word"), batch.column("count").to_numpy()
