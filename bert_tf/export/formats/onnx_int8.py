"""ONNX graphs in 8-bit integers, by the static quantization of onnxruntime."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

_PRODUCT = "MatMul"


def write_quantized(source: Path, target: Path, batches: Sequence[dict[str, np.ndarray]]) -> None:
    """Writes a graph whose matrix products are of 8-bit integers.

    The scale of each tensor is set once, from the batches, so that the scores of a row do not
    depend on the rows beside it, as those of dynamic quantization do. Weights have a scale for each
    column, and half of the range: processors without VNNI would overflow with all of it.

    Args:
        source: the float32 graph.
        target: the graph to write.
        batches: inputs of the graph by name, a sequence each.
    """
    with _without_advice():
        quantize_static(
            source,
            target,
            _Batches(batches),
            quant_format=QuantFormat.QDQ,
            op_types_to_quantize=[_PRODUCT],
            per_channel=True,
            reduce_range=True,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
        )


class _Batches(CalibrationDataReader):
    """The batches as onnxruntime asks for them."""

    def __init__(self, batches: Sequence[dict[str, np.ndarray]]):
        self._left = iter(batches)

    def get_next(self) -> dict[str, np.ndarray] | None:
        """The next one, None after the last."""
        return next(self._left, None)


@contextlib.contextmanager
def _without_advice() -> Iterator[None]:
    """onnxruntime warns that graphs be preprocessed, for operations that ours do not have."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)
