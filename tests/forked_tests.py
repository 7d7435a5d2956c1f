"""Workers of pytest-xdist run their tests in forked children, which give memory back.

TensorFlow keeps what it compiled for as long as a process lives. So a worker imports everything
once and forks a child that runs its tests; a child that is larger than `LIMIT` at the end of a file
is replaced by a new fork of the worker, without the imports. A child that dies fails one test.
"""

import os
import resource
import sys
import traceback
from multiprocessing import Pipe
from pathlib import Path

import pytest

LIMIT = 1.3e9  # bytes; with what one file adds, a child stays below 2 GB
MEMORY_PER_WORKER = 3e9  # bytes of a worker and its child


class ForkedTests:
    """The plugin of a worker: passes tests to a child, and the child's reports to pytest."""

    def __init__(self) -> None:
        self._child: int | None = None

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
        largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        session.config.workeroutput["largest_process"] = 1024 * largest

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
            reports, is_leaving = self._connection.recv()
        except EOFError:
            message = f"the process of this test ended with status {self._reap()}"
            return [pytest.TestReport(item.nodeid, item.location, {}, "failed", message, "call")]
        if is_leaving:
            self._reap()
        from_data = item.config.hook.pytest_report_from_serializable
        return [from_data(config=item.config, data=data) for data in reports]

    def _reap(self) -> int:
        _, status = os.waitpid(self._child, 0)
        self._child = None
        self._connection.close()
        return os.waitstatus_to_exitcode(status)


class _KeptReports:
    """The plugin of a child: keeps what the worker sends on."""

    def __init__(self) -> None:
        self.reports: list = []

    def pytest_runtest_logreport(self, report):
        self.reports.append(report)


def _run_tests(session, connection) -> None:
    """Runs the tests that the worker names, in a child, until the child has grown too large."""
    config, plugins = session.config, session.config.pluginmanager
    for plugin in plugins.get_plugins():
        if type(plugin).__name__ == "WorkerInteractor":  # xdist runs its source, not its module
            plugins.unregister(plugin)
    kept = _KeptReports()
    plugins.register(kept)
    is_leaving = False
    while not is_leaving and (numbers := connection.recv()) is not None:
        item, nextitem = (None if n is None else session.items[n] for n in numbers)
        is_last_of_file = nextitem is None or nextitem.path != item.path
        is_leaving = is_last_of_file and _resident_bytes() > LIMIT
        config.hook.pytest_runtest_protocol(item=item, nextitem=None if is_leaving else nextitem)
        to_data = config.hook.pytest_report_to_serializable
        data = [to_data(config=config, report=report) for report in kept.reports]
        connection.send((data, is_leaving))
        kept.reports.clear()


def _resident_bytes() -> int:
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
