"""Two processes on one output, two users of one folder, two runs and versions beside each other."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random

from faults.campaigns import Case, campaign
from faults.job_chain import JOBS, Chain, Job, shared_chain
from faults.job_forks import Ended, Fault

_WAIT = "import time; time.sleep({seconds})"
_SHARED = "import os; os.umask(0)"  # all users may write what this one makes
_PRIVATE = "import os; os.umask(0o077)"  # none may read it
USERS = 65533, 65534


@campaign("two processes on one output, two users, two runs, or two versions in one folder")
def two_at_once(folder: Path) -> Iterator[Case]:
    yield partial(meet, shared_chain(JOBS))


def meet(chain: Chain, random: Random) -> str:
    job = chain.draw(random)
    kind = random.choice(list(KINDS))
    with chain.without_output(job, kind):
        outcome = KINDS[kind](chain, job, random)
        if outcome != "equal":
            chain.forks.run(f"{job.command} --overwrite").succeeded()
        chain.check_undisturbed(job)
    return f"{kind}: {outcome}"


def _met(chain: Chain, job: Job, random: Random, other: str) -> list[Ended]:
    """Run both, the first a little later; at least one succeeds, a failure is one line."""
    patch = _WAIT.format(seconds=random.uniform(0, chain.seconds[job.name]))
    ends = chain.forks.run(job.command, other, fault=Fault(patch=patch))
    for ended in ends:
        if ended.code:
            ended.says_one_line()
    if all(ended.code for ended in ends):
        raise AssertionError(f"none succeeded: {ends}")
    return ends


def _same(chain: Chain, job: Job, random: Random) -> str:
    _met(chain, job, random, job.command)
    return "equal"


def _different(chain: Chain, job: Job, random: Random) -> str:
    first, second = _met(chain, job, random, f"{job.command} {job.other}")
    if not first.code and not second.code:
        raise AssertionError("two configs made one output")
    return "one refused"


def _users(chain: Chain, job: Job, random: Random) -> str:
    """In a folder where both may write, each may continue the other's work."""
    _open_to_all(chain.work)
    first, second = random.sample(USERS, 2)
    seconds = random.uniform(0.2, 1.2) * chain.seconds[job.name]
    begun = chain.forks.run(
        job.command, fault=Fault(user=first, patch=_SHARED, kill_after=max(seconds, 0.05))
    )
    ended = chain.forks.run(job.command, fault=Fault(user=second, patch=_SHARED))
    if ended.code:
        ended.says_one_line()
        return "refused"
    chain.check_undisturbed(job)
    if begun.code and not begun.is_killed:
        raise AssertionError(begun.stderr)
    return "equal"


def _private_users(chain: Chain, job: Job, random: Random) -> str:
    """Another user is refused private outputs, and leaves them as they were."""
    _open_to_all(chain.work)
    first, second = random.sample(USERS, 2)
    seconds = max(0.05, random.uniform(0.2, 1.2) * chain.seconds[job.name])
    fault = Fault(user=first, patch=_PRIVATE, kill_after=seconds)
    chain.forks.run(job.command, fault=fault)
    other = chain.forks.run(job.command, fault=Fault(user=second, patch=_PRIVATE))
    outcome = "finished by the second"
    if other.code:
        other.says_one_line()
        chain.forks.run(job.command, fault=Fault(user=first, patch=_PRIVATE)).succeeded()
        outcome = "refused, then equal"
    chain.check_undisturbed(job)
    return outcome


def _beside(chain: Chain, job: Job, random: Random) -> str:
    """Return a run beside one of the same job that was killed; each completes."""
    second = f"second{Path(job.output).suffix}"
    flag = f"--output {job.output}"
    command = job.command.replace(flag, f"--output {second}")
    if command == job.command:  # its config file names the output
        command += f" --output {second}"
    seconds = max(0.05, random.uniform(0.2, 1.0) * chain.seconds[job.name])
    chain.forks.run(command, fault=Fault(kill_after=seconds))
    chain.forks.run(job.command).succeeded()
    chain.check_undisturbed(job)
    chain.forks.run(command).succeeded()
    chain.check_undisturbed(job)
    return "equal"


def _newer_input(chain: Chain, job: Job, random: Random) -> str:
    """Return an input that a newer version has made is refused, or only its content is read."""
    outputs = [JOBS[name].output for name in job.needs]
    beside = [f"{output}.manifest.json" for output in outputs]
    names = [*beside, *(f"{output}/manifest.json" for output in outputs)]
    names = [name for name in names if (chain.work / name).exists()]
    for name in names:
        manifest = json.loads((chain.work / name).read_text())
        del manifest["checksum"]
        newer = {**manifest, "manifest_version": manifest["manifest_version"] + 1}
        (chain.work / name).write_text(json.dumps(newer))
    ended = chain.forks.run(job.command)
    for name in names:
        chain.restore(name)
    if ended.code == 0:
        chain.check_undisturbed(job)
        return "equal"
    if "newer version" not in ended.says_one_line():
        raise AssertionError(ended.stderr)
    return "refused"


def _open_to_all(folder: Path) -> None:
    folder.chmod(0o777)
    for place, folders, files in os.walk(folder):
        for name in folders:
            Path(place, name).chmod(0o777)
        for name in files:
            Path(place, name).chmod(0o666)


KINDS: dict[str, Callable[[Chain, Job, Random], str]] = {
    "one config": _same,
    "two configs": _different,
    "two users": _users,
    "private users": _private_users,
    "beside an unfinished one": _beside,
    "of a newer version": _newer_input,
}
