"""Makes the storage beside this file importable."""

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
