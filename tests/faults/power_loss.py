"""Jobs that lose power: only synced writes stay, and of the others any."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random

from faults.campaigns import Case, campaign
from faults.crash_points import check_partial
from faults.job_chain import JOBS, Chain, shared_chain
from faults.job_forks import Fault


@campaign("power lost at a call that changes a file: unsynced writes and names are gone, or some")
def power_loss(folder: Path) -> Iterator[Case]:
    yield partial(lose_power, shared_chain(JOBS))


def lose_power(chain: Chain, random: Random) -> str:
    job = chain.draw(random)
    chain.remove(job.output)
    journal = chain.work.parent / "journal"
    journal.mkdir()
    # A fifth of the cases: after the command has reported success.
    at = random.randint(1, int(1.2 * chain.calls[job.name]))
    try:
        ended = chain.forks.run(job.command, fault=Fault(kill_at=at, journal=str(journal)))
        if not ended.is_killed:
            ended.succeeded()
        lost = lose_unsynced(journal, random)
        if not ended.is_killed and not chain.is_complete(job):
            raise AssertionError(f"{job.name}: lost after success: {lost}")
        check_partial(chain, job)
        chain.forks.run(job.command).succeeded()
        chain.check_undisturbed(job)
    finally:
        chain.reset()
        shutil.rmtree(journal)
    return f"{job.name}: {'killed' if ended.is_killed else 'finished'}, then equal"


def lose_unsynced(journal: Path, random: Random) -> list[str]:
    """Take back a random part of the writes since the last sync, as file systems may.

    Data of a file lasts from its own sync on, a name (made, renamed or removed) from the sync of
    its folder. Names of one folder are lost in the reverse of their order.

    Returns:
        What was lost.
    """
    sizes: dict[int, int] = {}  # of dirty files, when they were last synced
    synced: dict[int, int] = {}
    names: dict[str, list[tuple[int, list[str]]]] = {}  # by folder, unsynced
    file_paths: dict[int, str] = {}
    lines = (journal / "journal").read_text().splitlines() if any(journal.iterdir()) else []
    for line in lines:
        kind, number, inode, size, first, second = line.split("\t")
        if kind == "W":
            sizes.setdefault(int(inode), synced.get(int(inode), 0))
            file_paths[int(inode)] = first
        elif kind == "S":
            synced[int(inode)] = int(size)
            sizes.pop(int(inode), None)
            names.pop(first, None)
        else:
            if kind == "R":
                for path in [path for path in names if f"{path}/".startswith(f"{first}/")]:
                    names[second + path[len(first) :]] = names.pop(path)
            names.setdefault(str(Path(second or first).parent), []).append(
                (int(number), [kind, first, second])
            )
    lost = []
    for inode, size in sizes.items():
        if random.random() < 0.5:
            path = _path_of_inode(Path(file_paths[inode]), inode)
            if path is not None and path.stat().st_size > size:
                with path.open("r+b") as stream:
                    stream.truncate(random.randint(size, path.stat().st_size - 1))
                lost.append(f"data of {path.name}")
    gone = []
    for changes in names.values():
        gone += changes[random.randint(0, len(changes)) :]
    for number, (kind, first, second) in sorted(gone, reverse=True):
        lost.append(f"{kind} {first} {second}")
        with suppress(FileNotFoundError):
            _take_back(kind, Path(first), Path(second), journal / str(number))
    return lost


def _path_of_inode(path: Path, inode: int) -> Path | None:
    """Return the present path of a file, which may have been renamed, alone or with its folder."""
    for folder in (path.parent, path.parent.parent):
        for found in folder.rglob("*") if folder.is_dir() else ():
            if found.is_file() and found.stat().st_ino == inode:
                return found
    return None


def _take_back(kind: str, first: Path, second: Path, kept: Path) -> None:
    if kind == "R":
        second.rename(first)
        if kept.exists():
            kept.rename(second)
    elif kind == "C":
        first.unlink()
    elif kind == "M":
        shutil.rmtree(first)
    elif kind == "U":
        if kept.exists() and not first.exists():
            kept.rename(first)
    elif kind == "D":
        first.mkdir(exist_ok=True)
