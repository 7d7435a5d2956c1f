"""Work that is done once, though the process that does it may be killed on the way."""

import pytest

from pipeline.beam.blobs import (
    InlineBlobs,
    SpilledBlobs,
    count_finished_work,
    remove_unfinished_work,
)


class Work:
    """Stores two blobs, counts its runs, and can be made to die between the two."""

    def __init__(self):
        self.runs = 0
        self.dies = False

    def __call__(self, writer):
        self.runs += 1
        yield 7, writer.add([b"ab", b"c"])
        if self.dies:
            raise RuntimeError
        yield "last", writer.add([b"de"])


def do(store, name, work):
    return {label: store.read(reference) for label, reference in store.once(name, work)}


@pytest.fixture
def work():
    return Work()


BLOBS = {7: b"abc", "last": b"de"}


def test_finished_work_is_not_done_again(tmp_path, work):
    assert do(SpilledBlobs(str(tmp_path)), "pool-1", work) == BLOBS
    assert do(SpilledBlobs(str(tmp_path)), "pool-1", work) == BLOBS
    assert work.runs == 1
    assert count_finished_work(tmp_path, "pool") == 1
    assert do(SpilledBlobs(str(tmp_path)), "pool-2", work) == BLOBS
    assert work.runs == 2


def test_what_goes_through_the_shuffle_is_done_each_time(work):
    assert do(InlineBlobs(), "pool-1", work) == BLOBS
    assert InlineBlobs().finished("pool-1") is None
    assert do(InlineBlobs(), "pool-1", work) == BLOBS
    assert work.runs == 2


def test_unfinished_work_leaves_nothing(tmp_path, work):
    store = SpilledBlobs(str(tmp_path))
    do(store, "pool-1", work)
    kept = set(tmp_path.iterdir())
    work.dies = True
    with pytest.raises(RuntimeError):
        do(store, "pool-2", work)
    assert store.finished("pool-2") is None
    with store.writer() as writer:
        writer.add([b"nobody's"])
    assert len(set(tmp_path.iterdir()) - kept) == 2
    remove_unfinished_work(tmp_path)
    assert set(tmp_path.iterdir()) == kept
    work.dies = False
    assert do(store, "pool-2", work) == BLOBS


@pytest.mark.parametrize("damage", ["cut short", "gone", "flipped", "note"])
def test_damaged_work_is_done_again(tmp_path, work, damage):
    store = SpilledBlobs(str(tmp_path))
    do(store, "pool-1", work)
    (blobs,) = tmp_path.glob("*.blobs")
    if damage == "gone":
        blobs.unlink()
    elif damage == "note":
        (note,) = tmp_path.glob("*.finished.json")
        note.write_text(note.read_text().replace('"last"', '"lost"'))
    else:
        blobs.write_bytes(b"abcd" if damage == "cut short" else b"abcdd")
    assert do(store, "pool-1", work) == BLOBS
    assert work.runs == 2
