"""The engine that runs the graph of token ids with onnxruntime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime

from bert_tf.base.processor import usable_cores
from bert_tf.engines.token_ids import TokenIdsEngine, read_weights
from bert_tf.serving.signatures import ONNX_FILE
from bert_tf.weights.onnx_graph import onnx_model


def load(folder: Path, *, threads: int | None, precision: str) -> TokenIdsEngine:
    """See `Engine`; a folder without a graph has it made of its weights."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads or usable_cores()
    file = folder / ONNX_FILE
    session = onnxruntime.InferenceSession(
        file if file.is_file() else onnx_model(*read_weights(folder)).SerializeToString(),
        sess_options=options,
        providers=["CPUExecutionProvider"],
    )
    names = [output.name for output in session.get_outputs()]

    def run(inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return dict(zip(names, session.run(names, inputs), strict=True))

    return TokenIdsEngine(folder, run)
