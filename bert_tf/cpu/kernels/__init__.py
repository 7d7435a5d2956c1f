"""Loops between matrix products, compiled by Numba once for any shape.

A kernel does a chain of element-wise operations in one pass over memory. XLA would compile each new
shape for a second. Every kernel has three layers: a loop over NumPy arrays (`gelu`), an entry with
C types that takes addresses and shapes (`gelu_entry`, see `native`), and a function of tensors with
its gradient (`graph.biased_gelu`).
"""

from __future__ import annotations

from typing import Any

# All functions set these explicitly. Otherwise, Numba would compile each one with the options of
# the kernel that calls it first. Inlining is needed for equal bits: without it, an entry calls the
# copy of a function that the process has loaded first (its own, or that of another entry), and LLVM
# optimizes each copy by itself, so that sums differ in their last bits.
FUNCTION: dict[str, Any] = {
    "error_model": "numpy",
    "fastmath": {"contract"},
    "forceinline": True,
}
KERNEL: dict[str, Any] = {**FUNCTION, "nogil": True, "cache": True}
# Sums within rows may be added in any order, which lets LLVM vectorize them. The order is the same
# in every run on a processor.
SUMMING_KERNEL: dict[str, Any] = {**KERNEL, "fastmath": {"contract", "reassoc", "nsz"}}
