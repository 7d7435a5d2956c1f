"""Threads of compiled code that compute pieces of a kernel's call beside the calling thread.

One call at a time has them; another call meanwhile computes its pieces itself.
"""

from __future__ import annotations

import ctypes
import functools
import os
import threading
from typing import Any

import numba
import numpy as np
from llvmlite import binding, ir
from numba.core import types
from numba.extending import intrinsic

from bert_tf.base.processor import usable_cores
from bert_tf.cpu.kernels import FUNCTION

# TensorFlow has two threads, one for each part of a batch; on two cores they are all it takes.
_LEAST_CORES = 3
# What threads share, int64 each. `TURN` holds the number of the call, how many pieces it has, and
# which one is next: who takes a piece compares and exchanges all three, so that nobody takes one of
# a call that is over. `BY_WORKERS` counts the pieces that workers have computed.
_FIELDS = range(9)
_IS_TAKEN, _TURN, _DONE, _SUCCEEDED, _FUNCTION, _JOB, _PIPE, _WORKERS, _BY_WORKERS = _FIELDS
_BOARDS: list[np.ndarray] = []
_BITS = 20
_MASK = 2**_BITS - 1
_BYTES = 8

_SYMBOLS = ("read", "write", "sched_yield")
_read: Any = types.ExternalFunction("read", types.int64(types.int32, types.uintp, types.int64))
_write: Any = types.ExternalFunction("write", types.int64(types.int32, types.uintp, types.int64))
_yield: Any = types.ExternalFunction("sched_yield", types.int32())


@intrinsic
def _exchanged(_: Any, address: Any, expected: Any, value: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        place = builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())
        found = builder.cmpxchg(place, arguments[1], arguments[2], "seq_cst", "seq_cst")
        return builder.zext(builder.extract_value(found, 1), ir.IntType(64))

    return types.int64(types.int64, types.int64, types.int64), generate


@intrinsic
def _added(_: Any, address: Any, value: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        place = builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())
        return builder.atomic_rmw("add", place, arguments[1], "seq_cst")

    return types.int64(types.int64, types.int64), generate


@intrinsic
def _called(_: Any, function: Any, job: Any, number: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        whole = ir.IntType(64)
        signature = ir.FunctionType(whole, [whole] * 2).as_pointer()
        return builder.call(builder.inttoptr(arguments[0], signature), arguments[1:])

    return types.int64(types.int64, types.int64, types.int64), generate


@numba.njit(**FUNCTION)
def in_turns(board: int, function: int, job: np.ndarray, count: int) -> bool:
    """Computes all pieces of a call, fewer than 2^20; returns whether all of them succeeded.

    `board` is of `board_address`, `function` the address of the C function of a piece, int64 (job's
    address, number), which returns 1 for success, `job` int64.
    """
    if board == 0 or count == 1 or not _exchanged(_at(board, _IS_TAKEN), 0, 1):
        succeeded = 0
        for number in range(count):
            succeeded += _called(function, job.ctypes.data, number)
        return succeeded == count
    before = _added(_at(board, _TURN), 0)
    _put(board, _FUNCTION, function)
    _put(board, _JOB, job.ctypes.data)
    _put(board, _SUCCEEDED, 0)
    _put(board, _DONE, 0)
    turn = (((before >> (2 * _BITS)) + 1) << (2 * _BITS)) | (count << _BITS)
    _put(board, _TURN, turn)
    calls = np.zeros(min(count - 1, _added(_at(board, _WORKERS), 0)), np.uint8)
    _wake(_added(_at(board, _PIPE), 0), calls)
    _take(board)
    while _added(_at(board, _DONE), 0) < count:
        _yield()
    succeeded = _added(_at(board, _SUCCEEDED), 0)
    _put(board, _IS_TAKEN, 0)
    return succeeded == count


@numba.njit(**FUNCTION)
def _wake(pipe: int, calls: np.ndarray) -> None:
    _write(np.int32(pipe), calls.ctypes.data, calls.size)


@numba.njit(**FUNCTION)
def _at(board: int, field: int) -> int:
    return board + _BYTES * field


@numba.njit(**FUNCTION)
def _put(board: int, field: int, value: int) -> None:
    address = _at(board, field)
    while not _exchanged(address, _added(address, 0), value):
        pass


@numba.njit(**FUNCTION)
def _take(board: int) -> int:
    taken = 0
    while True:
        turn = _added(_at(board, _TURN), 0)
        if turn & _MASK >= (turn >> _BITS) & _MASK:
            return taken
        if _exchanged(_at(board, _TURN), turn, turn + 1):
            # What is on the board holds until this piece is done.
            function, job = _added(_at(board, _FUNCTION), 0), _added(_at(board, _JOB), 0)
            result = _called(function, job, turn & _MASK)
            _added(_at(board, _SUCCEEDED), result)
            _added(_at(board, _DONE), 1)
            taken += 1


@numba.njit(**FUNCTION, nogil=True, cache=True)
def _work(board: int, pipe: int) -> None:
    call = np.zeros(1, np.uint8)
    while _read(np.int32(pipe), call.ctypes.data, 1) != 0:
        _added(_at(board, _BY_WORKERS), _take(board))


def find_functions() -> None:
    """Tells LLVM the addresses of C library functions, before anything here is compiled."""
    process = ctypes.CDLL(None)
    for name in _SYMBOLS:
        binding.add_symbol(name, ctypes.cast(getattr(process, name), ctypes.c_void_p).value)


@functools.cache
def board_address() -> int:
    """Address of the board, with workers for all cores but one; 0 for none on up to two cores.

    Threads read it until the process ends.
    """
    cores = usable_cores()
    if cores < _LEAST_CORES:
        return 0
    find_functions()
    _work.compile((types.int64, types.int64))
    board = np.zeros(len(_FIELDS), np.int64)
    _BOARDS.append(board)
    reading, board[_PIPE] = os.pipe()
    # A process that was forked has no workers, and nobody to empty a full pipe.
    os.set_blocking(int(board[_PIPE]), False)
    board[_WORKERS] = cores - 1
    for _ in range(cores - 1):
        threading.Thread(target=_work, args=(board.ctypes.data, reading), daemon=True).start()
    return int(board.ctypes.data)
