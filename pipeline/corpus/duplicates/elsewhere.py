"""The Beam steps that find near duplicates of documents of another corpus.

The other corpus is read and signed like the input (`near_duplicates.py`), or its signatures are in
a file of a former run. A document is dropped if it is a near duplicate of one there. A chain of
similar documents does not count, as it does within a corpus (`find_near.py`): no document of the
other corpus is in the output to stand in for the middle of a chain. Dropped documents are not
compared with the rest of the input, so documents that only resemble them stay.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import apache_beam as beam
import numpy as np

from bert_tf.base.compiled import numba
from bert_tf.base.errors import UsageError
from bert_tf.base.wording import quantity
from bert_tf.config.sections.data import CorpusSection
from pipeline.beam.blobs import BlobReference, BlobStore
from pipeline.beam.files import FileInfo, match_files
from pipeline.beam.globs import why_no_file
from pipeline.beam.storage import list_stored
from pipeline.beam.stored_path import path_of
from pipeline.corpus.document_block import DocumentBlock, document_hashes
from pipeline.corpus.duplicates.find_near import (
    KEYS,
    PAIRS,
    describe_dropped,
    gather_halves,
    gather_nodes,
)
from pipeline.corpus.duplicates.folding import fold_block
from pipeline.corpus.duplicates.near_duplicates import BAND, PAIR, sorted_distinct
from pipeline.corpus.duplicates.occurrences import (
    NamedRows,
    count_slices,
    first_of_runs,
    partition_rows,
    read_slices,
)
from pipeline.corpus.duplicates.signature_files import (
    SIGNATURES_ENDING,
    count_groups,
    read_signatures,
    signed_sources,
)
from pipeline.corpus.duplicates.signing import (
    BANDS,
    OCCURRENCES,
    SIGNATURES,
    occurrences_of,
    sign_documents,
    store_occurrences,
    store_signatures,
)
from pipeline.corpus.read import ReadDocuments
from pipeline.corpus.readers.formats import look_at_text
from pipeline.corpus.report import ReportCorpus, facts_of_block, list_reasons, read_report

_OTHER_KEYS = "other keys"
_REPORT = "elsewhere"  # folder of the counts of the other corpus
# A document is compared with all documents of a group of equal bands up to this size. Of a larger
# group it is compared with three: the first and its neighbors by key. Boilerplate of a million
# pages in both corpora would make 10^12 pairs.
_ALL_UP_TO = 32
_FEW = 3
_ROWS_TOGETHER = 250_000  # documents that are paired at a time


@dataclasses.dataclass(frozen=True)
class OtherCorpus:
    """Files of `duplicates_against`.

    Attributes:
        texts: corpus files.
        signatures: files of signatures.
    """

    texts: list[FileInfo]
    signatures: list[str]

    @property
    def paths(self) -> list[str]:
        return [*(file.path for file in self.texts), *self.signatures]

    @property
    def bytes(self) -> int:
        """Return the size of the texts to read."""
        return sum(file.bytes for file in self.texts)


def corpus_inputs(
    files: Sequence[FileInfo], excluded: Sequence[FileInfo], other: OtherCorpus
) -> dict[str, list[str]]:
    """Return the paths that a job on a corpus reads, by config key; see `JobSpec.inputs`."""
    return {
        "input": [file.path for file in files],
        "exclude": [file.path for file in excluded],
        "duplicates_against": other.paths,
    }


def match_other(config: CorpusSection, files: Sequence[FileInfo]) -> OtherCorpus:
    """Find the files of `duplicates_against`.

    Args:
        config: patterns of the files.
        files: of the corpus.

    Raises:
        UsageError: a pattern matches no file, one that is also a file of the corpus, or the
            signatures of one.
        InputError: a file of signatures is damaged.
    """
    corpus = {path_of(file.path).resolve() for file in files} if config.duplicates_against else ()
    texts: dict[str, FileInfo] = {}
    signatures: set[str] = set()
    for pattern in config.duplicates_against:
        if pattern.endswith(SIGNATURES_ENDING):
            matched = list_stored(pattern)
            if not matched:
                raise UsageError(f"--duplicates-against {pattern}: {why_no_file(pattern)}")
            for path in matched:
                for source in sorted(signed_sources(path)):
                    if path_of(source).resolve() in corpus:
                        raise _is_input(pattern, f"{path} has the signatures of {source}, which")
            signatures.update(matched)
            continue
        for file in match_files([pattern]):
            texts[file.path] = file
            if path_of(file.path).resolve() in corpus:
                raise _is_input(pattern, file.path)
    return OtherCorpus([texts[path] for path in sorted(texts)], sorted(signatures))


def _is_input(pattern: str, subject: str) -> UsageError:
    """Return the error for a file that is also one of the corpus."""
    return UsageError(
        f"--duplicates-against {pattern}: {subject} is also a file of --input, and all of it would "
        "be left out; change one of the two"
    )


class SignOther(beam.PTransform):
    """Reads another corpus as collections by name, like those of `store_block` for the input.

    Args:
        config: settings of reading.
        other: the files.
        store: where records wait.
        bands: number of bands of a signature, and of minima in each.
        folder: for counts; shared by all workers and the submitting process.

    Raises:
        UsageError: a format or column is wrong.
        InputError: a file is damaged.
    """

    def __init__(
        self,
        config: CorpusSection,
        other: OtherCorpus,
        store: BlobStore,
        bands: tuple[int, int],
        folder: str,
    ):
        super().__init__()
        self._config = config
        self._other = other
        self._store = store
        self._bands = bands
        self._report = f"{folder}/{_REPORT}"
        self._layouts = look_at_text(config, other.texts).layouts if other.texts else {}
        self._groups = [
            (path, group) for path in other.signatures for group in range(count_groups(path)[0])
        ]

    def expand(self, pipeline: beam.Pipeline) -> dict[str, beam.PCollection]:
        names = (OCCURRENCES, SIGNATURES, BANDS)
        outputs = []
        if self._other.texts:
            path_of(self._report).mkdir(exist_ok=True)
            blocks = pipeline | ReadDocuments(self._config, self._other.texts, self._layouts)
            _ = blocks | beam.Map(facts_of_block) | ReportCorpus(self._report)
            signing = beam.FlatMap(_sign_block, self._store, self._bands)
            outputs.append(blocks | "SignBlocks" >> signing.with_outputs(*names))
        if self._groups:
            groups = pipeline | beam.Create(self._groups) | beam.Reshuffle()
            reading = beam.FlatMap(_sign_group, self._store, self._bands)
            outputs.append(groups | "ReadSignatures" >> reading.with_outputs(*names))
        return {
            name: tuple(parts[name] for parts in outputs) | f"Flatten_{name}" >> beam.Flatten()
            for name in names
        }


def other_lines(other: OtherCorpus, folder: str) -> tuple[str, list[str]]:
    """Report the files that the input was compared with, and warn of unreadable ones.

    Args:
        other: the files.
        folder: with the counts of `SignOther`.

    Returns:
        A line of the report, and warnings.
    """
    documents = sum(count_groups(path)[1] for path in other.signatures)
    warnings = []
    if other.texts:
        report = read_report(f"{folder}/{_REPORT}")
        documents += report.documents
        if report.rejected:
            warnings.append(
                f"--duplicates-against: not read, so not compared: {list_reasons(report.rejected)}"
            )
    return f"compared with {quantity(documents, 'document')} of --duplicates-against", warnings


def _sign_block(block: DocumentBlock, store: BlobStore, bands: tuple[int, int]) -> Iterator[Any]:
    """Store the records of a block."""
    folded = fold_block(block)
    rows = occurrences_of(block, folded, document_hashes(block))
    named = NamedRows([(block.source, block.index)], rows)
    yield from _store_signed(named, sign_documents(folded), store, bands)


def _sign_group(group: tuple[str, int], store: BlobStore, bands: tuple[int, int]) -> Iterator[Any]:
    """Store the records of a row group of a file of signatures."""
    yield from _store_signed(*read_signatures(*group), store, bands)


def _store_signed(
    occurrences: NamedRows, signed: np.ndarray, store: BlobStore, bands: tuple[int, int]
) -> Iterator[Any]:
    with store.writer() as writer:
        outputs = [
            *store_occurrences(occurrences, writer),
            *store_signatures(signed, writer, bands),
        ]
    yield from outputs


def find_elsewhere(
    parts: dict[str, beam.PCollection],
    other: dict[str, beam.PCollection],
    store: BlobStore,
    threshold: float,
) -> beam.PCollection:
    """Find the documents that are near duplicates of one of another corpus.

        bands ───────────── candidates ─┬─ keys ── records ─┬─ compared ── to drop
        bands there ──┘                 └─ keys there ── records there ─┘

    Args:
        parts: collections of `store_block` by name, of (partition, reference).
        other: the same of the other corpus.
        store: where records wait.
        threshold: similarity from which documents are near duplicates.

    Returns:
        A collection of (partition of the keys, reference to NamedRows of KEPT); several for one
        document are candidates to be named, see `merge_kept`.
    """
    nothing = {"gone": parts[BANDS].pipeline | "NoneIsGone" >> beam.Create([])}
    pairs = (
        {"own": parts[BANDS], "other": other[BANDS]}
        | "GatherBandsElsewhere" >> beam.CoGroupByKey()
        | "PairElsewhere"
        >> beam.FlatMap(pair_across_bands, store).with_outputs(KEYS, _OTHER_KEYS, main=PAIRS)
    )
    own = gather_nodes("Own", {**parts, **nothing, "keys": pairs[KEYS]}, store)
    there = gather_nodes("Other", {**other, **nothing, "keys": pairs[_OTHER_KEYS]}, store)
    halves = gather_halves("Elsewhere", pairs[PAIRS], own, there, store)
    return halves | "DescribeElsewhere" >> beam.FlatMap(describe_dropped, store, threshold)


def pair_across_bands(
    bands: tuple[int, dict[str, list[BlobReference]]], store: BlobStore
) -> Iterator[Any]:
    """Send each pair to the partition of its left key, and each key to its own partition.

    Args:
        bands: a partition's number, and references to BAND, `own` and `other`.
        store: where records wait.
    """
    parts = bands[1]
    count = max(map(count_slices, parts.values()))
    own_slices = read_slices(store, parts["own"], BAND, "band", count)
    other_slices = read_slices(store, parts["other"], BAND, "band", count)
    sent: list[Any] = []
    with store.writer() as writer:
        for own, other in zip(own_slices, other_slices, strict=True):
            for pairs in pair_across(own, other):
                sent += partition_rows(pairs, pairs["left"], writer)
                for name, side in ((KEYS, "left"), (_OTHER_KEYS, "right")):
                    keys = np.unique(pairs[side])
                    stored = partition_rows(keys, keys, writer)
                    sent += [beam.pvalue.TaggedOutput(name, part) for part in stored]
    yield from sent


def pair_across(own: np.ndarray, other: np.ndarray) -> Iterator[np.ndarray]:
    """Pair documents with those of another corpus that share a band.

    A document is paired with all of a group of equal bands there; of a group of more than
    `_ALL_UP_TO`, with the first and with both neighbors by key, one of which is its equal if there
    is one.

    Args:
        own: BAND [n].
        other: BAND [m], of the other corpus.

    Yields:
        PAIR, distinct and sorted, the own key left, in parts of bounded size.
    """
    other = sorted_distinct(other)
    is_first = first_of_runs(other["band"])
    begins = np.flatnonzero(is_first)
    ends = np.append(begins[1:], len(other))
    own = own[np.isin(own["band"], other["band"])]
    groups = np.searchsorted(other["band"][begins], own["band"])
    for begin in range(0, len(own), _ROWS_TOGETHER):
        rows = own[begin : begin + _ROWS_TOGETHER]
        of_rows = groups[begin : begin + _ROWS_TOGETHER]
        sizes = (ends - begins)[of_rows]
        counts = np.where(sizes <= _ALL_UP_TO, sizes, _FEW)
        pairs = np.empty(counts.sum(), PAIR)
        _fill_across(
            rows["key"],
            begins[of_rows],
            ends[of_rows],
            other["key"],
            pairs["left"],
            pairs["right"],
        )
        yield sorted_distinct(pairs)


@numba.njit(cache=True, nogil=True)
def _fill_across(own, begins, ends, keys, left, right):
    """Set the pairs of documents with groups of other ones; see `_ALL_UP_TO`.

    Args:
        own: uint64 [n], keys of documents.
        begins, ends: int64 [n], bounds of the group of each in `keys`.
        keys: uint64, keys of the other documents, rising within a group.
        left, right: uint64 [pairs], to be set.
    """
    pairs = 0
    for row in range(len(own)):
        begin = begins[row]
        end = ends[row]
        if end - begin <= _ALL_UP_TO:
            for place in range(begin, end):
                left[pairs] = own[row]
                right[pairs] = keys[place]
                pairs += 1
        else:
            near = begin + np.searchsorted(keys[begin:end], own[row])
            for place in (begin, max(near - 1, begin), min(near, end - 1)):
                left[pairs] = own[row]
                right[pairs] = keys[place]
                pairs += 1
