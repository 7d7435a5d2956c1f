"""Jobs on full, failing and forbidden disks, with inputs that change, little memory, odd clocks."""

from __future__ import annotations

import errno
import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random

from faults.campaigns import Case, campaign
from faults.crash_points import check_partial
from faults.job_chain import JOBS, Chain, Job, shared_chain
from faults.job_forks import Ended, Fault

NOBODY = 65534

# Runs in the process of a job, beside it.
_LATER = """
import os, threading, time
from pathlib import Path

def act():
    time.sleep({delay})
    path = Path({path!r})
    size = path.stat().st_size
    {action}

threading.Thread(target=act, daemon=True).start()
"""
CHANGES = {
    "deleted": "path.unlink()",
    "cut short": "os.truncate(path, size // 2)",
    "changed": "path.write_bytes(path.read_bytes()[::-1])",
    "replaced": "path.with_suffix('.new').write_bytes(b'x' * size); "
    "path.with_suffix('.new').replace(path)",
}
_KILL_A_WORKER = """
import os, signal, threading, time

def act():
    time.sleep({delay})
    while True:
        for number in filter(str.isdigit, os.listdir("/proc")):
            try:
                command = open(f"/proc/{{number}}/cmdline").read()
                group = os.getpgid(int(number))
            except OSError:
                continue
            is_shell = command.split(chr(0))[0].endswith("sh")
            is_worker = "pipeline.beam.worker_process" in command and not is_shell
            if is_worker and group == os.getpgrp():
                return os.kill(int(number), signal.SIGKILL)
        time.sleep(0.05)

threading.Thread(target=act, daemon=True).start()
"""
_LITTLE_MEMORY = """
import resource
now = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + {size},) * 2)
"""


@campaign("full, failing, read-only and forbidden disks; inputs that change; memory; clocks")
def system_faults(folder: Path) -> Iterator[Case]:
    yield partial(fail, shared_chain(JOBS))


def fail(chain: Chain, random: Random, kind: str = "") -> str:
    """Run a job with a fault of a drawn kind, or of the given one."""
    job, drawn = chain.draw(random), random.choice(list(KINDS))
    kind = kind or drawn
    with chain.without_output(job, kind):
        outcome = KINDS[kind](chain, job, random)
        chain.restore(job.reads)
        chain.forks.run(job.command).succeeded()
        chain.check_undisturbed(job)
    return f"{kind}: {outcome}"


def _ended(chain: Chain, job: Job, ended: Ended, expected: str = "") -> str:
    """How it ended: with one line, or with an output that is as it should be."""
    if ended.code == 0:
        chain.check_undisturbed(job)
        return "finished, equal"
    line = ended.says_one_line()
    if expected not in line:
        raise AssertionError(f"expected {expected!r}: {line}")
    check_partial(chain, job)
    return "one line, then equal"


def _failing_calls(code: int, words: str) -> Callable[[Chain, Job, Random], str]:
    def run(chain: Chain, job: Job, random: Random) -> str:
        fault = Fault(fail_at=random.randint(1, chain.calls[job.name]), errno=code)
        return _ended(chain, job, chain.forks.run(job.command, fault=fault), words)

    return run


def _read_only(chain: Chain, job: Job, random: Random) -> str:
    fault = Fault(fail_at=1, errno=errno.EROFS)
    return _ended(chain, job, chain.forks.run(job.command, fault=fault), "read-only")


def _forbidden(chain: Chain, job: Job, random: Random) -> str:
    return _ended(chain, job, chain.forks.run(job.command, fault=Fault(user=NOBODY)), "ermission")


def _changed_input(chain: Chain, job: Job, random: Random) -> str:
    name = random.choice(list(CHANGES))
    delay = random.uniform(0, chain.seconds[job.name])
    patch = _LATER.format(delay=delay, path=str(chain.work / job.reads), action=CHANGES[name])
    ended = chain.forks.run(job.command, fault=Fault(patch=patch))
    chain.restore(job.reads)
    if not ended.code and job.name in ("train", "finetune"):  # they have read it before
        chain.remove(job.output)  # its manifest has a note of it
        return f"{name}, finished"
    return f"{name}, {_ended(chain, job, ended)}"


def _memory(chain: Chain, job: Job, random: Random) -> str:
    patch = _LITTLE_MEMORY.format(size=random.randint(20, 2000) << 20)
    ended = chain.forks.run(job.command, fault=Fault(patch=patch))
    # Libraries in C and C++ abort.
    if ended.code < 0 or "terminate called" in ended.stderr or "ABORT" in ended.stderr:
        check_partial(chain, job)
        return "aborted by a library, then equal"
    return _ended(chain, job, ended)


def _small_disk(chain: Chain, job: Job, random: Random) -> str:
    """Return a file system that holds the inputs and a part of the output, and then more."""
    work, inputs = chain.work, chain.work.parent / "inputs"
    shutil.copytree(work, inputs)
    size = sum(path.stat().st_size + 8192 for path in inputs.rglob("*"))
    size += random.randrange(4096, size)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(work)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        shutil.rmtree(inputs)
        return "mounting is not permitted"
    try:
        shutil.copytree(inputs, work, dirs_exist_ok=True)
        work.chmod(0o755)
        outcome = _ended(chain, job, chain.forks.run(job.command), "no space left")
        subprocess.run(["mount", "-o", "remount,size=1g", str(work)], check=True)
        chain.forks.run(job.command).succeeded()
        chain.check_undisturbed(job)
    finally:
        subprocess.run(["umount", "--lazy", str(work)], check=True)
        shutil.rmtree(inputs)
    return outcome


def _killed_worker(chain: Chain, job: Job, random: Random) -> str:
    """One of two worker processes is killed, as the kernel does where memory is short."""
    if "--workers 1" not in job.command:
        return "has no workers"
    delay = random.uniform(0, 20)  # of which a worker takes most to start
    command = job.command.replace("--workers 1", "--workers 2")
    ended = chain.forks.run(command, fault=Fault(patch=_KILL_A_WORKER.format(delay=delay)))
    return _ended(chain, job, ended)


def _clock(chain: Chain, job: Job, random: Random) -> str:
    chain.forks.run(job.command, fault=Fault(clock=random.randint(1, 1000))).succeeded()
    chain.check_undisturbed(job)
    return "finished, equal"


KINDS = {
    "disk full": _failing_calls(errno.ENOSPC, "no space left"),
    "quota": _failing_calls(errno.EDQUOT, "quota"),
    "disk failing": _failing_calls(errno.EIO, ""),
    "read-only": _read_only,
    "permission denied": _forbidden,
    "input": _changed_input,
    "memory": _memory,
    "small disk": _small_disk,
    "worker killed": _killed_worker,
    "clock": _clock,
}
