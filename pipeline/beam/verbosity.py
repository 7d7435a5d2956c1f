"""Whether the libraries underneath log everything; worker processes inherit it."""

from __future__ import annotations

import os

_VARIABLE = "BERT_PIPELINE_VERBOSE"


def be_verbose() -> None:
    """Asks for everything, here and in processes started from now on."""
    os.environ[_VARIABLE] = "1"


def is_verbose() -> bool:
    """Whether everything was asked for."""
    return bool(os.environ.get(_VARIABLE))
