"""Makes the storage and the job beside this file importable."""

import functools
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def files() -> Iterator[dict[str, bytes]]:
    """What `memory://…` holds, by path."""
    from memory_storage import FILES

    FILES.clear()
    yield FILES
    FILES.clear()


@pytest.fixture
def make_job(tmp_path):
    """Makes a `Copying` that works in a new folder."""
    from copying_job import Copying

    return functools.partial(Copying, tmp_path)
