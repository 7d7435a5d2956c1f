"""Limits of control groups, read from files as Linux writes them."""

import gc
import weakref

import pytest
import tensorflow as tf

from bert_tf.training.memory import machine_memory, peak_bytes, releasing_graphs

GIB = 2**30
MEMINFO = f"MemTotal: {8 * GIB >> 10} kB\nMemAvailable: {6 * GIB >> 10} kB\n"


@pytest.fixture
def process(tmp_path, monkeypatch):
    """Return a process that has 1 GiB, on a machine of 8 GiB of which 6 are free."""
    sizes = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 2 * 2**20}
    monkeypatch.setattr("bert_tf.training.memory.os.sysconf", sizes.__getitem__)
    (tmp_path / "proc" / "self").mkdir(parents=True)
    (tmp_path / "proc" / "meminfo").write_text(MEMINFO)
    (tmp_path / "proc" / "self" / "status").write_text(f"Name: python\nVmRSS: {GIB >> 10} kB\n")
    return tmp_path / "proc" / "self"


def write_group(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / f"memory.{name}").write_text(f"{text}\n")


def found(process, groups, lines):
    (process / "cgroup").write_text(lines)
    memory = machine_memory(process, groups)
    return memory.total / GIB, memory.available / GIB


def test_without_a_limit_it_is_that_of_the_machine(process, tmp_path):
    assert found(process, tmp_path, "0::/\n") == (8, 7)
    write_group(tmp_path / "group", max="max", current=GIB)
    assert found(process, tmp_path, "0::/group\n") == (8, 7)


def test_the_least_limit_of_the_groups_around_the_process_counts(process, tmp_path):
    stat = f"anon 5\ninactive_file {GIB // 2}"
    write_group(tmp_path / "pod", max=4 * GIB, current=2 * GIB, stat=stat)
    write_group(tmp_path / "pod" / "container", max=5 * GIB, current=2 * GIB)
    assert found(process, tmp_path, "0::/pod/container\n") == (4, 3.5)


def test_groups_of_the_first_version(process, tmp_path):
    stat = f"inactive_file 0\ntotal_inactive_file {GIB // 2}"
    sizes = {"limit_in_bytes": 3 * GIB, "usage_in_bytes": 2 * GIB, "stat": stat}
    write_group(tmp_path / "memory", **sizes)  # what a container sees of its own group
    assert found(process, tmp_path, "9:cpu:/x\n4:memory:/docker/abc\n0::/\n") == (3, 2.5)
    write_group(tmp_path / "memory", limit_in_bytes=2**63 - 4096)
    assert found(process, tmp_path, "4:memory:/docker/abc\n") == (8, 7)


def test_the_peak_is_that_of_this_process():
    before = peak_bytes()
    block = bytearray(64 << 20)
    assert peak_bytes() >= before
    assert peak_bytes() > len(block)


# Graphs are released with the block that traced them.


def traced():
    @tf.custom_gradient
    def doubled(values):
        return 2 * values, lambda upstream: 2 * upstream

    function = tf.function(doubled)
    assert function(tf.constant(3.0)) == 6
    return function


def test_graphs_of_the_block_are_released():
    with releasing_graphs():
        graph = weakref.ref(traced().get_concrete_function(tf.constant(3.0)).graph)
    gc.collect()
    assert graph() is None


def test_gradients_from_before_the_block_stay():
    function, value = traced(), tf.constant(3.0)
    with releasing_graphs():
        traced()
    with tf.GradientTape() as tape:
        tape.watch(value)
        result = function(value)
    assert tape.gradient(result, value) == 2
