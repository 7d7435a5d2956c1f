"""Graphs in 8-bit integers, by the static quantization of NNCF."""

from __future__ import annotations

import contextlib
import io
import logging
import os
from collections.abc import Sequence
from typing import Any

import numpy as np


def quantized(model: Any, batches: Sequence[dict[str, np.ndarray]]) -> Any:
    """A graph whose matrix products are of 8-bit integers.

    The scale of each tensor is set once, from the batches, so that the scores of a row do not
    depend on the rows beside it, as those of dynamic quantization do. Outliers of activations go
    to the weights (SmoothQuant, Xiao et al. 2023), whose range is halved where processors without
    VNNI would overflow, and biases are corrected for the error of the products before them.

    Args:
        model: an `openvino.Model`; it stays as it is.
        batches: inputs of the graph by name, a sequence each.
    """
    os.environ.setdefault("NNCF_CI", "1")  # else it reports its use over the network
    import nncf

    nncf.set_log_level(logging.ERROR)
    with contextlib.redirect_stdout(io.StringIO()):  # progress bars
        return nncf.quantize(
            model,
            nncf.Dataset(batches),
            preset=nncf.QuantizationPreset.MIXED,
            target_device=nncf.TargetDevice.CPU,
            subset_size=len(batches),
            model_type=nncf.ModelType.TRANSFORMER,
            advanced_parameters=nncf.AdvancedQuantizationParameters(
                overflow_fix=nncf.OverflowFix.ENABLE
            ),
        )
