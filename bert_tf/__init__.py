"""BERT on TensorFlow and Keras 3: configuration, data, models, training, export.

`bert_tf.load("model").predict(rows)` runs an exported model.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from typing import TYPE_CHECKING, Any

from bert_tf.config.registries import REGISTRIES
from bert_tf.engines.registry import ENGINES
from bert_tf.export.registry import FORMATS
from bert_tf.tasks import PRETRAINED_TASKS
from bert_tf.training.tracking.registry import TRACKERS

if TYPE_CHECKING:
    from bert_tf.engines.predictor import Predictor, load

__all__ = ["Predictor", "load"]

# Names that config keys choose from; what they name is imported when it is used.
REGISTRIES.engines = ENGINES
REGISTRIES.formats = FORMATS
REGISTRIES.trackers = TRACKERS
REGISTRIES.pretrained_tasks = PRETRAINED_TASKS


class LateWrappers(PathFinder):
    """Loads `keras.wrappers` when it is used: scikit-learn takes a fifth of a command's start."""

    @classmethod
    def find_spec(cls, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        spec = super().find_spec(fullname, path) if fullname == "keras.wrappers" else None
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


sys.meta_path.insert(0, LateWrappers)


def __getattr__(name: str) -> Any:
    """Import an offered name when it is first used."""
    if name in __all__:
        from bert_tf.engines import predictor

        return getattr(predictor, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
