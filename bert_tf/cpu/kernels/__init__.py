"""Element-wise work between the matrix products of a training step, as compiled loops.

TensorFlow's operations pass through memory once each, those on bfloat16 convert every number twice,
and XLA, which would make one pass of them, compiles each new shape for a second. A kernel makes one
pass over numbers of any shape. Numba compiles it once for a machine.
"""

from __future__ import annotations

from typing import Any

# Functions have these explicitly: Numba would otherwise compile each with the options of the kernel
# that calls it first.
FUNCTION: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract"}}
KERNEL: dict[str, Any] = {**FUNCTION, "nogil": True, "cache": True}
# Sums within rows may be added up in any order, the same one in every run of a processor.
SUMMING_KERNEL: dict[str, Any] = {**KERNEL, "fastmath": {"contract", "reassoc", "nsz"}}
