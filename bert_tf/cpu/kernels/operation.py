"""Entries of kernels as operations of TensorFlow graphs on CPUs.

TensorFlow's C interface (tensorflow/c/ops.h, kernels.h) accepts an operation whose kernel is a C
function, which Numba compiles. A call costs 3 microseconds, and threads do not wait for each other,
as they would in Python.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf

from bert_tf.cpu.kernels import native
from bert_tf.cpu.kernels.workers import board_address

# Shape, int32 [rank], and dtype of a result.
Result: TypeAlias = "tuple[tf.Tensor, tf.DType]"
_NAME = "BertTfKernel"
# Elements of a piece; threads compute pieces side by side. It does not depend on the number of
# cores: sums over rows are added up by pieces, so that all machines add in the same order.
PIECE_SIZE = 2**18


def results_of(
    entry: Any,
    arguments: Sequence[tf.Tensor],
    results: Sequence[Result],
    *,
    row_axes: int,
    divided: int = 0,
    sums: int = 0,
) -> list[tf.Tensor]:
    """Make an operation of an entry that writes its results to new tensors.

    Args:
        entry: Numba's C function, see `native`.
        arguments: tensors of up to 8 axes.
        results: shapes and dtypes.
        row_axes: number of the last axes of the divided tensor that are one row.
        divided: number of the divided tensor among arguments and results.
        sums: number of the last results that are sums over rows, in float32.
    """
    # Without this, the memory for all results of a step could be allocated at its start.
    with tf.control_dependencies(arguments):
        buffers = [tf.raw_ops.Empty(shape=shape, dtype=dtype) for shape, dtype in results]
    outputs = _operation(entry, arguments, buffers, sums, divided, row_axes)
    for output, buffer in zip(outputs, buffers, strict=True):
        output.set_shape(buffer.shape)
    return outputs


def in_place(
    entry: Any,
    arguments: Sequence[tf.Tensor],
    variables: Sequence[tf.Variable],
    *,
    row_axes: int,
    divided: int = 0,
) -> None:
    """Make an operation of an entry that writes to the memory of variables.

    Tensors that share the memory of a variable, read from it or assigned to it before, change with
    it. For functions of TensorFlow, in which later reads wait.

    Args:
        entry, arguments, row_axes: see `results_of`.
        variables: variables of up to 8 axes.
        divided: number of the divided tensor among arguments and variables.
    """
    values = [variable.read_value() for variable in variables]
    changed = _operation(entry, arguments, values, 0, divided, row_axes)
    for variable, value in zip(variables, changed, strict=True):
        variable.assign(value)


def kind_of(*tensors: tf.Tensor) -> Any:
    """Return NumPy's type of tensors in kernels: uint16 for bfloat16, or float32.

    Raises:
        ValueError: the tensors have different dtypes; a kernel would read one as another.
    """
    dtypes = {tensor.dtype.name for tensor in tensors}
    if len(dtypes) > 1:
        raise ValueError(f"kernels take tensors of one dtype, got {sorted(dtypes)}")
    return {"bfloat16": np.uint16, "float32": np.float32}[dtypes.pop()]


def like(*tensors: tf.Tensor) -> list[Result]:
    """Return results with the shapes and dtypes of tensors."""
    return [(tf.shape(tensor), tensor.dtype) for tensor in tensors]


def sums_like(*tensors: tf.Tensor) -> list[Result]:
    """Return results with the shapes of tensors, in float32, the dtype of sums."""
    return [(tf.shape(tensor), tf.float32) for tensor in tensors]


def _operation(
    entry: Any, arguments: Sequence[tf.Tensor], results: Sequence[tf.Tensor], *division: int
) -> list[tf.Tensor]:
    """Make the operation; its outputs are the tensors of results."""
    from tensorflow.python.framework import op_def_library

    for tensor in (*arguments, *results):
        if (tensor.shape.rank or 0) > native.RANK:
            raise ValueError(f"kernels take tensors of up to {native.RANK} axes, got {tensor}")
    piece = register()
    description = _description(entry, *division, PIECE_SIZE, board_address(), piece)
    return op_def_library.apply_op(
        _NAME,
        arguments=[*arguments, *results],
        description=description.ctypes.data,
        Tout=[result.dtype for result in results],
    )


@functools.cache
def _description(entry: Any, *numbers: int) -> np.ndarray:
    """Return the numbers whose address the operation gets; they are never freed."""
    return np.array([entry.address, *numbers], np.int64)


def framework_library(folder: Path, link_flags: list[str]) -> Path:
    """Return TensorFlow's library of operations, under the name by which it is loaded already.

    A copy under another name would give the process a second registry of operations.
    """
    paths = sorted(folder.glob("libtensorflow_framework.*"))
    return next((path for path in paths if f"-l:{path.name}" in link_flags), paths[0])


@functools.cache
def register() -> int:
    """Register the operation, once per process; return the address of the function for a piece."""
    library = ctypes.CDLL(
        str(framework_library(Path(tf.sysconfig.get_lib()), tf.sysconfig.get_link_flags()))
    )
    construct, compute, piece = native.operation_functions(library)
    address = ctypes.c_void_p
    text = ctypes.c_char_p

    def call(name: str, result: Any, *arguments: tuple[Any, Any]) -> Any:
        function = getattr(library, name)
        function.restype = result
        function.argtypes = [kind for kind, _ in arguments]
        return function(*(value for _, value in arguments))

    status = call("TF_NewStatus", address)

    def check() -> None:
        if call("TF_GetCode", ctypes.c_int, (address, status)):
            raise RuntimeError(call("TF_Message", text, (address, status)).decode())

    name = _NAME.encode()
    definition = call("TF_NewOpDefinitionBuilder", address, (text, name))
    for part, spec in (
        ("Attr", b"description: int"),
        ("Attr", b"Tin: list(type)"),
        ("Attr", b"Tout: list(type)"),
        ("Input", b"arguments: Tin"),
        ("Output", b"results: Tout"),
    ):
        call(f"TF_OpDefinitionBuilderAdd{part}", None, (address, definition), (text, spec))
    call("TF_RegisterOpDefinition", None, (address, definition), (address, status))
    check()
    kernel = call(
        "TF_NewKernelBuilder",
        address,
        (text, name),
        (text, b"CPU"),
        (address, construct),
        (address, compute),
        (address, None),  # nothing to delete
    )
    call("TF_RegisterKernelBuilder", None, (text, name), (address, kernel), (address, status))
    check()
    return piece
