"""Work that is done once, though the process that does it may be killed on the way."""

import threading
import time

import pytest

from bert_tf.base.errors import RunnerFailed
from pipeline.beam.blobs import VARIABLE, BlobStore, count_finished_work, remove_unfinished_work


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
    assert do(BlobStore(str(tmp_path)), "pool-1", work) == BLOBS
    assert do(BlobStore(str(tmp_path)), "pool-1", work) == BLOBS
    assert work.runs == 1
    assert count_finished_work(tmp_path, "pool") == 1
    assert do(BlobStore(str(tmp_path)), "pool-2", work) == BLOBS
    assert work.runs == 2


@pytest.mark.slow
def test_what_another_machine_wrote_is_waited_for(tmp_path):
    """A network file system shows it so: no such name, then fewer bytes, then blank pages."""
    (tmp_path / "elsewhere").mkdir()
    with BlobStore(str(tmp_path / "elsewhere")).writer() as writer:
        reference = writer.add([b"some content"])
    seen = tmp_path / reference.name

    def appear():
        for content in (None, b"some", bytes(12), b"some content"):
            time.sleep(0.1)
            if content is not None:
                seen.write_bytes(content)

    thread = threading.Thread(target=appear)
    thread.start()
    assert BlobStore(str(tmp_path)).read(reference) == b"some content"
    thread.join()


def test_what_never_appears_is_one_message(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, "0.2")
    store = BlobStore(str(tmp_path))
    with store.writer() as writer:
        reference = writer.add([b"some content"])
    with pytest.raises(RunnerFailed, match=r"no such file.*storage that all workers share"):
        store.read(reference._replace(name="gone.blobs"))
    with pytest.raises(RunnerFailed, match=r"12 of 13 bytes"):
        store.read(reference._replace(length=13))
    with pytest.raises(RunnerFailed, match="other bytes"):
        store.read(reference._replace(crc32c=1))
    assert store.read(reference._replace(crc32c=1), 5, 3) == b"con"


def test_two_attempts_at_once_both_leave_what_can_be_read(tmp_path, work):
    store = BlobStore(str(tmp_path))
    first = store.once("pool-1", lambda writer: interleaved(store, work, writer))
    assert {label: store.read(reference) for label, reference in first} == BLOBS
    assert do(store, "pool-1", work) == BLOBS
    assert work.runs == 2
    remove_unfinished_work(tmp_path)
    assert do(store, "pool-1", work) == BLOBS
    assert work.runs == 2


def interleaved(store, work, writer):
    """Yield the work, in the middle of which another attempt at it is begun and finished."""
    labeled = work(writer)
    yield next(labeled)
    assert do(store, "pool-1", work) == BLOBS
    yield from labeled


def test_unfinished_work_leaves_nothing(tmp_path, work):
    store = BlobStore(str(tmp_path))
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
    store = BlobStore(str(tmp_path))
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
