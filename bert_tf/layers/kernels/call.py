"""Functions of arrays, which hold kernels' work, as operations of TensorFlow graphs on processors.

A call costs some 30 microseconds besides its work, for Python; kernels hold no lock.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import ml_dtypes
import numpy as np

if TYPE_CHECKING:
    import tensorflow as tf

Result: TypeAlias = "tuple[tf.Tensor, tf.DType]"  # shape and dtype
_THREAD = threading.local()


def results_of(
    function: Callable[..., None], arguments: Sequence[tf.Tensor], results: Sequence[Result]
) -> list[tf.Tensor]:
    """As an operation, a function of arrays, then of those that it writes its results to.

    TensorFlow allocates these, from memory that it keeps: NumPy would return its memory to the
    system after every call, and wait for the next as long as a kernel takes. It does so when all
    arguments are there; before, the memory of a whole step would be taken at its beginning.
    """
    import tensorflow as tf

    with tf.control_dependencies(arguments):
        buffers = [tf.raw_ops.Empty(shape=shape, dtype=dtype) for shape, dtype in results]

    # The graph keeps functions that keep no tensors of it, or it would never be freed.
    number = len(arguments)

    def run(*arrays: Any) -> list[np.ndarray]:
        _keep_thread_state()
        function(*arrays)
        return list(arrays[number:])

    dtypes = [dtype for _, dtype in results]
    outputs = tf.numpy_function(run, [*arguments, *buffers], dtypes, stateful=False)
    for output, buffer in zip(outputs, buffers, strict=True):
        output.set_shape(buffer.shape)
    return outputs


def in_place(
    function: Callable[..., None], variables: Sequence[tf.Variable], arguments: Sequence[tf.Tensor]
) -> None:
    """As an operation, a function of the arrays of variables, which it writes to, and of tensors.

    What shares a variable's memory changes with it, such as a tensor that was read from it or
    assigned to it before. For functions of TensorFlow, where reads that come later wait.
    """
    import tensorflow as tf

    def run(*arrays: np.ndarray) -> np.int32:
        _keep_thread_state()
        function(*arrays)
        return np.int32(0)

    # NumPy's arrays lie where the values do.
    values = [variable.read_value() for variable in variables]
    done = tf.numpy_function(run, [*values, *arguments], tf.int32)
    with tf.control_dependencies([done]):
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)


def _keep_thread_state() -> None:
    """Has Python keep what it knows of this thread of TensorFlow's, until the process ends.

    Otherwise every call begins by making that state and ends by destroying it, which takes more
    than twice as long as the rest of the call.
    """
    if not getattr(_THREAD, "has_state", False):
        ctypes.pythonapi.PyGILState_Ensure()
        _THREAD.has_state = True


def bits_of(array: np.ndarray) -> np.ndarray:
    """Without the dtype that Numba does not know, see `bert_tf.layers.kernels.numbers`."""
    return array.view(np.uint16) if array.dtype == ml_dtypes.bfloat16 else array
