"""`--workers N` runs the tests in N children of pytest, which give memory back.

Pytest collects the tests and imports all code once, then forks children. A child runs the tests of
one file after the other. TensorFlow keeps what it compiled for as long as a process lives, so a
child that is larger than `LIMIT` after a file, or than `LIMIT_INSIDE` after any test, is replaced
by a new one. A child that dies fails one test.
"""

from __future__ import annotations

import itertools
import os
import resource
import signal
import sys
import traceback
from collections import deque
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path

import pytest

from bert_tf.base.processor import usable_cores
from bert_tf.training.memory import machine_memory

LIMIT = 1.3e9  # bytes; with what the next tests add, a child stays below 2 GB
LIMIT_INSIDE = 1.6e9  # of a file, whose fixtures are then made once more
_LEAST_TESTS = 4  # of a child before it is replaced inside of a file
_MEMORY_PER_WORKER = 3e9  # bytes


def number_of_workers(asked: str) -> int:
    """`auto` is one more than there are cores, since some tests wait, if there is memory for it."""
    if asked != "auto":
        return int(asked)
    return max(1, min(usable_cores() + 1, int(machine_memory().total / _MEMORY_PER_WORKER)))


class ForkedTests:
    """The plugin of pytest: passes tests to children, and their reports to pytest."""

    def __init__(self, workers: int) -> None:
        self._workers = [_Worker() for _ in range(workers)]
        self._largest = 0, "no test"

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session):
        if session.testsfailed or session.config.option.collectonly:
            return None
        session.config._tmp_path_factory.getbasetemp()  # the same for all children
        numbered = enumerate(session.items)
        by_file = itertools.groupby(numbered, key=lambda pair: pair[1].path)
        files = deque(deque(number for number, _ in pairs) for _, pairs in by_file)
        try:
            while running := [w for w in self._workers if self._has_test(w, files, session)]:
                for connection in wait([worker.connection for worker in running]):
                    worker = next(w for w in running if w.connection is connection)
                    self._receive(worker, session)
                if session.shouldfail or session.shouldstop:
                    raise session.Failed(session.shouldfail or session.shouldstop)
            for worker in self._workers:
                worker.finish()
        finally:
            for worker in self._workers:
                worker.kill()
        return True

    def pytest_terminal_summary(self, terminalreporter):
        size, test = self._largest
        if size:
            terminalreporter.line(f"largest process: {size / 1e9:.1f} GB, in {test}")

    def _has_test(self, worker: _Worker, files: deque[deque[int]], session) -> bool:
        """Give the worker a test if it has none and there is one."""
        if worker.test is None and (worker.tests or files):
            if not worker.tests:
                worker.tests = files.popleft()
            worker.test = worker.tests.popleft()
            if not worker.tests and files:  # by the next test a child knows what to tear down
                worker.tests = files.popleft()
            if worker.child is None:
                worker.fork(session, self._workers)
            worker.connection.send((worker.test, worker.tests[0] if worker.tests else None))
        return worker.test is not None

    def _receive(self, worker: _Worker, session) -> None:
        item = session.items[worker.test]
        worker.test = None
        try:
            reports, largest, is_leaving = worker.connection.recv()
        except EOFError:
            message = f"the process of this test ended with status {worker.reap()}"
            reports = [pytest.TestReport(item.nodeid, item.location, {}, "failed", message, "call")]
        else:
            from_data = item.config.hook.pytest_report_from_serializable
            reports = [from_data(config=item.config, data=data) for data in reports]
            self._largest = max(self._largest, (largest, item.nodeid))
            if is_leaving:
                worker.reap()
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


class _Worker:
    """One of the children that run at a time, and the numbers of its tests."""

    connection: Connection

    def __init__(self) -> None:
        self.child: int | None = None
        self.test: int | None = None  # that it runs
        self.tests: deque[int] = deque()  # that follow

    def fork(self, session, workers: list[_Worker]) -> None:
        from tensorflow.python.eager import context

        if context._context is not None and context._context._initialized:
            raise RuntimeError("a module of tests starts TensorFlow, whose threads no fork has")
        ours, theirs = Pipe()
        self.child = os.fork()
        if self.child == 0:
            for connection in (ours, *(w.connection for w in workers if w.child)):
                connection.close()
            try:
                _run_tests(session, theirs)
            except BaseException:
                traceback.print_exc(file=sys.__stderr__)
                os._exit(1)
            os._exit(0)
        theirs.close()
        self.connection = ours

    def finish(self) -> None:
        if self.child is not None:
            self.connection.send(None)
            self.reap()

    def kill(self) -> None:
        if self.child is not None:
            os.kill(self.child, signal.SIGKILL)
            self.reap()

    def reap(self) -> int:
        _, status = os.waitpid(self.child, 0)
        self.child = None
        self.connection.close()
        return os.waitstatus_to_exitcode(status)


class _Child:
    """The plugin of a child: keeps its reports, and decides when the child leaves."""

    def __init__(self) -> None:
        self.reports: list = []
        self.is_leaving = False
        self._tests = 0

    def pytest_runtest_logreport(self, report):
        self.reports.append(report)

    @pytest.hookimpl(trylast=True)  # when the fixtures that no other test needs are gone
    def pytest_runtest_teardown(self, item, nextitem):
        self._tests += 1
        is_inside = nextitem is not None and nextitem.path == item.path
        limit = LIMIT_INSIDE if is_inside else LIMIT
        may_leave = self._tests >= _LEAST_TESTS or not is_inside
        if may_leave and _resident_bytes() > limit:
            self.is_leaving = True
            item.session._setupstate.teardown_exact(None)


def _run_tests(session, connection: Connection) -> None:
    """Run the tests that the parent names, in a child, until the child has grown too large."""
    config, plugins = session.config, session.config.pluginmanager
    plugins.unregister(name="terminalreporter")
    plugins.unregister(name="forked-tests")
    capture = plugins.getplugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()  # in files that no other child has
    child = _Child()
    plugins.register(child)
    while not child.is_leaving and (numbers := connection.recv()) is not None:
        item, nextitem = (None if n is None else session.items[n] for n in numbers)
        config.hook.pytest_runtest_protocol(item=item, nextitem=nextitem)
        to_data = config.hook.pytest_report_to_serializable
        data = [to_data(config=config, report=report) for report in child.reports]
        connection.send((data, _largest_bytes(), child.is_leaving))
        child.reports.clear()


def _resident_bytes() -> int:
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _largest_bytes() -> int:
    """Return the most that this process has taken, or one that it started and that has ended."""
    kinds = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    return 1024 * max(resource.getrusage(kind).ru_maxrss for kind in kinds)
