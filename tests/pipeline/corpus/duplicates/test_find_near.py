"""Compared and grouped candidates against brute force, in any order and any parts."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.beam.blobs import BlobStore
from pipeline.corpus.duplicates import near_duplicates, occurrences
from pipeline.corpus.duplicates.find_near import (
    NODE,
    Nodes,
    connect,
    connect_similar,
    describe_dropped,
    find_similar,
    flatten,
    send_left,
)
from pipeline.corpus.duplicates.near_duplicates import BAND, PAIR, pair_candidates
from pipeline.corpus.duplicates.occurrences import merge_kept, partitions_of, read_slices


def all_candidates(rows):
    return np.concatenate([np.empty(0, PAIR), *pair_candidates(np.array(rows, BAND))])


@pytest.mark.parametrize("together", [1, 3, 8_000_000])
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), max_size=40))
def test_candidates_are_all_pairs_with_an_equal_band(together, rows):
    expected = {
        (min(a, b), max(a, b))
        for (left, a), (right, b) in itertools.combinations(rows, 2)
        if left == right and a != b
    }
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(near_duplicates, "_PAIRS_TOGETHER", together)
        pairs = all_candidates(rows).tolist()
    assert set(pairs) == expected
    assert together < 8_000_000 or pairs == sorted(expected)


def test_of_a_large_group_only_some_pairs_are_compared():
    pairs = all_candidates([(0, key) for key in range(1000)])
    assert len(pairs) == 2 * 1000 - 3
    assert set(pairs.tolist()) == {
        pair for right in range(1, 1000) for pair in ((0, right), (right - 1, right))
    }


def lowest_by_brute_force(count, edges, identities):
    """For each document, the lowest identity of those that edges lead to."""
    lowest = list(identities)
    for _ in range(count):
        for a, b in edges:
            lowest[a] = lowest[b] = min(lowest[a], lowest[b])
    return lowest


graphs = st.integers(1, 30).flatmap(
    lambda count: st.tuples(
        st.permutations(range(count)),
        st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), max_size=40),
    )
)


@given(graphs, st.randoms(use_true_random=False))
def test_groups_are_those_of_brute_force_in_any_order(graph, source):
    identities, edges = graph
    expected = lowest_by_brute_force(len(identities), edges, identities)
    for _ in range(2):
        source.shuffle(edges)
        turned = [edge[:: source.choice([1, -1])] for edge in edges]
        parents = np.arange(len(identities), dtype=np.uint32)
        relative = np.array(turned, np.uint32).reshape(-1, 2)
        connect(relative, (0, 0), np.array(identities, np.uint64), parents)
        flatten(parents)
        assert np.array(identities)[parents].tolist() == expected


def test_of_equal_identities_the_first_document_stays():
    parents = np.arange(3, dtype=np.uint32)
    connect(np.array([[2, 1], [1, 0]], np.uint32), (0, 0), np.zeros(3, np.uint64), parents)
    flatten(parents)
    assert parents.tolist() == [0, 0, 0]


@pytest.fixture
def store(tmp_path):
    return BlobStore(str(tmp_path))


def gathered(sent):
    """Return the output of CoGroupByKey for tagged lists of pairs."""
    keys = {key for pairs in sent.values() for key, _ in pairs}
    return [
        (key, {name: [each for own, each in pairs if own == key] for name, pairs in sent.items()})
        for key in sorted(keys)
    ]


def find_dropped(store, rows, pairs, source):
    """The kept documents' records of NODEs, by the steps of the transform, in a random order."""
    nodes, sent = [], []
    with store.writer() as writer:
        for number in np.unique(partitions_of(rows["key"])).tolist():
            own = rows[partitions_of(rows["key"]) == number]
            own["number"] = np.arange(len(own))
            columns = (own, own["key"], own["identity"])
            stored = [writer.add([column.tobytes()]) for column in columns]
            files = writer.add([json.dumps(["a", "b"]).encode()])
            nodes.append((number, Nodes(*stored, files)))
        for pair in pairs:
            number = int(partitions_of(pair["left"]))
            sent.append((number, writer.add([pair.tobytes()])))

    def compare(pairs, step, *values):
        source.shuffle(pairs)
        parts = gathered({"pairs": pairs, "nodes": nodes})
        halves = [each for part in parts for each in send_left(part, store)]
        source.shuffle(halves)
        parts = gathered({"halves": halves, "nodes": nodes})
        return [each for part in parts for each in step(part, store, *values)]

    groups = [group for _, group in compare(sent, find_similar, 0.8)]
    source.shuffle(groups)
    described = compare(list(connect_similar((0, groups), store)), describe_dropped)
    for number, part in described:
        assert (partitions_of(merge_kept([store.read(part)]).rows["key"]) == number).all()
    source.shuffle(described)
    kept = merge_kept(store.read(part) for _, part in described)
    return [
        (*row[["key", "identity", "line", "similarity"]].tolist(), kept.names[row["source"]])
        for row in kept.rows
    ]


def nodes_of(identities):
    """NODEs of these identities, whose keys are spread over partitions."""
    rows = np.zeros(len(identities), NODE)
    rows["key"] = np.sort(np.random.default_rng(0).integers(0, 2**63, len(rows), np.uint64))
    rows["identity"], rows["line"] = identities, 10 * np.array(identities)
    rows["source"] = np.array(identities) % 2
    return rows


@pytest.mark.slow
@given(
    graph=graphs, source=st.randoms(use_true_random=False), slice_bytes=st.sampled_from([16, 2**27])
)
def test_the_steps_find_the_groups_of_brute_force_in_any_order(
    tmp_path_factory, graph, source, slice_bytes
):
    identities, edges = graph
    edges = [tuple(sorted(edge)) for edge in edges if edge[0] != edge[1]]
    rows = nodes_of(identities)
    unlike = source.randrange(len(rows))
    rows["sketch"]["filled"] = 9
    rows["sketch"]["bits"][unlike] = 1
    pairs = np.array([tuple(rows["key"][list(edge)].tolist()) for edge in edges], PAIR)
    similar = [edge for edge in edges if unlike not in edge]
    lowest = lowest_by_brute_force(len(rows), similar, identities)
    expected = [
        (int(row["key"]), best, 10 * best, 1.0, "ab"[best % 2])
        for row, best in zip(rows, lowest, strict=True)
        if best != row["identity"]
    ]
    store = BlobStore(str(tmp_path_factory.mktemp("blobs")))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(occurrences, "_SLICE_BYTES", slice_bytes)
        assert find_dropped(store, rows, pairs, source) == expected


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 9)), max_size=40))
def test_slices_have_all_rows_and_equal_hashes_together(tmp_path_factory, rows):
    store = BlobStore(str(tmp_path_factory.mktemp("blobs")))
    with store.writer() as writer:
        stored = [writer.add([np.array(part, BAND).tobytes()]) for part in (rows[:9], rows[9:])]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(occurrences, "_SLICE_BYTES", 64)
        slices = [part.tolist() for part in read_slices(store, stored, BAND, "band")]
    assert len(slices) == 1 + 16 * len(rows) // 64
    assert sorted(itertools.chain(*slices)) == sorted(rows)
    hashes = [{band for band, _ in part} for part in slices]
    assert sum(map(len, hashes)) == len(set().union(*hashes))
