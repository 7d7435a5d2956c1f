"""The engine that runs the graph of token ids with onnxruntime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as native

from bert_tf.base.processor import usable_cores
from bert_tf.config.registries import INT8
from bert_tf.engines.token_ids import TokenIdsEngine, checked_outputs, graph_of, inputs_by_name
from bert_tf.serving.signatures import ONNX_FILE, ONNX_INT8_FILE

# Exceptions of onnxruntime, which have no class in common.
_FAULTS = (
    native.Fail,
    native.InvalidArgument,
    native.InvalidGraph,
    native.InvalidProtobuf,
    native.NotImplemented,
    native.RuntimeException,
    ValueError,
)


def load(folder: Path, *, threads: int | None, precision: str) -> TokenIdsEngine:
    """Load a model; a graph that is not in the folder is made from the weights."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads or usable_cores()
    file = ONNX_INT8_FILE if precision == INT8 else ONNX_FILE
    with graph_of(folder, (file,), *_FAULTS) as graph:
        session = onnxruntime.InferenceSession(
            graph, sess_options=options, providers=["CPUExecutionProvider"]
        )
        inputs = [value.name for value in session.get_inputs()]
        names = checked_outputs(inputs, [[value.name] for value in session.get_outputs()])

    def run(batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        arrays = session.run(names, inputs_by_name(batch, inputs))
        return dict(zip(names, arrays, strict=True))

    return TokenIdsEngine(folder, run, *_FAULTS)
