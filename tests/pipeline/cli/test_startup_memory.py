"""TensorFlow's pool is asked for, and keeps the memory that a step freed."""

import os
import subprocess
import sys

import pytest

from pipeline.cli import startup

pytestmark = pytest.mark.slow  # starts processes that load TensorFlow

NAMES = ("TF_CPU_ALLOCATOR_USE_BFC", "TF_CPU_BFC_MEM_LIMIT_IN_MB")

# Makes a large tensor again and again; prints how many pages the system gave, and pages a tensor.
PROGRAM = """
import resource
from pipeline.cli.startup import keep_freed_memory
keep_freed_memory()
import tensorflow as tf
faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(3):
    tf.ones([1 << 24])
before = faults()
for _ in range(10):
    tf.ones([1 << 24])
print(faults() - before, (1 << 26) // resource.getpagesize())
"""


def test_memory_of_large_tensors_is_kept():
    done = subprocess.run([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, check=True)
    faults, pages_of_a_tensor = map(int, done.stdout.split())
    assert faults < pages_of_a_tensor


@pytest.mark.parametrize(("gibibytes", "limit"), [(16, 15_360), (1, 512)])
def test_the_pool_may_take_all_memory_but_that_of_libraries(monkeypatch, gibibytes, limit):
    environment = {}
    monkeypatch.setattr(startup.os, "environ", environment)
    monkeypatch.setattr(startup, "memory_and_swap", lambda: gibibytes << 30)
    startup.keep_freed_memory()
    assert environment == dict(zip(NAMES, ("true", str(limit)), strict=True))


def test_own_settings_are_left_alone(monkeypatch):
    for name in NAMES:
        monkeypatch.setenv(name, "7")
    startup.keep_freed_memory()
    assert [os.environ[name] for name in NAMES] == ["7", "7"]
