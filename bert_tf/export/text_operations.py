"""Which operations of tensorflow_text a SavedModel needs, and what can serve them."""

from __future__ import annotations

from pathlib import Path

from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

# The first release of TensorFlow Serving whose binaries have each: 2.10 was built with TF Text 2.7,
# 2.12 with 2.12 (`org_tensorflow_text` in its workspace.bzl; tensorflow/serving issue 2064).
_FIRST_SERVING = {
    "FastWordpieceTokenizeWithOffsets": (2, 10),
    "FastBertNormalize": (2, 12),
}


def text_operations(saved_model: Path) -> list[str]:
    """The operations of tensorflow_text in the graphs of a SavedModel, sorted.

    Args:
        saved_model: its `saved_model.pb`.
    """
    graphs = SavedModel.FromString(saved_model.read_bytes()).meta_graphs
    used = {
        operation.name for graph in graphs for operation in graph.meta_info_def.stripped_op_list.op
    }
    return sorted(name for name in used if name in _FIRST_SERVING or name.startswith("TFText>"))


def first_serving_release(operations: list[str]) -> str | None:
    """The first TensorFlow Serving with all of some operations; None if that is not known here."""
    if not all(name in _FIRST_SERVING for name in operations):
        return None
    return ".".join(map(str, max(_FIRST_SERVING[name] for name in operations)))
