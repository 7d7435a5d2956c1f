"""The Beam steps that find near duplicates, with 12 bytes per candidate on one worker.

`near_duplicates.py` defines similarity. Similar pairs are joined to groups, of which one document
is kept: the one with the lowest identity, a hash of its text, so that the choice does not depend on
files, blocks or workers. Similarity is not transitive: two documents of a group may be near
duplicates only of a third one between them.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np

from bert_tf.base.compiled import numba
from pipeline.beam.blobs import BlobReference, BlobStore
from pipeline.beam.packing import pack
from pipeline.corpus.duplicates.near_duplicates import (
    BAND,
    PAIR,
    SIGNATURE,
    estimated_similarity,
    pair_candidates,
    sorted_distinct,
)
from pipeline.corpus.duplicates.occurrences import (
    KEPT,
    KEY,
    NamedRows,
    find_keys,
    first_of_runs,
    merge_kept,
    merge_occurrences,
    partition_rows,
    read_rows,
    read_slices,
)

PAIRS = "pairs"
KEYS = "keys"
_EVERYWHERE = 0  # the key of the step on one worker
_ROWS_TOGETHER = 200_000  # documents or pairs in memory at a time
# The first document of a key; `source` is a number in the files, `number` one in the partition.
NODE = np.dtype(
    [("identity", "u8"), ("line", "i8"), ("source", "u4"), ("number", "u4"), *SIGNATURE.descr]
)
# The first document of a pair, and the key of the second.
HALF = np.dtype([("left", NODE), ("right", "u8")])


class Nodes(NamedTuple):
    """The candidates of a partition, by rising key.

    Attributes:
        rows: NODE.
        keys: KEY.
        identities: KEY.
        files: JSON, a list of paths.
    """

    rows: BlobReference
    keys: BlobReference
    identities: BlobReference
    files: BlobReference


# A partition, its candidates and, by partition, uint32 [n, 2]: numbers of similar documents, the
# first there, the second here.
Similar = tuple[int, Nodes, list[tuple[int, BlobReference]]]


def find_near(
    parts: dict[str, beam.PCollection], store: BlobStore, threshold: float
) -> beam.PCollection:
    """Find the near duplicates to drop.

    Documents are compared twice by the same steps: candidates, and those to drop with those kept.

        bands ───────── candidates ─┬─ similar pairs ── groups ── to drop and kept ─┬─ kept
        occurrences ─┬─ records ────┴───────────────────────────────────────────────┘
        signatures ──┤
        gone ────────┘

    Args:
        parts: collections of `store_block` by name, of (partition, reference); `gone` has KEPT of
            the documents that are dropped for another reason, which are not compared.
        store: where records wait.
        threshold: similarity from which documents are near duplicates.

    Returns:
        A collection of (partition of the keys, reference to NamedRows of KEPT).
    """
    pairs = (
        parts["bands"]
        | "GatherBands" >> beam.GroupByKey()
        | "PairCandidates" >> beam.FlatMap(pair_in_bands, store).with_outputs(KEYS, main=PAIRS)
    )
    nodes = gather_nodes("", {**parts, "keys": pairs[KEYS]}, store)
    dropped = (
        gather_halves("Candidates", pairs[PAIRS], nodes, nodes, store)
        | "FindSimilar" >> beam.FlatMap(find_similar, store, threshold)
        | "GatherSimilar" >> beam.GroupByKey()
        | "ConnectSimilar" >> beam.FlatMap(connect_similar, store)
    )
    halves = gather_halves("Dropped", dropped, nodes, nodes, store)
    return halves | "DescribeDropped" >> beam.FlatMap(describe_dropped, store)


def gather_nodes(
    name: str, parts: dict[str, beam.PCollection], store: BlobStore
) -> beam.PCollection:
    """Bring the records of candidates together, as (partition, `Nodes`).

    Args:
        name: of the steps.
        parts: collections by name; those that `select_candidates` needs are taken.
        store: where records wait.
    """
    parts = {part: parts[part] for part in ("keys", "occurrences", "signatures", "gone")}
    return (
        parts
        | f"Gather{name}Signatures" >> beam.CoGroupByKey()
        | f"Select{name}Candidates" >> beam.FlatMap(select_candidates, store)
    )


def gather_halves(
    name: str,
    pairs: beam.PCollection,
    left: beam.PCollection,
    right: beam.PCollection,
    store: BlobStore,
) -> beam.PCollection:
    """Bring both documents of pairs together, in the partition of the right one.

    Args:
        name: of the steps.
        pairs: (partition of the left key, reference to PAIR).
        left: (partition, `Nodes`) of the left documents.
        right: the same of the right ones; pairs without both are left out.
        store: where records wait.
    """
    halves = (
        {"pairs": pairs, "nodes": left}
        | f"GatherLeft{name}" >> beam.CoGroupByKey()
        | f"SendLeft{name}" >> beam.FlatMap(send_left, store)
    )
    return {"halves": halves, "nodes": right} | f"Gather{name}" >> beam.CoGroupByKey()


def pair_in_bands(bands: tuple[int, Iterable[BlobReference]], store: BlobStore) -> Iterator[Any]:
    """Send each pair to the partition of its left key, and each key to its own partition."""
    pairs: list[Any] = []
    keys: list[Any] = []
    with store.writer() as writer:
        for rows in read_slices(store, bands[1], BAND, "band"):
            for candidates in pair_candidates(rows):
                pairs += partition_rows(candidates, candidates["left"], writer)
                both = np.unique(np.concatenate([candidates["left"], candidates["right"]]))
                keys += partition_rows(both, both, writer)
    yield from pairs
    for part in keys:
        yield beam.pvalue.TaggedOutput(KEYS, part)


def select_candidates(
    partition: tuple[int, dict[str, list[BlobReference]]], store: BlobStore
) -> Iterator[tuple[int, Nodes]]:
    """Store the records of candidates of a partition.

    Args:
        partition: its number, and references to `keys` of candidates, `occurrences`,
            `signatures`, and KEPT of documents that are `gone`.
        store: where records wait.
    """
    number, parts = partition
    keys = np.unique(read_rows(store, parts["keys"], KEY))
    gone = merge_kept(store.read(item) for item in parts["gone"])
    keys = np.setdiff1d(keys, gone.rows["key"], assume_unique=True)
    if not len(keys):
        return
    occurrences = merge_occurrences(store.read(item) for item in parts["occurrences"])
    firsts = occurrences.rows[first_of_runs(occurrences.rows["key"])]
    firsts = firsts[np.searchsorted(firsts["key"], keys)]
    files, of_blocks = np.unique([name for name, _ in occurrences.names], return_inverse=True)
    rows = np.empty(len(keys), NODE)
    rows["key"] = keys
    rows["number"] = np.arange(len(keys))
    rows["identity"] = firsts["identity"]
    rows["line"] = firsts["line"]
    rows["source"] = of_blocks[firsts["block"]]
    for reference in parts["signatures"]:
        signatures = np.frombuffer(store.read(reference), SIGNATURE)
        is_selected, places = find_keys(keys, signatures["key"])
        rows["sketch"][places[is_selected]] = signatures["sketch"][is_selected]
    begins = range(0, len(rows), _ROWS_TOGETHER)
    with store.writer() as writer:
        nodes = Nodes(
            rows=writer.add(rows[begin : begin + _ROWS_TOGETHER].tobytes() for begin in begins),
            keys=writer.add([keys.tobytes()]),
            identities=writer.add([rows["identity"].tobytes()]),
            files=writer.add([json.dumps(files.tolist()).encode()]),
        )
    yield number, nodes


def send_left(
    partition: tuple[int, dict[str, list[Any]]], store: BlobStore
) -> Iterator[tuple[int, tuple[int, BlobReference]]]:
    """Send the pairs of a partition, as HALF, to the partition of their right documents."""
    number, parts = partition
    if not parts["pairs"] or not parts["nodes"]:
        return
    nodes = np.frombuffer(store.read(parts["nodes"][0].rows), NODE)
    keys = nodes["key"].copy()
    sent = []
    with store.writer() as writer:
        for pairs in map(sorted_distinct, read_slices(store, parts["pairs"], PAIR, "left")):
            for begin in range(0, len(pairs), _ROWS_TOGETHER):
                some = pairs[begin : begin + _ROWS_TOGETHER]
                is_there, places = find_keys(keys, some["left"])
                halves = np.empty(int(is_there.sum()), HALF)
                halves["left"] = nodes[places[is_there]]
                halves["right"] = some["right"][is_there]
                stored = partition_rows(halves, halves["right"], writer)
                sent += [(receiver, (number, reference)) for receiver, reference in stored]
    yield from sent


def _compare(
    parts: dict[str, list[Any]], store: BlobStore
) -> Iterator[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
    """Compare the pairs that were sent to a partition.

    Yields:
        The sender of pairs, NODE of their left and of their right documents, and similarities.
    """
    for stored in parts["nodes"]:
        nodes = np.frombuffer(store.read(stored.rows), NODE)
        keys = nodes["key"].copy()
        for sender, reference in parts["halves"]:
            halves = np.frombuffer(store.read(reference), HALF)
            is_there, places = find_keys(keys, halves["right"])
            left = halves["left"][is_there]
            right = nodes[places[is_there]]
            yield sender, left, right, estimated_similarity(left["sketch"], right["sketch"])


def find_similar(
    partition: tuple[int, dict[str, list[Any]]], store: BlobStore, threshold: float
) -> Iterator[tuple[int, Similar]]:
    """Find the pairs of a partition whose similarity reaches the threshold."""
    number, parts = partition
    edges = []
    with store.writer() as writer:
        for sender, left, right, similarity in _compare(parts, store):
            both = np.stack([left["number"], right["number"]], axis=1)[similarity >= threshold]
            if len(both):
                edges.append((sender, writer.add([both.tobytes()])))
    for nodes in parts["nodes"]:
        yield _EVERYWHERE, (number, nodes, edges)


def connect_similar(
    gathered: tuple[int, Iterable[Similar]], store: BlobStore
) -> Iterator[tuple[int, BlobReference]]:
    """Pair the documents to drop with the one that is kept of each group, in their partitions.

    Groups are the connected components of similar pairs; the lowest identity is kept. This step
    runs on one worker, so it holds only 12 bytes per candidate: 4 of its parent, and 8 of its
    identity or, later, of its key.
    """
    parts = sorted(gathered[1])
    bounds = np.cumsum([0, *(nodes.keys.length // KEY.itemsize for _, nodes, _ in parts)])
    starts = {number: start for (number, *_), start in zip(parts, bounds, strict=False)}
    parents = np.arange(bounds[-1], dtype=np.uint32)
    identities = read_rows(store, [nodes.identities for _, nodes, _ in parts], KEY)
    for number, _, edges in parts:
        for sender, reference in edges:
            both = np.frombuffer(store.read(reference), np.uint32).reshape(-1, 2)
            connect(both, (starts[sender], starts[number]), identities, parents)
    del identities
    flatten(parents)
    keys = read_rows(store, [nodes.keys for _, nodes, _ in parts], KEY)
    sent = []
    with store.writer() as writer:
        for (number, *_), (begin, end) in zip(parts, itertools.pairwise(bounds), strict=True):
            dropped = begin + np.flatnonzero(parents[begin:end] != np.arange(begin, end))
            pairs = np.empty(len(dropped), PAIR)
            pairs["left"] = keys[dropped]
            pairs["right"] = keys[parents[dropped]]
            sent.append((number, writer.add([pairs.tobytes()])))
    yield from sent


@numba.njit(cache=True, nogil=True)
def connect(edges, starts, identities, parents):
    """Join documents by similar pairs (union-find, Tarjan 1975).

    A root has the lowest identity, in any order of the edges.

    Args:
        edges: uint32 [n, 2], numbers of similar documents.
        starts: numbers of the first document of both sides.
        identities: uint64 [documents].
        parents: uint32 [documents], 0, 1, 2 … at first; changed in place.
    """
    for edge in range(len(edges)):
        first = _root(parents, starts[0] + edges[edge, 0])
        second = _root(parents, starts[1] + edges[edge, 1])
        are_equal = identities[first] == identities[second]
        if identities[second] < identities[first] or (are_equal and second < first):
            parents[first] = second
        else:
            parents[second] = first


@numba.njit(cache=True, nogil=True)
def flatten(parents):
    """Let each document point to its root."""
    for node in range(len(parents)):
        parents[node] = _root(parents, node)


@numba.njit(cache=True, nogil=True)
def _root(parents, node):
    """Return the root of a document, and halve the path to it."""
    while parents[node] != node:
        parents[node] = parents[parents[node]]
        node = np.int64(parents[node])
    return node


def describe_dropped(
    partition: tuple[int, dict[str, list[Any]]], store: BlobStore, threshold: float = 0.0
) -> Iterator[tuple[int, BlobReference]]:
    """Send documents to drop, with those that are kept in their place, to their partition.

    Args:
        partition: its number, and the pairs that were sent there.
        store: where records wait.
        threshold: similarity below which pairs are left out.
    """
    described = []
    with store.writer() as writer:
        for sender, left, right, similarity in _compare(partition[1], store):
            is_similar = similarity >= threshold
            if not is_similar.any():
                continue
            left = left[is_similar]
            right = right[is_similar]
            (nodes,) = partition[1]["nodes"]
            files = json.loads(store.read(nodes.files))
            kept = np.empty(len(left), KEPT)
            kept["key"] = left["key"]
            kept["similarity"] = similarity[is_similar]
            kept["identity"] = right["identity"]
            kept["line"] = right["line"]
            numbers, kept["source"] = np.unique(right["source"], return_inverse=True)
            part = NamedRows([files[number] for number in numbers], kept)
            described.append((sender, writer.add(pack(part))))
    yield from described
