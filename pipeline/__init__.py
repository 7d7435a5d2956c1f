"""Batch jobs around BERT: Beam pipelines and the `bert-pipeline` command line.

Commands are functions as well: `from pipeline import finetune`; see `pipeline.api`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeline.api import (
        embed,
        evaluate,
        export,
        finetune,
        import_weights,
        label_errors,
        preprocess,
        score,
        search,
        summarize,
        train,
        vocab,
    )

__all__ = [
    "embed",
    "evaluate",
    "export",
    "finetune",
    "import_weights",
    "label_errors",
    "preprocess",
    "score",
    "search",
    "summarize",
    "train",
    "vocab",
]


def __getattr__(name: str) -> Any:
    """Import an offered name when it is first used."""
    if name in __all__:
        return getattr(importlib.import_module("pipeline.api"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
