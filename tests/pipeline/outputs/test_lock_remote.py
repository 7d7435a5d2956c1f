"""The marker that keeps two runs from writing one output on storage without locks."""

import json
import os
import subprocess
import sys
import time

import pytest
from behavior.timing import wait_until
from memory_storage import FAULTS, FILES

from bert_tf.base.errors import UsageError
from pipeline.beam.stored_path import path_of
from pipeline.outputs import lock
from pipeline.outputs.lock import holding_remote

pytestmark = pytest.mark.usefixtures("files")

NAME = "memory://bucket/out/.lock"
PATH = path_of(NAME)


def hold():
    return holding_remote(PATH, "memory://bucket/out", "vocab")


def marker(**changes):
    own = {"id": "x", "pid": 1, "started": 0, "host": "elsewhere", "command": "score"}
    return json.dumps({**own, "since": "noon", "renewed": time.time(), **changes}).encode()


def test_a_second_run_is_refused_while_the_first_one_writes():
    with hold() as check:
        check()
        described = rf"written by another process \(pid {os.getpid()} on .*, bert-pipeline vocab"
        with pytest.raises(UsageError, match=described), hold():
            pass
        check()
    assert not FILES
    with hold():
        pass


def test_a_run_on_another_machine_counts_as_long_as_it_gives_signs_of_life():
    FILES[NAME] = marker()
    with (
        pytest.raises(UsageError, match="pid 1 on elsewhere, bert-pipeline score, since noon"),
        hold(),
    ):
        pass
    FILES[NAME] = marker(renewed=time.time() - 301)
    with hold():
        pass
    FILES[NAME] = b"{damaged"
    with hold():
        pass


def test_a_process_that_ended_on_this_machine_holds_nothing():
    ended = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    host, started = lock.socket.gethostname(), lock._start_of(ended.pid)
    ended.communicate(b"\n")
    FILES[NAME] = marker(host=host, pid=ended.pid, started=started)
    with hold():
        pass
    FILES[NAME] = marker(host=host, pid=os.getppid(), started=0)  # the number was given again
    with hold():
        pass
    FILES[NAME] = marker(host=host, pid=os.getppid(), started=lock._start_of(os.getppid()))
    with pytest.raises(UsageError), hold():
        pass


def test_of_two_that_start_at_once_one_is_refused(monkeypatch):
    def other_writes(seconds):
        FILES[NAME] = marker()

    monkeypatch.setattr(lock.time, "sleep", other_writes)
    with pytest.raises(UsageError, match="pid 1 on elsewhere"), hold():
        pass
    assert json.loads(FILES[NAME])["id"] == "x"


def test_a_run_that_lost_its_marker_does_not_finish():
    with hold() as check:
        FILES[NAME] = marker()
        with pytest.raises(UsageError, match=r"another process started writing to it \(pid 1 on"):
            check()
    assert NAME in FILES  # it is the other one's
    with pytest.raises(UsageError), hold():
        pass
    del FILES[NAME]
    with hold() as check:
        del FILES[NAME]
        with pytest.raises(UsageError, match=r"its marker memory://bucket/out/\.lock is gone"):
            check()


def test_a_marker_that_storage_does_not_show_for_a_moment_is_not_lost(monkeypatch):
    """Neither when it was just written, nor later, and the run goes on to renew it."""
    hidden = []

    def shown_again(seconds):
        if hidden:
            FILES[NAME] = hidden.pop()

    monkeypatch.setattr(lock.time, "sleep", shown_again)
    write = lock._write

    def write_late(path, own):
        write(path, own)
        hidden.append(FILES.pop(NAME))

    monkeypatch.setattr(lock, "_write", write_late)
    monkeypatch.setattr(lock, "_BEAT_SECONDS", 3600.0)
    with hold() as check:
        hidden.append(FILES.pop(NAME))
        check()
        assert NAME in FILES
    assert not FILES


def test_a_marker_that_was_not_shown_is_renewed_once_it_is(monkeypatch):
    monkeypatch.setattr(lock, "_BEAT_SECONDS", 0.01)
    looks = []
    read = lock._read

    def unseen(path):
        looks.append(path)

    def several_looks():
        so_far = len(looks)
        wait_until(lambda: len(looks) >= so_far + 2, "signs of life are due")

    with hold():
        monkeypatch.setattr(lock, "_read", unseen)
        several_looks()  # a sign of life that was under way is given by now
        before = FILES[NAME]
        several_looks()
        assert FILES[NAME] == before  # it may be what another run has removed
        monkeypatch.setattr(lock, "_read", read)
        wait_until(lambda: FILES[NAME] != before, "the marker is renewed")


def test_the_marker_is_renewed(monkeypatch):
    monkeypatch.setattr(lock, "_BEAT_SECONDS", 0.01)
    with hold():
        first = json.loads(FILES[NAME])["renewed"]
        FAULTS.fails = ("write", 1)  # one sign of life may fail
        written = FAULTS.counts["write"]
        wait_until(lambda: FAULTS.counts["write"] > written, "a sign of life is due")
        FAULTS.reset()
        wait_until(
            lambda: (lock._read(PATH) or {}).get("renewed", first) != first,
            "the marker is renewed",
        )


def test_storage_with_late_listings_is_refused():
    FAULTS.late = True
    with pytest.raises(UsageError, match="does not list new files at once"), hold():
        pass
    assert not FILES
