"""Makes the storage and the job beside this file importable."""

import functools
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, bytes]]:
    """Yield the files of `memory://…` and `folders://…`, by path."""
    from memory_storage import FAULTS, FILES, FOLDERS

    from pipeline.beam import stored_path
    from pipeline.outputs import lock

    def empty():
        for each in (FILES, FOLDERS, stored_path._MADE):
            each.clear()
        FAULTS.reset()

    monkeypatch.setattr(lock, "_SETTLE_SECONDS", 0.0)
    empty()
    yield FILES
    empty()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """Yield a page of a real browser; tests that ask for it are skipped where there is none."""
    from behavior.browser import opened_browser

    with opened_browser(tmp_path_factory.mktemp("browser")) as browser:
        yield browser


@pytest.fixture
def forked_workers(monkeypatch):
    """Have workers of Beam start without importing everything again."""
    from behavior.forked_workers import fork_workers

    fork_workers(monkeypatch)


@pytest.fixture
def make_job(tmp_path):
    """Make a `Copying` that works in a new folder."""
    from behavior.copying_job import Copying

    return functools.partial(Copying, tmp_path)
