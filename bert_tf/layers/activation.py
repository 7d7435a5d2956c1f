"""Activation functions by the names of a BERT config."""

from __future__ import annotations

from typing import Any

from keras import ops


def activation(name: str | None, inputs: Any) -> Any:
    """Applies an activation.

    Args:
        name: "gelu" is the exact one (HuggingFace); "gelu_new" and "gelu_pytorch_tanh" are the
            tanh approximation (google-research/bert, KerasHub; Hendrycks and Gimpel 2016);
            "relu", "tanh"; None changes nothing.
        inputs: float tensor of any shape.

    Raises:
        ValueError: the name is not known.
    """
    match name:
        case None:
            return inputs
        case "gelu":
            return ops.gelu(inputs, approximate=False)
        case "gelu_new" | "gelu_pytorch_tanh":
            return ops.gelu(inputs, approximate=True)
        case "relu":
            return ops.relu(inputs)
        case "tanh":
            return ops.tanh(inputs)
    raise ValueError(f"activation {name!r} is not known")
