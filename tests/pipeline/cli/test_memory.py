"""The allocator's settings reach a process that is the same command otherwise."""

import os
import subprocess
import sys

import pytest

from pipeline.cli import memory

PROGRAM = """
import os, sys
from pipeline.cli.memory import keep_freed_memory
keep_freed_memory()
print(os.environ["GLIBC_TUNABLES"], os.getpid(), *sys.argv[1:])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's allocator")
@pytest.mark.parametrize("given", ["", "glibc.rtld.nns=5"])
def test_the_same_command_goes_on_in_the_same_process(given):
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "train", "--data=a b"],
        env={**os.environ, "GLIBC_TUNABLES": given},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        tunables, pid, *arguments = process.communicate()[0].split(maxsplit=3)
    assert process.returncode == 0
    assert tunables.startswith(given) and tunables.endswith("glibc.malloc.hugetlb=1")
    assert int(pid) == process.pid
    assert arguments == ["train", "--data=a b\n"]


@pytest.mark.parametrize(
    ("platform", "given"), [("darwin", ""), ("linux", "glibc.malloc.arena_max=2")]
)
def test_other_systems_and_own_settings_are_left_alone(monkeypatch, platform, given):
    monkeypatch.setattr(memory.sys, "platform", platform)
    monkeypatch.setenv("GLIBC_TUNABLES", given)
    monkeypatch.setattr(memory.os, "execve", lambda *_: pytest.fail("started again"))
    memory.keep_freed_memory()
