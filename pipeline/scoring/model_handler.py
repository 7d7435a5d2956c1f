"""Exported models for the user's own Beam pipelines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from apache_beam.ml.inference.base import ModelHandler, PredictionResult

from bert_tf.base.errors import UsageError
from bert_tf.config.registries import AUTO
from bert_tf.engines.predictor import Predictor, Row, load, row_checker
from bert_tf.serving.signatures import DEFAULT_BATCH_TOKENS
from pipeline.scoring.transforms import drop_memory_warning

_LEAST_ROWS = 64  # of a batch
_MOST_ROWS = 4096
_KEY_AND_ROW = 2  # items of an element of a KeyedModelHandler
_LENGTH_BOUNDARIES = [128, 256, 512, 1024, 2048]  # characters: 32 to 512 English tokens


class TextModelHandler(ModelHandler[Row, PredictionResult, Predictor]):
    """Runs an exported model by Beam's `RunInference`.

    An element is a row as `Predictor.predict` takes it: a text, or values by column. Its result is
    a `PredictionResult` with the row as `example` and the predictions by name as `inference`.
    RunInference keeps one model per process. A batch has up to 4,096 rows, of which those of
    similar length are computed together. If `max_batch_duration_secs` limits the time that rows
    wait, as in streams, Beam batches them by their number of characters instead. A row that cannot
    be predicted has a batch of its own, so that with `with_exception_handling` no other row fails.

        rows | RunInference(TextModelHandler("model"))

    Args:
        folder: of `bert-pipeline export`, on a disk that all workers see.
        engine: see `--engine`.
        scores: see `--scores`.
        threads: of one operation in each process; None for all cores.
        batch_tokens: tokens of a batch of the model, padding included.
        batching: arguments of `ModelHandler`: `min_batch_size`, `max_batch_size`,
            `max_batch_duration_secs`, `large_model`, ….
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        engine: str = AUTO,
        scores: str = "best",
        threads: int | None = None,
        batch_tokens: int = DEFAULT_BATCH_TOKENS,
        **batching: Any,
    ):
        defaults: dict[str, Any] = {"min_batch_size": _LEAST_ROWS, "max_batch_size": _MOST_ROWS}
        if "max_batch_duration_secs" in batching:
            defaults |= {
                "batch_length_fn": row_characters,
                "batch_bucket_boundaries": _LENGTH_BOUNDARIES,
            }
        elif "max_batch_weight" not in batching:
            most = batching.get("max_batch_size", _MOST_ROWS)
            defaults["element_size_fn"] = _RowWeight(folder, most=most)
        super().__init__(**{**defaults, **batching})
        self._folder = str(Path(folder).absolute())
        self._engine = engine
        self._scores = scores
        self._threads = threads
        self._batch_tokens = batch_tokens
        drop_memory_warning()

    def load_model(self) -> Predictor:
        return load(self._folder, engine=self._engine, threads=self._threads)

    def run_inference(
        self, batch: Sequence[Row], model: Predictor, inference_args: dict[str, Any] | None = None
    ) -> Iterable[PredictionResult]:
        predicted = model.predict(batch, scores=self._scores, batch_tokens=self._batch_tokens)
        for row, predictions in zip(batch, predicted, strict=True):
            yield PredictionResult(row, predictions, self._folder)

    def get_num_bytes(self, batch: Sequence[Row]) -> int:
        """Return the characters of the texts, for Beam's metrics."""
        return sum(map(row_characters, batch))

    def get_metrics_namespace(self) -> str:
        return "bert_pipeline"


class _RowWeight:
    """Weight of a row in a batch: 1, or that of a whole batch for a row that cannot be predicted.

    Beam's exception handling fails whole batches, so such a row needs a batch of its own.

    Args:
        folder: the exported model.
        most: weight of a full batch.
    """

    def __init__(self, folder: str | Path, *, most: int):
        self._folder = str(Path(folder).absolute())
        self._most = most
        self._checker: Predictor | None = None  # made in the worker

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_checker": None}

    def __call__(self, element: Any) -> int:
        is_keyed = isinstance(element, tuple) and len(element) == _KEY_AND_ROW
        row = element[1] if is_keyed else element  # of a KeyedModelHandler
        if self._checker is None:
            self._checker = row_checker(self._folder)
        try:
            self._checker.check_row(row)
        except UsageError:
            return self._most + 1
        return 1


def row_characters(row: Row) -> int:
    """Return the characters of all texts of a row."""
    # Values may have any type here; wrong ones are refused later.
    values = row.values() if isinstance(row, Mapping) else [row]
    return sum(len(value) for value in values if isinstance(value, str))
