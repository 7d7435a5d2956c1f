"""Models with the answers of a test, and their page on a server."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from bert_tf.base.console import Console
from bert_tf.engines.predictor import Predictor
from bert_tf.tasks.registry import declared_task
from pipeline.trying.model import TriedModel
from pipeline.trying.page import TryPage
from pipeline.trying.server import PageServer, listen


class FixedEngine:
    """Predicts the same for every row, or fails; keeps its inputs.

    Args:
        outputs: of one row, by name; or an exception to raise.
    """

    def __init__(self, outputs: dict[str, Any] | Exception):
        self.outputs = outputs
        self.given: list[dict[str, list[Any]]] = []

    def predict(self, columns):
        self.given.append(columns)
        if isinstance(self.outputs, Exception):
            raise self.outputs
        return {name: _column(value) for name, value in self.outputs.items()}


def _column(value: Any) -> np.ndarray:
    if isinstance(value, str):
        return np.array([value], object)
    return np.asarray([value])


@pytest.fixture
def tried_model() -> Callable[..., TriedModel]:
    """Return a function that makes a model by its `task.json` and its predictions."""

    def make(task: dict[str, Any], outputs: dict[str, Any] | Exception) -> TriedModel:
        predictor = Predictor(
            folder="m",
            engine_name="fixed",
            engine=FixedEngine(outputs),
            declared=declared_task(task, "m"),
            task=task,
        )
        return TriedModel(name="models/<m>", predictor=predictor)

    return make


@pytest.fixture
def served() -> Callable[..., Any]:
    """Serve a model's page while a block runs; its console is a text stream."""

    @contextmanager
    def serve(model: TriedModel) -> Iterator[PageServer]:
        console = Console(io.StringIO())
        with listen(0) as listening, PageServer(listening, TryPage(model), console) as server:
            thread = threading.Thread(target=server.serve_forever, args=(0.01,))
            thread.start()
            try:
                yield server
            finally:
                server.shutdown()
                thread.join()

    return serve
