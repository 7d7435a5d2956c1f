"""Numbers wide enough to compute with, between matrix products in fewer bits."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops


def at_least_float32(values: Any) -> Any:
    """The tensor in float32, or in its own dtype where that is wider.

    Outside XLA, an operation on bfloat16 converts every number to float32 and back, and takes
    about twice as long as the same one on float32.
    """
    return ops.cast(values, keras.backend.result_type(values.dtype, "float32"))
