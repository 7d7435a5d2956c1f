"""One process at a time writes an output on storage without locks: a marker with owner and time.

A run that finds the marker of another one that is alive is refused. Of two that start at once each
writes its marker, waits, and reads it: storage keeps the last, and the other is refused. Before a
run declares its output finished it reads the marker again, and one that has lost it ends with an
error. That is less than a lock of a file system gives: a run that stops for longer than
`_STALE_SECONDS`, without ending, may go on writing files of an output that another run has taken
over by then; since every list of finished work has checksums, and the manifest is written last,
such an output is never called finished by mistake.
"""

from __future__ import annotations

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

from bert_tf.base.errors import UsageError

_BEAT_SECONDS = 30.0
_STALE_SECONDS = 300.0
_SETTLE_SECONDS = 1.0
_READS = 10
_HELD: set[str] = set()  # by this process


@contextmanager
def holding_remote(path: Path, output: str, command: str) -> Iterator[Callable[[], None]]:
    """Keeps a marker while the block runs, so that other processes refuse the output.

    Args:
        path: of the marker.
        output: for messages.
        command: the command's name, for the messages of others.

    Yields:
        A check that the marker is still this process's; it raises a UsageError where it is not.

    Raises:
        UsageError: another process writes the output, or listings of its storage are late.
    """
    own: dict[str, Any] = {
        "id": uuid.uuid4().hex,
        "pid": os.getpid(),
        "started": _start_of(os.getpid()),
        "host": socket.gethostname(),
        "command": command,
        "since": time.strftime("%Y-%m-%d %H:%M"),
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
            f"{output}: its storage does not list what was written a moment ago, and jobs list "
            "what their workers wrote; use storage whose listings are up to date, or a local path"
        )
    _HELD.add(own["id"])
    ended = threading.Event()
    beat = threading.Thread(target=_beat, args=(path, own, ended), daemon=True)
    beat.start()

    def check() -> None:
        holder = _read_again(path)
        if holder is None:
            raise UsageError(
                f"{output}: its marker {path} is gone, so another process may have written the "
                "output and this one ends without finishing it; run the command again"
            )
        if _is_another(holder, own):
            raise UsageError(
                f"{output}: another process has begun to write it{_described(holder)}, so "
                "this one ends without finishing it; run one command at a time on an output"
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
    """Renews the time of the marker, as long as it is this process's."""
    while not ended.wait(_BEAT_SECONDS):
        with suppress(OSError):  # the next one may succeed; there is time for several
            holder = _read(path)
            if holder is None:  # storage may show it again; another run may have removed its own
                continue
            if _is_another(holder, own):
                return
            _write(path, own)


def _is_another(holder: dict[str, Any], own: dict[str, Any]) -> bool:
    """Whether a marker is not this process's; one that is cut off is what it failed to renew."""
    return bool(holder.get("id", own["id"]) != own["id"])


def _read_again(path: Path) -> dict[str, Any] | None:
    """The marker; None if storage does not show it for some time, which may be for a moment."""
    for _ in range(_READS):
        holder = _read(path)
        if holder is not None:
            return holder
        time.sleep(_SETTLE_SECONDS)
    return None


def _write(path: Path, own: dict[str, Any]) -> None:
    path.write_text(json.dumps({**own, "renewed": time.time()}), encoding="utf-8")


def _read(path: Path) -> dict[str, Any] | None:
    """The marker; None if there is none; without an owner if it cannot be understood."""
    try:
        holder = json.loads(path.read_text(encoding="utf-8"))
        return holder if isinstance(holder, dict) else {}
    except FileNotFoundError:
        return None
    except ValueError:
        return {}


def _is_alive(holder: dict[str, Any]) -> bool:
    """Whether the owner of a marker may still write: on this machine, whether the process runs."""
    pid = holder.get("pid")
    if holder.get("host") == socket.gethostname() and isinstance(pid, int):
        is_running = _start_of(pid) is not None and _start_of(pid) == holder.get("started")
        return is_running and (pid != os.getpid() or holder.get("id") in _HELD)
    renewed = holder.get("renewed")
    return isinstance(renewed, int | float) and time.time() - renewed < _STALE_SECONDS


def _start_of(pid: int) -> int | None:
    """When a process of this machine started, in ticks since the machine did; None if it ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return int(fields.rpartition(")")[2].split()[19])


def _refusal(path: Path, output: str, holder: dict[str, Any]) -> UsageError:
    return UsageError(
        f"{output}: is being written by another process{_described(holder)}; wait for it or choose "
        f"another --output. If it has died on another machine, its marker {path} is ignored "
        f"{_STALE_SECONDS / 60:.0f} minutes after its last sign of life"
    )


def _described(holder: dict[str, Any]) -> str:
    names = ("pid", "host", "command", "since")
    if any(name not in holder for name in names):
        return ""
    pid, host, command, since = (holder[name] for name in names)
    return f" (pid {pid} on {host}, bert-pipeline {command}, since {since})"
