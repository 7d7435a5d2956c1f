"""Jobs that are killed, and run again."""

from __future__ import annotations

import shutil
from collections import Counter
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


def kill(chain: Chain, random: Random) -> Counter[str]:
    """Kills a job, and some of its reruns too, before one may finish."""
    job, counts = chain.draw(random), Counter[str]()
    with chain.without_output(job):
        for _ in range(random.randint(1, 3)):
            ended = chain.forks.run(job.command, fault=_draw_kill(chain, job, random))
            if not ended.is_killed:
                ended.succeeded()
                break
            check_partial(chain, job)
            counts[f"{job.name}: killed"] += 1
        chain.forks.run(job.command).succeeded()
        chain.check_undisturbed(job)
    return counts + Counter({f"{job.name}: equal": 1})


def _draw_kill(chain: Chain, job: Job, random: Random) -> Fault:
    if random.random() < 0.5:
        return Fault(kill_after=random.uniform(0.01, chain.seconds[job.name]))
    return Fault(kill_at=random.randint(1, chain.calls[job.name]))


def check_partial(chain: Chain, job: Job) -> None:
    """The reading command refuses this output, or calls it unfinished, or it is complete."""
    for path in chain.work.glob("*read*"):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    ended = chain.forks.run(job.reader)
    if ended.code:
        ended.says_one_line()
    elif not (chain.is_complete(job) or "unfinished" in ended.stderr):
        raise AssertionError(f"{job.reader}: accepted a partial output")
