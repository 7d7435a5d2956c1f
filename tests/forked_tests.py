"""Workers of pytest-xdist run their tests in forked children, which give memory back.

TensorFlow keeps what it compiled for as long as a process lives. So a worker imports everything
once and forks a child that runs its tests; a child that is larger than `LIMIT` after a file, or
than `LIMIT_INSIDE` after any test, is replaced by a new fork of the worker, without the imports. A
child that dies fails one test.
"""

import os
import resource
import sys
import traceback
from multiprocessing import Pipe
from pathlib import Path

import pytest

LIMIT = 1.3e9  # bytes; with what the next tests add, a child stays below 2 GB
LIMIT_INSIDE = 1.6e9  # of a file, whose fixtures are then made once more
_LEAST_TESTS = 4  # of a child before it is replaced inside of a file
MEMORY_PER_WORKER = 3e9  # bytes of a worker and its child


class ForkedTests:
    """The plugin of a worker: passes tests to a child, and the child's reports to pytest."""

    def __init__(self) -> None:
        self._child: int | None = None
        self._largest = 0, "no test"

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item, nextitem):
        if self._child is None:
            self._fork(item.session)
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in self._reports(item, nextitem):
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session):
        if self._child is not None:
            self._connection.send(None)
            self._reap()
        session.config.workeroutput["largest_process"] = self._largest

    def _fork(self, session) -> None:
        from tensorflow.python.eager import context  # the controller needs no TensorFlow

        if context._context is not None and context._context._initialized:
            raise RuntimeError("a module of tests starts TensorFlow, whose threads no fork has")
        self._connection, theirs = Pipe()
        self._child = os.fork()
        if self._child == 0:
            self._connection.close()
            session.config.pluginmanager.unregister(self)
            try:
                _run_tests(session, theirs)
            except BaseException:
                traceback.print_exc(file=sys.__stderr__)
                os._exit(1)
            os._exit(0)
        theirs.close()

    def _reports(self, item, nextitem):
        items = item.session.items
        self._connection.send((items.index(item), nextitem and items.index(nextitem)))
        try:
            reports, largest, is_leaving = self._connection.recv()
        except EOFError:
            message = f"the process of this test ended with status {self._reap()}"
            return [pytest.TestReport(item.nodeid, item.location, {}, "failed", message, "call")]
        self._largest = max(self._largest, (largest, item.nodeid))
        if is_leaving:
            self._reap()
        from_data = item.config.hook.pytest_report_from_serializable
        return [from_data(config=item.config, data=data) for data in reports]

    def _reap(self) -> int:
        _, status = os.waitpid(self._child, 0)
        self._child = None
        self._connection.close()
        return os.waitstatus_to_exitcode(status)


class _Child:
    """The plugin of a child: keeps what the worker sends on, and decides when the child leaves."""

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


def _run_tests(session, connection) -> None:
    """Runs the tests that the worker names, in a child, until the child has grown too large."""
    config, plugins = session.config, session.config.pluginmanager
    for plugin in plugins.get_plugins():
        if type(plugin).__name__ == "WorkerInteractor":  # xdist runs its source, not its module
            plugins.unregister(plugin)
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
    """The most that this process has taken, or one that it started and that has ended."""
    kinds = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    return 1024 * max(resource.getrusage(kind).ru_maxrss for kind in kinds)
