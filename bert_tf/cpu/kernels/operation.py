"""Kernels' entries as operations of TensorFlow graphs on processors.

TensorFlow's C interface (tensorflow/c/ops.h, kernels.h) takes an operation whose kernel is a C
function of Numba: a call costs 3 microseconds, and threads do not wait as they do for Python.
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

Result: TypeAlias = "tuple[tf.Tensor, tf.DType]"  # shape and dtype
_NAME = "BertTfKernel"
# Numbers of a piece, which threads compute side by side. Not by the number of cores: sums are those
# of pieces, so that every machine adds up in one order.
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
    """Makes an operation of an entry that writes its results to tensors of their own.

    Args:
        entry: Numba's C function, see `bert_tf.cpu.kernels.native`.
        row_axes: number of the last axes of the divided tensor that are one row.
        divided: the number of that tensor among arguments and results.
        sums: number of the last results that are sums over rows, in float32.
    """
    # When all arguments are there: before, the memory of a whole step would be taken at its start.
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
    """Makes an operation of an entry that writes to the memory of variables; see `results_of`.

    Tensors that share a variable's memory, read from it or assigned to it before, change with it.
    For functions of TensorFlow, where reads that come later wait.
    """
    values = [variable.read_value() for variable in variables]
    changed = _operation(entry, arguments, values, 0, divided, row_axes)
    for variable, value in zip(variables, changed, strict=True):
        variable.assign(value)


def kind_of(*tensors: tf.Tensor) -> Any:
    """NumPy's type of tensors in kernels; raises ValueError for several dtypes."""
    dtypes = {tensor.dtype.name for tensor in tensors}
    if len(dtypes) > 1:
        raise ValueError(f"kernels take tensors of one dtype, got {sorted(dtypes)}")
    return {"bfloat16": np.uint16, "float32": np.float32}[dtypes.pop()]


def like(*tensors: tf.Tensor) -> list[Result]:
    return [(tf.shape(tensor), tensor.dtype) for tensor in tensors]


def sums_like(*tensors: tf.Tensor) -> list[Result]:
    """Results of the shapes of tensors in float32, the dtype of sums."""
    return [(tf.shape(tensor), tf.float32) for tensor in tensors]


def _operation(
    entry: Any, arguments: Sequence[tf.Tensor], results: Sequence[tf.Tensor], *division: int
) -> list[tf.Tensor]:
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
    """The numbers whose address an operation has; never freed."""
    return np.array([entry.address, *numbers], np.int64)


def framework_library(folder: Path, link_flags: list[str]) -> Path:
    """TensorFlow's library of operations, by the name under which it is loaded already: of a copy
    under another name the process would have a second registry.
    """
    paths = sorted(folder.glob("libtensorflow_framework.*"))
    return next((path for path in paths if f"-l:{path.name}" in link_flags), paths[0])


@functools.cache
def register() -> int:
    """Registers the operation, once per process; the address of the function for a piece of it."""
    library = ctypes.CDLL(
        str(framework_library(Path(tf.sysconfig.get_lib()), tf.sysconfig.get_link_flags()))
    )
    construct, compute, piece = native.operation_functions(library)
    address, text = ctypes.c_void_p, ctypes.c_char_p

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
        *((text, name), (text, b"CPU")),
        *((address, function) for function in (construct, compute, None)),
    )
    call("TF_RegisterKernelBuilder", None, (text, name), (address, kernel), (address, status))
    check()
    return piece
