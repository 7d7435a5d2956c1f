"""BERT on TensorFlow and Keras 3: configuration, data, models, training, export.

`bert_tf.load("model").predict(rows)` runs an exported model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bert_tf.engines.predictor import Predictor, load

__all__ = ["Predictor", "load"]


def __getattr__(name: str) -> Any:
    """What the package offers by name, imported when it is asked for."""
    if name in __all__:
        from bert_tf.engines import predictor

        return getattr(predictor, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
