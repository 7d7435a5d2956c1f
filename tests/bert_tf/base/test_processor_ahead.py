"""Threads change neither the order of results nor what fails."""

import threading
import time

import pytest

from bert_tf.base.processor import map_ahead


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
