"""One process at a time writes an output, and a killed one is in nobody's way."""

import errno
import fcntl
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

import pytest

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError, UsageError
from pipeline.outputs import lock
from pipeline.outputs.inputs import fingerprint
from pipeline.outputs.lock import holding_output
from pipeline.outputs.manifest import LOCK
from pipeline.outputs.place import OutputPlace

# Takes a lock, says so and keeps it until its input ends.
HOLDER = """
import sys
from bert_tf.base.console import Console
from pipeline.outputs.lock import holding_output
from pipeline.outputs.place import OutputPlace

place = OutputPlace(output=sys.argv[1], is_directory=True)
with holding_output(place, "train", Console()):
    print("held", flush=True)
    sys.stdin.read()
"""


def holding(output, *, directory=True, said=None):
    console = Console(said or io.StringIO())
    place = OutputPlace(output=str(output), is_directory=directory)
    return holding_output(place, "copy", console)


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the lock of `tmp_path / "out"`."""
    command = [sys.executable, "-c", HOLDER, str(tmp_path / "out")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_second_process_is_refused_and_learns_by_whom(holder, make_job):
    job = make_job(directory=True)
    message = (
        rf"out: is being written by another process \(pid {holder.pid}, bert-pipeline train, "
        r"since \d{4}-\d\d-\d\d \d\d:\d\d\); wait for it or choose another --output"
    )
    with pytest.raises(UsageError, match=message) as refused:
        job.run(overwrite=True)
    assert "\n" not in str(refused.value)
    assert job.runs == 0
    assert [path.name for path in job.output.iterdir()] == [LOCK]
    holder.communicate("")
    assert not job.output.exists()
    assert job.run()["counts"] == {"bytes": 5}


def test_a_killed_process_is_in_nobodys_way(holder, make_job):
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    job = make_job(directory=True)
    assert (job.output / LOCK).exists()
    job.run()
    assert not (job.output / LOCK).exists()


def test_a_lock_that_was_left_is_no_content_of_its_folder(tmp_path):
    (tmp_path / "weights").write_text("0")
    before = fingerprint(tmp_path)
    (tmp_path / LOCK).write_text("{}")
    assert fingerprint(tmp_path) == before


@pytest.mark.parametrize("directory", [True, False])
def test_a_process_of_a_host_whose_name_is_written_nowhere_is_refused(tmp_path, directory):
    with holding(tmp_path / "out", directory=directory):
        path = OutputPlace(output=str(tmp_path / "out"), is_directory=directory).lock
        for text, log in (
            ("", r"process; wait"),
            ('{"pid": 7', r"process; wait"),
            (
                json.dumps({"pid": 7, "host": "node3", "command": "score", "since": "then"}),
                r"process \(pid 7 on node3, bert-pipeline score, since then\); wait",
            ),
        ):
            path.write_text(text)
            with (
                pytest.raises(UsageError, match=log),
                holding(tmp_path / "out", directory=directory),
            ):
                pass
    assert not path.exists()


def test_every_name_of_a_folder_is_the_same_folder(tmp_path, monkeypatch):
    (tmp_path / "out").mkdir()
    (tmp_path / "link").symlink_to("out")
    monkeypatch.chdir(tmp_path / "out")
    with holding(tmp_path / "link"), pytest.raises(UsageError), holding("."):
        pass


def test_many_at_once_are_served_one_after_the_other(tmp_path):
    """Also where one opens the file that another is about to remove."""
    inside = []
    served = []
    most = []

    def work():
        for _ in range(40):
            try:
                with holding(tmp_path / "deep" / "out"):
                    inside.append(1)
                    most.append(len(inside))
                    time.sleep(0.0005)
                    inside.pop()
                    served.append(1)
            except UsageError:
                pass

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(most) == 1
    assert len(served) > 1
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_file_system_without_locks_is_warned_about(tmp_path, monkeypatch):
    def flock(*_):
        raise OSError(errno.ENOTSUP, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", flock)
    said = io.StringIO()
    with holding(tmp_path / "out", said=said):
        assert list((tmp_path / "out").iterdir()) == []
    assert re.fullmatch(
        r"warning: .*out: its file system does not support locks \(Operation not supported\); do "
        r"not run another command that writes to it\n",
        said.getvalue(),
    )


def test_what_cannot_be_written_needs_no_lock(tmp_path, monkeypatch):
    """Root may write everywhere, so the answer of a read-only file system is played."""
    (tmp_path / "out").mkdir()
    real = os.open

    def read_only(path, flags, *rest, **keys):
        if flags & os.O_CREAT:
            raise OSError(errno.EROFS, "Read-only file system", str(path))
        return real(path, flags, *rest, **keys)

    monkeypatch.setattr(os, "open", read_only)
    with holding(tmp_path / "out"):
        assert list((tmp_path / "out").iterdir()) == []


def test_a_lock_file_of_another_user_is_locked_too(tmp_path, monkeypatch):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / LOCK).write_text("{}")
    real = os.open

    def unwritable(path, flags, *rest, **keys):
        if flags & os.O_RDWR:
            raise OSError(errno.EACCES, "Permission denied", str(path))
        return real(path, flags, *rest, **keys)

    monkeypatch.setattr(os, "open", unwritable)
    with holding(tmp_path / "out"), pytest.raises(UsageError), holding(tmp_path / "out"):
        pass


@pytest.mark.parametrize("directory", [True, False])
@pytest.mark.parametrize("error", [UsageError("no"), InputError("no"), KeyboardInterrupt()])
def test_a_refused_command_leaves_nothing(make_job, tmp_path, directory, error):
    job = make_job(directory=directory)
    job.output = tmp_path / "deep" / "er" / "out"

    def body(config, record):
        raise error

    job.body = body
    with pytest.raises(type(error)):
        job.run()
    assert [path.name for path in tmp_path.iterdir()] == ["input.txt"]
    job.output.parent.mkdir(parents=True)
    if directory:
        job.output.mkdir()
    with pytest.raises(type(error)):
        job.run()
    assert job.output.exists() == directory
    assert not directory or list(job.output.iterdir()) == []


def test_a_file_that_is_removed_between_opening_and_locking_is_no_lock(tmp_path, monkeypatch):
    first = holding(tmp_path / "out")
    first.__enter__()
    flock = fcntl.flock

    def flock_after_the_first_has_gone(descriptor, how):
        monkeypatch.setattr(fcntl, "flock", flock)
        first.__exit__(None, None, None)
        flock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", flock_after_the_first_has_gone)
    with holding(tmp_path / "out"), pytest.raises(UsageError), holding(tmp_path / "out"):
        pass


@pytest.mark.parametrize("directory", [True, False])
def test_a_place_where_nothing_can_be_made_is_refused(tmp_path, monkeypatch, directory):
    """/proc is such a place: folders seem to vanish whenever they are made."""

    def fail(path):
        raise FileNotFoundError(path)

    monkeypatch.setattr(lock, "make_folders", fail)
    place = OutputPlace(output=str(tmp_path / "there"), is_directory=directory)
    refused = pytest.raises(UsageError, match="there: no folder or file can be made there")
    with refused, holding_output(place, "score", Console(io.StringIO())):
        pass
