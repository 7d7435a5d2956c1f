"""Threads of compiled code that compute pieces of a kernel's call beside the calling thread.

Protocol: threads share a board of numbers. A call takes the board, describes its job on it, and
writes to a pipe to wake workers. Caller and workers take pieces by incrementing `TURN` with
compare-and-exchange until none is left. The caller then waits for pieces that others still compute,
and frees the board. Only one call has the board at a time; another call meanwhile computes its
pieces itself, so no call ever waits for another.

Invariant: `TURN` contains the number of the call, so a worker that wakes up late cannot take a
piece of a call that is over: its exchange fails.
"""

from __future__ import annotations

import ctypes
import enum
import functools
import os
import threading
from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba.core import types
from numba.extending import intrinsic

from bert_tf.base.compiled import numba
from bert_tf.base.processor import usable_cores
from bert_tf.cpu.kernels import FUNCTION

# TensorFlow has two threads, one for each part of a batch, which keep two cores busy.
_LEAST_CORES = 3


class BoardField(enum.IntEnum):
    """Places of the numbers that threads share, int64 each."""

    IS_TAKEN = 0  # 1 while a call has the board
    TURN = 1  # number of the call, then in 20 bits each its pieces and the next piece
    DONE = 2  # pieces of the call that are computed
    SUCCEEDED = 3  # pieces of the call that returned 1
    FUNCTION = 4  # address of the C function for a piece
    JOB = 5  # address of its first argument
    PIPE = 6  # file descriptor that wakes workers
    WORKERS = 7  # number of workers
    BY_WORKERS = 8  # pieces that workers have computed, in all calls


_BOARDS: list[np.ndarray] = []  # keeps the boards of the process from being freed
_BITS = 20  # of a number in `TURN`; the number of the call has the rest
_MASK = 2**_BITS - 1
_BYTES = 8  # of a field

_SYMBOLS = ("read", "write", "sched_yield")
_read: Any = types.ExternalFunction("read", types.int64(types.int32, types.uintp, types.int64))
_write: Any = types.ExternalFunction("write", types.int64(types.int32, types.uintp, types.int64))
_yield: Any = types.ExternalFunction("sched_yield", types.int32())


@intrinsic
def _exchanged(_: Any, address: Any, expected: Any, value: Any) -> Any:
    """Replace the number at an address if it is `expected`; return 1 if so, else 0. Atomic."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        place = builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())
        swapped = builder.cmpxchg(place, arguments[1], arguments[2], "seq_cst", "seq_cst")
        return builder.zext(builder.extract_value(swapped, 1), ir.IntType(64))

    return types.int64(types.int64, types.int64, types.int64), generate


@intrinsic
def _added(_: Any, address: Any, value: Any) -> Any:
    """Add to the number at an address; return the number before. Atomic."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        place = builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())
        return builder.atomic_rmw("add", place, arguments[1], "seq_cst")

    return types.int64(types.int64, types.int64), generate


@intrinsic
def _called(_: Any, function: Any, job: Any, number: Any) -> Any:
    """Call the C function of a piece at an address."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        whole = ir.IntType(64)
        signature = ir.FunctionType(whole, [whole] * 2).as_pointer()
        return builder.call(builder.inttoptr(arguments[0], signature), arguments[1:])

    return types.int64(types.int64, types.int64, types.int64), generate


@numba.njit(**FUNCTION)
def in_turns(board: int, function: int, job: np.ndarray, count: int) -> bool:
    """Compute all pieces of a call; return whether all of them succeeded.

    Args:
        board: result of `board_address`; 0 computes all pieces in this thread.
        function: address of the C function for a piece, int64 (address of the job, number), which
            returns 1 for success.
        job: int64, first argument of the function.
        count: number of pieces, below 2^20.
    """
    if board == 0 or count == 1 or not _exchanged(_at(board, BoardField.IS_TAKEN), 0, 1):
        succeeded = 0
        for number in range(count):
            succeeded += _called(function, job.ctypes.data, number)
        return succeeded == count
    before = _added(_at(board, BoardField.TURN), 0)
    _put(board, BoardField.FUNCTION, function)
    _put(board, BoardField.JOB, job.ctypes.data)
    _put(board, BoardField.SUCCEEDED, 0)
    _put(board, BoardField.DONE, 0)
    turn = (((before >> (2 * _BITS)) + 1) << (2 * _BITS)) | (count << _BITS)
    _put(board, BoardField.TURN, turn)
    calls = np.zeros(min(count - 1, _added(_at(board, BoardField.WORKERS), 0)), np.uint8)
    _wake(_added(_at(board, BoardField.PIPE), 0), calls)
    _take(board)
    while _added(_at(board, BoardField.DONE), 0) < count:
        _yield()
    succeeded = _added(_at(board, BoardField.SUCCEEDED), 0)
    _put(board, BoardField.IS_TAKEN, 0)
    return succeeded == count


@numba.njit(**FUNCTION)
def _wake(pipe: int, calls: np.ndarray) -> None:
    """Wake as many workers as `calls` has bytes."""
    _write(np.int32(pipe), calls.ctypes.data, calls.size)


@numba.njit(**FUNCTION)
def _at(board: int, field: int) -> int:
    """Return the address of a field."""
    return board + _BYTES * field


@numba.njit(**FUNCTION)
def _put(board: int, field: int, value: int) -> None:
    """Set a field atomically."""
    address = _at(board, field)
    while not _exchanged(address, _added(address, 0), value):
        pass


@numba.njit(**FUNCTION)
def _take(board: int) -> int:
    """Compute pieces as long as there are some; return how many."""
    taken = 0
    while True:
        turn = _added(_at(board, BoardField.TURN), 0)
        if turn & _MASK >= (turn >> _BITS) & _MASK:
            return taken
        if _exchanged(_at(board, BoardField.TURN), turn, turn + 1):
            # The board does not change until this piece is done.
            function = _added(_at(board, BoardField.FUNCTION), 0)
            job = _added(_at(board, BoardField.JOB), 0)
            result = _called(function, job, turn & _MASK)
            _added(_at(board, BoardField.SUCCEEDED), result)
            _added(_at(board, BoardField.DONE), 1)
            taken += 1


@numba.njit(**FUNCTION, nogil=True, cache=True)
def _work(board: int, pipe: int) -> None:
    """Wait for calls and compute their pieces, as a worker."""
    call = np.zeros(1, np.uint8)
    while _read(np.int32(pipe), call.ctypes.data, 1) != 0:
        _added(_at(board, BoardField.BY_WORKERS), _take(board))


def find_functions() -> None:
    """Tell LLVM the addresses of C library functions, before anything here is compiled."""
    process = ctypes.CDLL(None)
    for name in _SYMBOLS:
        binding.add_symbol(name, ctypes.cast(getattr(process, name), ctypes.c_void_p).value)


@functools.cache
def board_address() -> int:
    """Return the address of the board, with workers on all cores but one; 0 on up to two cores.

    Threads read the board until the process ends.
    """
    cores = usable_cores()
    if cores < _LEAST_CORES:
        return 0
    find_functions()
    _work.compile((types.int64, types.int64))
    board = np.zeros(len(BoardField), np.int64)
    _BOARDS.append(board)
    reading, writing = os.pipe()
    board[BoardField.PIPE] = writing
    # A forked process has no workers, and nothing that empties a full pipe.
    os.set_blocking(int(board[BoardField.PIPE]), False)
    board[BoardField.WORKERS] = cores - 1
    for _ in range(cores - 1):
        threading.Thread(target=_work, args=(board.ctypes.data, reading), daemon=True).start()
    return int(board.ctypes.data)
