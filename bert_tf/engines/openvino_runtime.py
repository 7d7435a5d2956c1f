"""The engine that runs the graph of token ids with OpenVINO."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import openvino

from bert_tf.base.processor import usable_cores
from bert_tf.config.registries import BFLOAT16, INT8
from bert_tf.engines.token_ids import TokenIdsEngine, checked_outputs, graph_of, inputs_by_name
from bert_tf.serving.signatures import ONNX_FILE, OPENVINO_FILE, OPENVINO_INT8_FILE

# OpenVINO's plugin for CPUs gives the thread that loads it a stack for signals, and frees it with
# the last model of its `Core`. With several of these, a signal could find a freed stack, which ends
# the process. So there is a single one, which is never freed.
_CORE = openvino.Core()


def load(folder: Path, *, threads: int | None, precision: str) -> TokenIdsEngine:
    """Load a model; a graph that is not in the folder is made from the weights."""
    graphs = (OPENVINO_INT8_FILE,) if precision == INT8 else (OPENVINO_FILE, ONNX_FILE)
    with graph_of(folder, graphs, RuntimeError, ValueError) as graph:
        model = _CORE.read_model(graph) if isinstance(graph, Path) else _CORE.read_model(graph, b"")
        compiled = _CORE.compile_model(
            model,
            "CPU",
            {
                # If int8, this is the precision of everything except products, which in bfloat16
                # would depend on the batch.
                "INFERENCE_PRECISION_HINT": "bf16" if precision == BFLOAT16 else "f32",
                "PERFORMANCE_HINT": "LATENCY",
                "INFERENCE_NUM_THREADS": threads or usable_cores(),
                "ENABLE_CPU_PINNING": False,  # other processes may use the cores
            },
        )
        names = [value.get_any_name() for value in compiled.inputs]
        # An output also has the names of inner nodes.
        outputs = checked_outputs(names, [output.get_names() for output in compiled.outputs])
    requests = threading.local()  # a request serves one thread at a time

    def run(inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        if not hasattr(requests, "own"):
            requests.own = compiled.create_infer_request()
        arrays = requests.own.infer(inputs_by_name(inputs, names), share_inputs=True)
        return {name: arrays[place] for place, name in enumerate(outputs)}

    return TokenIdsEngine(folder, run, RuntimeError)
