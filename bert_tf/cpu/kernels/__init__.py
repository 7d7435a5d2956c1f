"""Element-wise work between matrix products as loops that Numba compiles once, for any shape: one
pass over memory, where XLA would compile each new shape for a second.
"""

from __future__ import annotations

from typing import Any

# Functions have these explicitly: Numba would otherwise compile each with the options of the kernel
# that calls it first. Without inlining, an entry would call the copy of a function that the process
# loaded first: of the entry itself, of another one, or, in the process that compiles both, the
# function's own. LLVM optimizes each by itself, so that sums differ in their last bits.
FUNCTION: dict[str, Any] = {
    "error_model": "numpy",
    "fastmath": {"contract"},
    "forceinline": True,
}
KERNEL: dict[str, Any] = {**FUNCTION, "nogil": True, "cache": True}
# Sums within rows may be added up in any order, the same one in every run of a processor.
SUMMING_KERNEL: dict[str, Any] = {**KERNEL, "fastmath": {"contract", "reassoc", "nsz"}}
