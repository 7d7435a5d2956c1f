"""Makes the small task beside this file importable, and silences the console."""

import io
import sys
from pathlib import Path

import pytest

from bert_tf.base.console import Console

sys.path.insert(0, str(Path(__file__).parent))


class HeardConsole(Console):
    """Keeps what is reported to it."""

    def __init__(self):
        self.stream = io.StringIO()
        super().__init__(self.stream, log_seconds=0.0)

    @property
    def text(self) -> str:
        return self.stream.getvalue()


@pytest.fixture
def console() -> HeardConsole:
    return HeardConsole()
