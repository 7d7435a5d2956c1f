"""A console that keeps its reports."""

import io

import pytest

from bert_tf.base.console import Console


class HeardConsole(Console):
    """Keeps everything that is reported to it."""

    def __init__(self):
        self.stream = io.StringIO()
        super().__init__(self.stream, log_seconds=0.0)

    @property
    def text(self) -> str:
        return self.stream.getvalue()


@pytest.fixture
def console() -> HeardConsole:
    return HeardConsole()
