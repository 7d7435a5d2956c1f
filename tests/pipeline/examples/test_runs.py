"""Runs: stored, merged in order of their ranks, written as TFRecord files."""

import dataclasses
import gzip
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.base.arrays import offsets_of
from bert_tf.base.errors import RunnerFailed
from bert_tf.data.records.example_bytes import frame_examples
from pipeline.beam.blobs import BlobStore
from pipeline.examples import runs as runs_module
from pipeline.examples.runs import Run, merge_runs, split_group_runs, write_shard


@pytest.fixture
def store(tmp_path_factory):
    return BlobStore(str(tmp_path_factory.mktemp("spill")))


def run_of(ranks: list[int]) -> Run:
    """Return a run whose records hold their rank, some in long records, in batches of three."""
    batches = []
    for start in range(0, len(ranks), 3):
        values = np.array(ranks[start : start + 3], np.int32)
        batches.append(frame_examples({"rank": np.tile(values[:, None], (1, 1 + start))}))
    return Run("train", 0, np.array(ranks, np.uint64), batches)


def ranks_in(path, compression="") -> list[int]:
    examples = tf.data.TFRecordDataset(str(path), compression_type=compression)
    return [
        tf.train.Example.FromString(record).features.feature["rank"].int64_list.value[0]
        for record in examples.as_numpy_iterator()
    ]


def stored(store, runs: list[Run]) -> list:
    with store.writer() as writer:
        return [writer.add(run.parts()) for run in runs]


@pytest.mark.parametrize("chunk_bytes", [1, 500, 10**9])
def test_merging_sorts_the_records_of_all_runs(store, tmp_path, monkeypatch, chunk_bytes):
    monkeypatch.setattr(runs_module, "_CHUNK_BYTES", chunk_bytes)
    ranks = np.random.default_rng(0).permutation(100).tolist()
    runs = [run_of(sorted(part)) for part in (ranks[:50], ranks[50:51], ranks[51:])]
    write_shard(tmp_path / "shard", merge_runs(store, stored(store, runs)), compression="none")
    assert ranks_in(tmp_path / "shard") == list(range(100))


def test_what_is_stored_can_be_read_while_more_is_written(store):
    with store.writer() as writer:
        first = writer.add([b"ab", b"c"])
        assert store.read(first) == b"abc"
        second = writer.add([b"defg"])
        assert store.read(second, 1, 2) == b"ef"


def test_no_runs_make_an_empty_file(store, tmp_path):
    write_shard(tmp_path / "shard", merge_runs(store, []), compression="none")
    assert (tmp_path / "shard").read_bytes() == b""


def test_a_run_that_changed_meanwhile_is_no_shard(store, tmp_path):
    references = stored(store, [run_of([1, 4, 9]), run_of([2, 3])])
    path = Path(store.folder) / references[0].name
    data = bytearray(path.read_bytes())
    data[references[0].offset + 20] ^= 1
    path.write_bytes(data)
    with pytest.raises(RunnerFailed, match="differs from the bytes that were written"):
        write_shard(tmp_path / "shard", merge_runs(store, references), compression="none")
    assert not list(tmp_path.iterdir())


def test_gzip_holds_the_same_records_and_no_time_or_name(store, tmp_path):
    for name in ("one", "two"):
        write_shard(
            tmp_path / name, merge_runs(store, stored(store, [run_of([1, 2])])), compression="gzip"
        )
    packed = (tmp_path / "one").read_bytes()
    assert packed == (tmp_path / "two").read_bytes()
    assert packed[3:8] == bytes(5)  # no name, time 0
    assert ranks_in(tmp_path / "one", "GZIP") == [1, 2]
    assert gzip.decompress(packed)


def test_runs_of_a_group_are_split_by_shard(store):
    random = np.random.default_rng(0)
    records = {}
    blobs = []
    for _ in range(3):
        shards = np.sort(random.integers(4, 8, 50))
        ranks = random.permutation(1000)[:50]
        ranks = ranks[np.lexsort((ranks, shards))]
        run = run_of(ranks.tolist())
        blobs.append(b"".join(dataclasses.replace(run, shard=4, shards=shards).parts()))
        data, offsets = _joined(run)
        for place, (shard, rank) in enumerate(zip(shards, ranks, strict=True)):
            records.setdefault(int(shard), []).append(
                (rank, data[offsets[place] : offsets[place + 1]].tobytes())
            )
    split = list(split_group_runs("train", blobs))
    assert [run.shard for run in split] == sorted(records)
    for run in split:
        expected = sorted(records[run.shard], key=lambda record: record[0])
        assert run.ranks.tolist() == [rank for rank, _ in expected]
        data, _ = _joined(run)
        assert data.tobytes() == b"".join(record for _, record in expected)
        assert run.shards is None


def _joined(run: Run) -> tuple[np.ndarray, np.ndarray]:
    data, offsets = zip(*run.records, strict=True)
    return np.concatenate(data), offsets_of(np.concatenate([np.diff(each) for each in offsets]))


def test_a_failure_leaves_no_file(tmp_path):
    def broken():
        yield np.zeros(3, np.uint8)
        raise RuntimeError("disk full")

    with pytest.raises(RuntimeError, match="disk full"):
        write_shard(tmp_path / "shard", broken(), compression="none")
    assert list(tmp_path.iterdir()) == []
