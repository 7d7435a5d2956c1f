"""Kernels as C functions, and their call from inside an operation of TensorFlow.

An entry, of signature `ENTRY`, gets the addresses of arguments, then of results, eight numbers of
shape for each, filled up with ones from the left, and the rows to compute of the divided tensor. It
returns `DONE`, or `MISFIT` if shapes do not fit, which is what Numba returns after an exception.
Sums over rows are float32; an entry writes those of its own rows.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numba
import numpy as np
from llvmlite import binding, ir
from numba.core import types
from numba.extending import intrinsic, register_jitable

from bert_tf.cpu.kernels import FUNCTION
from bert_tf.cpu.kernels.workers import find_functions, in_turns

RANK = 8
DONE, MISFIT = 1, 0
_POINTER: Any = types.CPointer  # type: ignore[attr-defined]
ENTRY = types.int64(_POINTER(types.uintp), _POINTER(types.int64), types.int64, types.int64)
# The fields of what an operation knows of the function it calls, int64 each.
DESCRIPTION = ("entry", "sums", "divided", "row_axes", "piece_size", "board", "piece")
_INVALID_ARGUMENT = np.int32(3)
_MISFIT = np.frombuffer(b"a kernel's arguments have shapes that do not fit each other\0", np.uint8)
# Numbers of what the pieces of a call have in common.
_JOB_SIZE = 9
_ATTRIBUTE = np.frombuffer(b"description\0", np.uint8)

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
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.uintp), generate


@intrinsic
def _call(_: Any, entry: Any, data: Any, dims: Any, start: Any, stop: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        number = ir.IntType(64)
        function = ir.FunctionType(number, [number] * 4).as_pointer()
        return builder.call(builder.inttoptr(arguments[0], function), arguments[1:])

    return types.int64(*[types.int64] * 5), generate


@register_jitable(**FUNCTION)
def vector(data: Any, dims: Any, number: int, kind: Any) -> Any:
    return numba.carray(_pointer(data[number]), (size_of(dims, number),), kind)


@register_jitable(**FUNCTION)
def rows_of(data: Any, dims: Any, number: int, start: int, stop: int, kind: Any) -> Any:
    """Rows of a tensor whose last axis is a row, [stop - start, width]; of an empty one, none."""
    width = dims[RANK * number + RANK - 1]
    values = vector(data, dims, number, kind)
    return values[start * width : stop * width].reshape(-1, width)


@register_jitable(**FUNCTION)
def size_of(dims: Any, number: int, row_axes: int = 0) -> int:
    """Elements of a tensor, or rows, which are its last axes."""
    size = 1
    for axis in range(RANK - row_axes):
        size *= dims[RANK * number + axis]
    return size


@numba.njit(**FUNCTION)
def _computed(description: Any, data: np.ndarray, dims: np.ndarray) -> int:
    """Calls the entry for all rows, by the address of the numbers of `DESCRIPTION`."""
    known = numba.carray(_pointer(description), (len(DESCRIPTION),), np.int64)
    entry, sums, divided, row_axes = known[0], known[1], known[2], known[3]
    rows = size_of(dims, divided, row_axes)
    step = max(1, known[4] * rows // max(1, size_of(dims, divided)))
    if step >= rows:
        return _call(entry, data.ctypes.data, dims.ctypes.data, 0, rows)
    first_sum = data.size - sums
    width = 0
    for number in range(first_sum, data.size):
        width += size_of(dims, number)
    count = (rows + step - 1) // step
    of_pieces = np.zeros((count, width), np.float32)
    job = np.zeros(_JOB_SIZE, np.int64)
    job[0], job[1], job[2], job[3] = entry, data.ctypes.data, dims.ctypes.data, data.size
    job[4], job[5], job[6], job[7] = rows, step, sums, width
    job[8] = of_pieces.ctypes.data
    is_done = in_turns(known[5], known[6], job, count)
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
    # Numba frees an array whose address alone is used from there on, but none of its caller's.
    return _call(entry, data.ctypes.data, dims, start, stop)


def operation_functions(library: ctypes.CDLL) -> tuple[int, int, int]:
    """Addresses of the functions that make an operation, compute it, and compute a piece of it."""
    find_functions()
    for name in _FUNCTIONS:
        binding.add_symbol(name, ctypes.cast(getattr(library, name), ctypes.c_void_p).value)

    @numba.cfunc(types.int64(types.int64, types.int64), cache=True)
    def compute_piece(address: Any, number: Any) -> Any:
        job = numba.carray(_pointer(np.uintp(address)), (_JOB_SIZE,), np.int64)
        entry, count, rows, step, sums, width = job[0], job[3], job[4], job[5], job[6], job[7]
        dims = numba.carray(_pointer(np.uintp(job[2])), (count * RANK,), np.int64)
        data = numba.carray(_pointer(np.uintp(job[1])), (count,), np.uintp).copy()
        place = job[8] + 4 * width * number
        for tensor in range(count - sums, count):
            data[tensor] = np.uintp(place)
            place += 4 * size_of(dims, tensor)
        start = number * step
        stop = min(start + step, rows)
        return 1 if _call_for(data, job[2], entry, start, stop) == DONE else 0

    @numba.cfunc(types.uintp(types.uintp), cache=True)
    def construct(construction: Any) -> Any:
        value = np.zeros(1, np.int64)
        status = _new_status()
        _get_attribute(construction, _ATTRIBUTE.ctypes.data, value.ctypes.data, status)
        _delete_status(status)
        return np.uintp(value[0])

    @numba.cfunc(types.void(types.uintp, types.uintp), cache=True)
    def compute(description: Any, context: Any) -> None:
        count, results = _num_inputs(context), _num_outputs(context)
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
