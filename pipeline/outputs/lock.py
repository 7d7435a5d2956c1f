"""One process at a time writes an output: a lock that ends with its process, or a marker.

On file systems the lock is `flock` on a small file, which the kernel releases however the process
ends. The file is removed by its holder before it is released, so one that has opened it must look
again whether it is still at its path.

Storage without locks (`gs://`, `s3://`) has a marker with an owner and a time that is renewed every
30 seconds, see `holding_remote`.
"""

from __future__ import annotations

import errno
import fcntl
import glob
import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError
from bert_tf.base.files import RemotePath, make_folders
from pipeline.outputs.place import OutputPlace

_NOT_WRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS)
_NO_LOCKS = (errno.ENOTSUP, errno.ENOSYS, errno.ENOLCK, errno.EINVAL)
_MOST_BYTES = 4096
_TRIES = 1000  # against other processes, of which one at a time wins
# Markers on storage without locks are renewed, and count as left behind after several renewals
# have failed. Storage gets this time to agree on who wrote last, and as many reads to list it.
_BEAT_SECONDS = 30.0
_STALE_SECONDS = 300.0
_SETTLE_SECONDS = 1.0
_READS = 10
_HELD: set[str] = set()  # by this process


@contextmanager
def holding_output(
    place: OutputPlace, command: str, console: Console
) -> Iterator[Callable[[], None]]:
    """Prevent other processes of this tool from writing an output during the block.

    The lock file's folder is made, and removed if the block leaves it empty. An output that cannot
    be written needs no lock: the block will fail on it, or only read it.

    Args:
        place: the output.
        command: named in the messages of other processes.

    Yields:
        A check that no other process has taken the output over, which only storage without locks
        allows; call it before declaring the output finished.

    Raises:
        UsageError: another process writes the output, or listings of its storage are late.
    """
    path = place.lock
    if isinstance(path, RemotePath):
        with holding_remote(path, place.output, command) as check:
            yield check
        return
    # Those on the way that are not there, the innermost first.
    made = [folder for folder in (path.parent, *path.parent.parents) if not folder.exists()]
    descriptor = None
    try:
        descriptor = _lock(path, place.output, console)
        if descriptor is not None:
            with suppress(OSError):  # opened only to read; the lock holds without
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, json.dumps(_owner(command)).encode(), 0)
        yield lambda: None  # the lock is held until it is released
    finally:
        if descriptor is not None:
            # Before it is released: whoever has opened this file finds that it is gone.
            if _is_at(descriptor, path):
                with suppress(PermissionError):
                    path.unlink()
            os.close(descriptor)
        for folder in made:
            with suppress(OSError):  # it is not empty, or somebody else was faster
                folder.rmdir()


def _lock(path: Path, output: str, console: Console) -> int | None:
    """Open and lock the file; None if there is nothing to lock."""
    for _ in range(_TRIES):
        try:
            make_folders(path.parent)
            descriptor = _open(path)
        except (FileNotFoundError, FileExistsError):
            if path.parent.exists() and not path.parent.is_dir():
                raise
            continue  # its folder went with another job that was refused
        if descriptor is None:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = None
            with suppress(ValueError):
                holder = json.loads(os.pread(descriptor, _MOST_BYTES, 0))
            os.close(descriptor)
            raise UsageError(
                f"{output}: is being written by another process"
                f"{_described(holder, is_here_said=False)}; wait for it or choose "
                "another --output"
            ) from None
        except OSError as error:
            os.close(descriptor)
            if error.errno not in _NO_LOCKS:
                raise
            path.unlink(missing_ok=True)
            console.warn(
                f"{output}: its file system does not support locks ({error.strerror}); do not run "
                "another command that writes to it"
            )
            return None
        if _is_at(descriptor, path):
            return descriptor
        os.close(descriptor)  # its last holder has removed it since it was opened
    # /proc and /sys answer like a folder that another process removes again and again.
    raise UsageError(f"{output}: no folder or file can be made there; choose another --output")


def _open(path: Path) -> int | None:
    """Open the lock file, read-only if another user owns it; None if it cannot be made."""
    for flags in (os.O_RDWR | os.O_CREAT, os.O_RDONLY):
        try:
            return os.open(path, flags | os.O_NOFOLLOW, 0o666)
        except OSError as error:
            if error.errno not in _NOT_WRITABLE and flags != os.O_RDONLY:
                raise
    return None


def _is_at(descriptor: int, path: Path) -> bool:
    """Return whether an open file is still the one at a path."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


def _owner(command: str) -> dict[str, Any]:
    """Return the facts of a lock about its holder."""
    return {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "command": command,
        "since": time.strftime("%Y-%m-%d %H:%M"),
    }


def _described(holder: Any, *, is_here_said: bool) -> str:
    """Name the holder of an output as far as known, even from a damaged file."""
    try:
        pid, host, command, since = (holder[key] for key in ("pid", "host", "command", "since"))
    except (KeyError, TypeError):
        return ""
    on = f" on {host}" if is_here_said or host != socket.gethostname() else ""
    return f" (pid {pid}{on}, bert-pipeline {command}, since {since})"


@contextmanager
def holding_remote(path: Path, output: str, command: str) -> Iterator[Callable[[], None]]:
    """Hold an output on storage without locks, by a marker of owner and time; see `holding_output`.

    Each run writes its marker, waits, and reads it: of two that start at once, storage keeps the
    last, and the other is rejected. Each reads its marker again before it declares its output
    finished. This is weaker than a lock: a run that hangs for longer than `_STALE_SECONDS` may go
    on writing into an output that another run has taken over. Since every list of finished work has
    checksums, and the manifest is written last, such an output is never called finished by mistake.

    Args:
        path: of the marker.
        output: named in messages.
        command: named in the messages of other processes.
    """
    own: dict[str, Any] = {
        "id": uuid.uuid4().hex,
        "started": _start_of(os.getpid()),
        **_owner(command),
    }
    holder = _read(path)
    if holder is not None and _is_alive(holder):
        raise _refusal(path, output, holder)
    _write(path, own)
    time.sleep(_SETTLE_SECONDS)
    holder = _read_again(path)
    if holder is None or holder.get("id") != own["id"]:
        raise _refusal(path, output, holder or {})
    if path not in path.parent.glob(glob.escape(path.name)):
        path.unlink(missing_ok=True)
        raise UsageError(
            f"{output}: its storage does not list new files at once, as jobs require; use storage "
            "with consistent listings, or a local path"
        )
    _HELD.add(own["id"])
    ended = threading.Event()
    beat = threading.Thread(target=_beat, args=(path, own, ended), daemon=True)
    beat.start()

    def check() -> None:
        holder = _read_again(path)
        if holder is None:
            raise UsageError(
                f"{output}: its marker {path} is gone, so another process may have written to the "
                "output; this process stops without finishing it; run the command again"
            )
        if _is_another(holder, own):
            raise UsageError(
                f"{output}: another process started writing to "
                f"it{_described(holder, is_here_said=True)}, so this one stops without finishing; "
                "run one command at a time per output"
            )

    try:
        yield check
    finally:
        ended.set()
        beat.join()
        _HELD.remove(own["id"])
        with suppress(OSError):
            holder = _read(path)
            if holder is not None and not _is_another(holder, own):
                path.unlink(missing_ok=True)


def _beat(path: Path, own: dict[str, Any], ended: threading.Event) -> None:
    """Renew the marker until the job ends, or another process has taken the output over."""
    while not ended.wait(_BEAT_SECONDS):
        with suppress(OSError):  # the next one may succeed; there is time for several
            holder = _read(path)
            if holder is None:  # storage may show it again; another run may have removed its own
                continue
            if _is_another(holder, own):
                return
            _write(path, own)


def _is_another(holder: dict[str, Any], own: dict[str, Any]) -> bool:
    """Return whether a marker is another process's.

    A truncated one is a failed renewal of our own.
    """
    return bool(holder.get("id", own["id"]) != own["id"])


def _read_again(path: Path) -> dict[str, Any] | None:
    """Read the marker; None if storage does not list it for some time."""
    for _ in range(_READS):
        holder = _read(path)
        if holder is not None:
            return holder
        time.sleep(_SETTLE_SECONDS)
    return None


def _write(path: Path, own: dict[str, Any]) -> None:
    path.write_text(json.dumps({**own, "renewed": time.time()}), encoding="utf-8")


def _read(path: Path) -> dict[str, Any] | None:
    """Return the marker; None if there is none; without an owner if it cannot be understood."""
    try:
        holder = json.loads(path.read_text(encoding="utf-8"))
        return holder if isinstance(holder, dict) else {}
    except FileNotFoundError:
        return None
    except ValueError:
        return {}


def _is_alive(holder: dict[str, Any]) -> bool:
    """Return whether the owner of a marker may still write.

    A process of this machine is looked up; of another one, the marker must have been renewed
    lately.
    """
    pid = holder.get("pid")
    if holder.get("host") == socket.gethostname() and isinstance(pid, int):
        is_running = _start_of(pid) is not None and _start_of(pid) == holder.get("started")
        return is_running and (pid != os.getpid() or holder.get("id") in _HELD)
    renewed = holder.get("renewed")
    return isinstance(renewed, int | float) and time.time() - renewed < _STALE_SECONDS


def _start_of(pid: int) -> int | None:
    """Return the start of a local process, in ticks since boot; None if it has ended.

    It distinguishes a process from a later one with the same ID.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return int(fields.rpartition(")")[2].split()[19])


def _refusal(path: Path, output: str, holder: dict[str, Any]) -> UsageError:
    by = _described(holder, is_here_said=True)
    return UsageError(
        f"{output}: is being written by another process{by}; wait for it or choose another "
        f"--output. If it has died on another machine, its marker {path} is ignored "
        f"{_STALE_SECONDS / 60:.0f} minutes after its last sign of life"
    )
