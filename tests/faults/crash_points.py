"""Jobs that are killed, and run again."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random

from faults.campaigns import Case, campaign
from faults.job_chain import JOBS, Chain, Job, shared_chain
from faults.job_forks import Fault


@campaign("kill -9 of jobs at a moment or at a call that changes a file, then the same again")
def crash_points(folder: Path) -> Iterator[Case]:
    yield partial(kill, shared_chain(JOBS))


def kill(chain: Chain, random: Random) -> str:
    job = chain.draw(random)
    chain.remove(job.output)
    if random.random() < 0.5:
        fault = Fault(kill_after=random.uniform(0.01, chain.seconds[job.name]))
    else:
        fault = Fault(kill_at=random.randint(1, chain.calls[job.name]))
    try:
        ended = chain.forks.run(job.command, fault=fault)
        if ended.is_killed:
            check_partial(chain, job)
        else:
            ended.succeeded()
        chain.forks.run(job.command).succeeded()
        chain.check_undisturbed(job)
    except BaseException:
        chain.reset()
        raise
    return f"{job.name}: {'killed' if ended.is_killed else 'finished before'}, then equal"


def check_partial(chain: Chain, job: Job) -> None:
    """The reading command refuses this output, or calls it unfinished, or it is complete."""
    for path in chain.work.glob("*read*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    ended = chain.forks.run(job.reader)
    if ended.code:
        ended.says_one_line()
    elif not (chain.is_complete(job) or "not finished" in ended.stderr):
        raise AssertionError(f"{job.reader}: accepted a partial output")
