"""Kernels' entries as operations of TensorFlow graphs on processors.

TensorFlow's C interface (tensorflow/c/ops.h, kernels.h) takes an operation whose kernel is a C
function that Numba has compiled: a call costs 3 microseconds, and threads that call at the same
time do not wait for each other, as they do for Python. On more than two cores it is Python that
calls, and hands the pieces of a call to a pool of threads.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from bert_tf.layers.kernels import native
from bert_tf.layers.kernels.pieces import PIECE_SIZE, for_each, has_pool

if TYPE_CHECKING:
    import tensorflow as tf

Result: TypeAlias = "tuple[tf.Tensor, tf.DType]"  # shape and dtype
_NAME = "BertTfKernel"
_THREAD = threading.local()
_CALLABLE = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
)


def results_of(
    entry: Any,
    arguments: Sequence[tf.Tensor],
    results: Sequence[Result],
    *,
    row_axes: int,
    divided: int = 0,
    sums: int = 0,
) -> list[tf.Tensor]:
    """As an operation, an entry that writes its results to tensors of their own.

    Args:
        entry: Numba's C function, see `bert_tf.layers.kernels.native`.
        arguments: tensors of any shapes.
        results: shapes and dtypes.
        row_axes: how many of the last axes of the divided tensor are one row.
        divided: the number of that tensor among arguments and results.
        sums: how many of the last results are sums over rows, in float32.
    """
    import tensorflow as tf

    # When all arguments are there: before, the memory of a whole step would be taken at its start.
    with tf.control_dependencies(arguments):
        buffers = [tf.raw_ops.Empty(shape=shape, dtype=dtype) for shape, dtype in results]
    outputs = _operation(entry, arguments, buffers, sums, divided, row_axes)
    for output, buffer in zip(outputs, buffers, strict=True):
        output.set_shape(buffer.shape)
    return outputs


def in_place(
    entry: Any, arguments: Sequence[tf.Tensor], variables: Sequence[tf.Variable], *, row_axes: int
) -> None:
    """As an operation, an entry that writes to the memory of variables.

    What shares a variable's memory changes with it, such as a tensor that was read from it or
    assigned to it before. For functions of TensorFlow, where reads that come later wait.

    Args:
        entry: Numba's C function, see `bert_tf.layers.kernels.native`.
        arguments: tensors; the first one is divided into rows.
        variables: of any shapes.
        row_axes: how many of the last axes of the first argument are one row.
    """
    values = [variable.read_value() for variable in variables]
    changed = _operation(entry, arguments, values, 0, 0, row_axes, is_in_place=True)
    for variable, value in zip(variables, changed, strict=True):
        variable.assign(value)


def _operation(
    entry: Any,
    arguments: Sequence[tf.Tensor],
    results: Sequence[tf.Tensor],
    *division: int,
    is_in_place: bool = False,
) -> list[tf.Tensor]:
    if has_pool():
        return _called_by_python(entry, arguments, results, *division, is_stateful=is_in_place)
    from tensorflow.python.framework import op_def_library

    _register()
    return op_def_library.apply_op(
        _NAME,
        arguments=[*arguments, *results],
        description=_description(entry, *division, PIECE_SIZE).ctypes.data,
        Tout=[result.dtype for result in results],
    )


@functools.cache
def _description(entry: Any, *numbers: int) -> np.ndarray:
    """What the operation is told by address; it is never freed."""
    return np.array([entry.address, *numbers], np.int64)


@functools.cache
def _register() -> None:
    """Makes the operation known to TensorFlow, once per process."""
    import tensorflow as tf

    (path,) = Path(tf.sysconfig.get_lib()).glob("libtensorflow_framework.*")
    library = ctypes.CDLL(str(path))
    native.find_functions(library)
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
    functions = native.construct.address, native.compute.address, None
    kernel = call(
        "TF_NewKernelBuilder",
        address,
        *((text, name), (text, b"CPU")),
        *((address, function) for function in functions),
    )
    call("TF_RegisterKernelBuilder", None, (text, name), (address, kernel), (address, status))
    check()


def _called_by_python(
    entry: Any,
    arguments: Sequence[tf.Tensor],
    results: Sequence[tf.Tensor],
    sums: int,
    divided: int,
    row_axes: int,
    *,
    is_stateful: bool,
) -> list[tf.Tensor]:
    """The same by `tf.numpy_function`, the pieces side by side."""
    import tensorflow as tf

    function = _CALLABLE(entry.address)
    first_sum = len(arguments) + len(results) - sums

    def run(*arrays: np.ndarray) -> Any:
        _keep_thread_state()
        dims = np.ones((len(arrays), native.RANK), np.int64)
        for number, array in enumerate(arrays):
            dims[number, native.RANK - array.ndim :] = array.shape
        given = arrays[divided]
        rows = int(np.prod(given.shape[: given.ndim - row_axes]))
        step = max(1, PIECE_SIZE * rows // max(1, given.size))
        starts = range(0, max(rows, 1), step)
        of_pieces = [
            np.empty((len(starts), *array.shape), np.float32) for array in arrays[first_sum:]
        ]

        def of_piece(number: int) -> None:
            start = starts[number]
            written = [*arrays[:first_sum], *(array[number] for array in of_pieces)]
            data = np.array([array.ctypes.data for array in written], np.uintp)
            if function(data.ctypes.data, dims.ctypes.data, start, min(start + step, rows)):
                raise ValueError(bytes(native.MISFIT[:-1]).decode())

        for_each(of_piece, range(len(starts)))
        for total, parts in zip(arrays[first_sum:], of_pieces, strict=True):
            total[...] = functools.reduce(np.add, parts)
        return np.int32(0) if is_stateful else list(arrays[len(arguments) :])

    if not is_stateful:
        dtypes = [result.dtype for result in results]
        return tf.numpy_function(run, [*arguments, *results], dtypes, stateful=False)
    with tf.control_dependencies([tf.numpy_function(run, [*arguments, *results], tf.int32)]):
        return [tf.identity(result) for result in results]


def _keep_thread_state() -> None:
    """Has Python keep what it knows of this thread of TensorFlow's, until the process ends.

    Otherwise every call begins by making that state and ends by destroying it, which takes more
    than twice as long as the rest of the call.
    """
    if not getattr(_THREAD, "has_state", False):
        ctypes.pythonapi.PyGILState_Ensure()
        _THREAD.has_state = True
