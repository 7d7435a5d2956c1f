"""Kernels as C functions, and the call of one from inside an operation of TensorFlow.

An entry, of signature `ENTRY`, gets the addresses of arguments, then of results; eight numbers of
shape for each, filled up with ones from the left; and the range of rows to compute of the divided
tensor. It returns `DONE`, or `MISFIT` if shapes do not fit; Numba returns `MISFIT`, too, after an
exception.

Large tensors are divided into pieces of rows, which several threads compute (`workers`). Pieces
have a fixed size, and sums over rows are added up in the order of the pieces, so results do not
depend on the number of threads. Sums over rows are float32; an entry overwrites them with those of
its own rows.
"""

from __future__ import annotations

import ctypes
import enum
from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba.core import types
from numba.extending import intrinsic, register_jitable

from bert_tf.base.compiled import numba
from bert_tf.cpu.kernels import FUNCTION
from bert_tf.cpu.kernels.workers import find_functions, in_turns

RANK = 8  # numbers of shape per tensor
# Values that an entry returns.
DONE = 1
MISFIT = 0
_POINTER: Any = types.CPointer  # type: ignore[attr-defined]
ENTRY = types.int64(_POINTER(types.uintp), _POINTER(types.int64), types.int64, types.int64)


class Description(enum.IntEnum):
    """Places in the description of the function that an operation calls, int64 each."""

    ENTRY = 0  # address of the entry
    SUMS = 1  # number of sums over rows, the last results
    DIVIDED = 2  # number of the divided tensor
    ROW_AXES = 3  # number of its last axes that are one row
    PIECE_SIZE = 4  # elements of a piece
    BOARD = 5  # address of the board of `workers`; 0 for none
    PIECE = 6  # address of the function for a piece


class Job(enum.IntEnum):
    """Places in the data that the pieces of a call share, int64 each."""

    ENTRY = 0  # address of the entry
    DATA = 1  # address of the addresses of tensors
    DIMS = 2  # address of the shapes of tensors
    TENSORS = 3  # number of tensors
    ROWS = 4  # rows of all pieces
    STEP = 5  # rows of a piece
    SUMS = 6  # number of sums over rows, the last tensors
    WIDTH = 7  # size of the sums of a piece together
    PARTIAL = 8  # address of the sums of all pieces, float32 [pieces, width]


_DESCRIPTION_SIZE = len(Description)
_JOB_SIZE = len(Job)
_INVALID_ARGUMENT = np.int32(3)  # TF_INVALID_ARGUMENT
_MISFIT = np.frombuffer(b"a kernel's arguments have shapes that do not fit each other\0", np.uint8)
_ATTRIBUTE = np.frombuffer(b"description\0", np.uint8)
_FLOAT_BYTES = 4

_FUNCTIONS: dict[str, Any] = {
    "TF_NewStatus": types.uintp(),
    "TF_DeleteStatus": types.void(types.uintp),
    "TF_SetStatus": types.void(types.uintp, types.int32, types.uintp),
    "TF_NumInputs": types.int32(types.uintp),
    "TF_NumOutputs": types.int32(types.uintp),
    "TF_GetInput": types.void(types.uintp, types.int32, types.uintp, types.uintp),
    "TF_SetOutput": types.void(types.uintp, types.int32, types.uintp, types.uintp),
    "TF_TensorData": types.uintp(types.uintp),
    "TF_NumDims": types.int32(types.uintp),
    "TF_Dim": types.int64(types.uintp, types.int32),
    "TF_DeleteTensor": types.void(types.uintp),
    "TF_OpKernelContext_Failure": types.void(types.uintp, types.uintp),
    "TF_OpKernelConstruction_GetAttrInt64": types.void(*[types.uintp] * 4),
}
_EXTERNAL: list[Any] = [types.ExternalFunction(*function) for function in _FUNCTIONS.items()]
(
    _new_status,
    _delete_status,
    _set_status,
    _num_inputs,
    _num_outputs,
    _get_input,
    _set_output,
    _tensor_data,
    _num_dims,
    _dim,
    _delete_tensor,
    _fail,
    _get_attribute,
) = _EXTERNAL


@intrinsic
def _pointer(_: Any, address: Any) -> Any:
    """Convert an address to a pointer."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.uintp), generate


@intrinsic
def _call(_: Any, entry: Any, data: Any, dims: Any, start: Any, stop: Any) -> Any:
    """Call an entry at an address."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        number = ir.IntType(64)
        function = ir.FunctionType(number, [number] * 4).as_pointer()
        return builder.call(builder.inttoptr(arguments[0], function), arguments[1:])

    return types.int64(*[types.int64] * 5), generate


@register_jitable(**FUNCTION)
def vector(data: Any, dims: Any, number: int, kind: Any) -> Any:
    """Return all numbers of a tensor, [size]."""
    return numba.carray(_pointer(data[number]), (size_of(dims, number),), kind)


@register_jitable(**FUNCTION)
def rows_of(data: Any, dims: Any, number: int, start: int, stop: int, kind: Any) -> Any:
    """Return rows of a tensor whose last axis is a row, [stop - start, width].

    An empty tensor has no rows.
    """
    width = dims[RANK * number + RANK - 1]
    values = vector(data, dims, number, kind)
    return values[start * width : stop * width].reshape(-1, width)


@register_jitable(**FUNCTION)
def size_of(dims: Any, number: int, row_axes: int = 0) -> int:
    """Return the number of elements of a tensor, or of rows, which are its last `row_axes` axes."""
    size = 1
    for axis in range(RANK - row_axes):
        size *= dims[RANK * number + axis]
    return size


@numba.njit(**FUNCTION)
def _computed(description: Any, data: np.ndarray, dims: np.ndarray) -> int:
    """Call the entry for all rows, and return its result, `DONE` or `MISFIT`.

    Args:
        description: address of the numbers of `Description`.
        data: addresses of all tensors, arguments first.
        dims: shapes of all tensors.
    """
    known = numba.carray(_pointer(description), (_DESCRIPTION_SIZE,), np.int64)
    entry = known[Description.ENTRY]
    sums = known[Description.SUMS]
    divided = known[Description.DIVIDED]
    rows = size_of(dims, divided, known[Description.ROW_AXES])
    step = max(1, known[Description.PIECE_SIZE] * rows // max(1, size_of(dims, divided)))
    if step >= rows:
        return _call(entry, data.ctypes.data, dims.ctypes.data, 0, rows)
    first_sum = data.size - sums
    width = 0
    for number in range(first_sum, data.size):
        width += size_of(dims, number)
    count = (rows + step - 1) // step
    of_pieces = np.zeros((count, width), np.float32)
    job = np.zeros(_JOB_SIZE, np.int64)
    job[Job.ENTRY] = entry
    job[Job.DATA] = data.ctypes.data
    job[Job.DIMS] = dims.ctypes.data
    job[Job.TENSORS] = data.size
    job[Job.ROWS] = rows
    job[Job.STEP] = step
    job[Job.SUMS] = sums
    job[Job.WIDTH] = width
    job[Job.PARTIAL] = of_pieces.ctypes.data
    is_done = in_turns(known[Description.BOARD], known[Description.PIECE], job, count)
    # Added in the order of the pieces, regardless of which thread computed them.
    begin = 0
    for number in range(first_sum, data.size):
        total = vector(data, dims, number, np.float32)
        total[:] = of_pieces[0, begin : begin + total.size]
        for other in range(1, count):
            total += of_pieces[other, begin : begin + total.size]
        begin += total.size
    return DONE if is_done else MISFIT


@numba.njit(**FUNCTION)
def _call_for(data: np.ndarray, dims: int, entry: int, start: int, stop: int) -> int:
    # Numba frees an array from where only its address is used, but not an array of its caller.
    return _call(entry, data.ctypes.data, dims, start, stop)


def operation_functions(library: ctypes.CDLL) -> tuple[int, int, int]:
    """Return the addresses of three C functions: to construct and to compute an operation, and to
    compute a piece of it.

    Args:
        library: TensorFlow's library with its C interface.
    """
    find_functions()
    for name in _FUNCTIONS:
        binding.add_symbol(name, ctypes.cast(getattr(library, name), ctypes.c_void_p).value)

    @numba.cfunc(types.int64(types.int64, types.int64), cache=True)
    def compute_piece(address: Any, number: Any) -> Any:
        """Compute piece `number` of the job at `address`; return 1 for success."""
        job = numba.carray(_pointer(np.uintp(address)), (_JOB_SIZE,), np.int64)
        count = job[Job.TENSORS]
        step = job[Job.STEP]
        dims = numba.carray(_pointer(np.uintp(job[Job.DIMS])), (count * RANK,), np.int64)
        data = numba.carray(_pointer(np.uintp(job[Job.DATA])), (count,), np.uintp).copy()
        # The piece writes its sums to a place of its own.
        place = job[Job.PARTIAL] + _FLOAT_BYTES * job[Job.WIDTH] * number
        for tensor in range(count - job[Job.SUMS], count):
            data[tensor] = np.uintp(place)
            place += _FLOAT_BYTES * size_of(dims, tensor)
        start = number * step
        stop = min(start + step, job[Job.ROWS])
        result = _call_for(data, job[Job.DIMS], job[Job.ENTRY], start, stop)
        return 1 if result == DONE else 0

    @numba.cfunc(types.uintp(types.uintp), cache=True)
    def construct(construction: Any) -> Any:
        """Return the address of the description that the operation was made with."""
        value = np.zeros(1, np.int64)
        status = _new_status()
        _get_attribute(construction, _ATTRIBUTE.ctypes.data, value.ctypes.data, status)
        _delete_status(status)
        return np.uintp(value[0])

    @numba.cfunc(types.void(types.uintp, types.uintp), cache=True)
    def compute(description: Any, context: Any) -> None:
        """Call the entry, and set the tensors of results as outputs."""
        count = _num_inputs(context)
        results = _num_outputs(context)
        data = np.zeros(count, np.uintp)
        dims = np.ones(count * RANK, np.int64)
        tensors = np.zeros(count, np.uintp)
        status = _new_status()
        for number in range(count):
            _get_input(context, np.int32(number), tensors[number:].ctypes.data, status)
            tensor = tensors[number]
            data[number] = _tensor_data(tensor)
            rank = _num_dims(tensor)
            for axis in range(rank):
                dims[RANK * number + RANK - rank + axis] = _dim(tensor, np.int32(axis))
        if _computed(description, data, dims) == DONE:
            for number in range(results):
                tensor = tensors[count - results + number]
                _set_output(context, np.int32(number), tensor, status)
        else:
            _set_status(status, _INVALID_ARGUMENT, _MISFIT.ctypes.data)
            _fail(context, status)
        for number in range(count):
            _delete_tensor(tensors[number])
        _delete_status(status)

    return construct.address, compute.address, compute_piece.address
