"""How busy other processes keep the cores, and which instructions may be used."""

import dataclasses
import threading
import time

import pytest
from behavior.timing import wait_until

from bert_tf.base import processor
from bert_tf.base.processor import CoreTimes, map_ahead, usable_cores


@pytest.fixture
def later(monkeypatch):
    """Set the times that are read from now on."""

    def read(**times):
        monkeypatch.setattr(CoreTimes, "read", classmethod(lambda cls: cls(**times)))

    return read


def test_what_others_take_is_neither_idle_nor_ours(later):
    before = CoreTimes(now=10.0, busy=100.0, own=7.0)
    cores = usable_cores()
    later(now=12.0, busy=100.0 + 1.5 * cores, own=7.0 + 1.0 * cores)
    assert before.taken_by_others() == pytest.approx(0.25)  # of 2 s of each core 0.5
    assert dataclasses.replace(before, busy=None).taken_by_others() == 0.0
    later(now=12.0, busy=100.0, own=9.0)  # clocks are not exact
    assert before.taken_by_others() == 0.0


def test_our_own_work_is_counted(monkeypatch):
    before = CoreTimes.read()
    if before.busy is None:
        pytest.skip("this system does not tell")

    def has_worked():
        sum(range(100_000))
        after = CoreTimes.read()
        return after.own >= before.own + 0.1 and after.busy >= before.busy + 0.05

    wait_until(has_worked, "0.1 s of our own work, and 0.05 s in the ticks of the system")
    monkeypatch.setattr(processor, "Path", lambda path: FileNotFoundPath())
    assert CoreTimes.read().busy is None


class FileNotFoundPath:
    """A path on a system without /proc."""

    def read_text(self, encoding):
        raise FileNotFoundError


@pytest.mark.parametrize(
    ("flags", "limit", "expected"),
    [
        ({"avx2", "avx512f", "avx512_bf16"}, "", True),
        ({"avx2", "avx512f", "avx512_bf16"}, "ALL", True),
        ({"avx2", "avx512f", "avx512_bf16"}, "avx2", False),
        ({"avx2", "avx512f"}, "", False),
        ({"amx_bf16"}, "AVX512_CORE_BF16", True),
    ],
)
def test_bfloat16_where_the_processor_has_it_and_onednn_may(monkeypatch, flags, limit, expected):
    monkeypatch.setattr(processor, "processor_flags", lambda: flags)
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", limit)
    assert processor.has_bfloat16() == expected


# Threads change neither the order of results nor what fails.


def test_results_come_in_order_whatever_finishes_first():
    def slow_at_first(item):
        time.sleep(0.02 if item < 3 else 0)
        return item * item

    assert list(map_ahead(slow_at_first, range(20))) == [item * item for item in range(20)]


def test_work_stays_a_bounded_number_of_items_ahead(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    started = []
    results = map_ahead(lambda item: started.append(item) or item, range(100))
    assert next(results) == 0
    assert len(started) <= 5
    results.close()
    assert len(started) <= 5


def test_work_stays_one_item_ahead():
    started = []
    results = map_ahead(lambda item: started.append(item) or item, range(100), threads=1, depth=1)
    for expected in range(3):
        assert next(results) == expected
        assert len(started) <= expected + 2
    results.close()


def test_a_failure_reaches_the_caller_and_no_thread_stays():
    def fail_at_3(item):
        if item == 3:
            raise ValueError("item 3")
        return item

    before = threading.enumerate()
    results = map_ahead(fail_at_3, range(50))
    with pytest.raises(ValueError, match="item 3"):
        list(results)
    assert set(threading.enumerate()) <= set(before)
