"""Reads the pickles of `torch.save` as descriptions of tensors, in bounded memory.

Python's own machine imports and calls any name in a pickle, and allocates lengths and memo sizes
that a few of its bytes ask for. The opcodes here are those of state dicts (as in PyTorch's
`torch/_weights_only_unpickler.py`) and allocate in proportion to their bytes; keys are texts, since
hashing shared tuples inside each other takes exponential time.
"""

from __future__ import annotations

import io
import pickle
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

LONGEST_PICKLE_BYTES = 4 << 20  # BERT large takes 60 kB
_MOST_DIMENSIONS = 32
_STORAGE_TYPES = {
    "DoubleStorage": np.dtype(np.float64),
    "FloatStorage": np.dtype(np.float32),
    "HalfStorage": np.dtype(np.float16),
    "BFloat16Storage": np.dtype(ml_dtypes.bfloat16),
    "LongStorage": np.dtype(np.int64),
    "IntStorage": np.dtype(np.int32),
    "BoolStorage": np.dtype(np.bool_),
    "ByteStorage": np.dtype(np.uint8),
}


class PickleError(ValueError):
    """The bytes are not the pickle of a state dict."""


class ForeignNameError(Exception):
    """The pickle holds a name, the argument, that no state dict has."""


class Storage(NamedTuple):
    dtype: np.dtype
    key: str


class Tensor(NamedTuple):
    """A view of a storage; offset and strides count numbers."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def read_pickle(content: bytes) -> Any:
    """Reads a pickle of at most LONGEST_PICKLE_BYTES, with a `Tensor` for each tensor.

    Raises PickleError if it is cut short, too long, or not of a state dict, ForeignNameError if it
    names anything but tensors and their parts.
    """
    if len(content) > LONGEST_PICKLE_BYTES:
        raise PickleError(
            f"the description of its tensors takes more than {LONGEST_PICKLE_BYTES >> 20} MiB"
        )
    return _Reader(content).read()


def _rebuild_tensor(storage: Any, offset: Any, shape: Any, strides: Any, *_: Any) -> Tensor:
    if not (
        isinstance(storage, Storage)
        and _is_count(offset)
        and _are_counts(shape)
        and _are_counts(strides)
        and len(shape) == len(strides) <= _MOST_DIMENSIONS
    ):
        raise PickleError("a tensor without storage, offset, shape and strides")
    return Tensor(storage, offset, shape, strides)


def _rebuild_parameter(tensor: Any, *_: Any) -> Tensor:
    if not isinstance(tensor, Tensor):
        raise PickleError("a parameter that is no tensor")
    return tensor


def _ordered_dict() -> dict[str, Any]:
    return {}


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _are_counts(values: Any) -> bool:
    return type(values) is tuple and all(map(_is_count, values))


_CALLABLES: dict[str, Callable[..., Any]] = {
    "collections.OrderedDict": _ordered_dict,
    "torch._utils._rebuild_tensor_v2": _rebuild_tensor,
    "torch._utils._rebuild_parameter": _rebuild_parameter,
}


class _Reader:
    """A stack machine: one method per opcode that does more than push a constant."""

    def __init__(self, content: bytes):
        self._stream = io.BytesIO(content)
        self._stack: list[Any] = []
        self._marked: list[list[Any]] = []  # the stacks below each mark
        self._memo: dict[int, Any] = {}

    def read(self) -> Any:
        while (opcode := self._take(1)) != pickle.STOP:
            action = _ACTIONS.get(opcode)
            if action is None:
                raise PickleError(f"opcode {opcode!r}, which no state dict has")
            action(self)
        return self._pop()

    def _take(self, size: int) -> bytes:
        taken = self._stream.read(size)
        if len(taken) < size:
            raise PickleError("the description of its tensors is cut short")
        return taken

    def _number(self, form: str) -> int:
        return int(struct.unpack(form, self._take(struct.calcsize(form)))[0])

    def _push(self, value: Any) -> None:
        self._stack.append(value)

    def _pop(self) -> Any:
        if not self._stack:
            raise PickleError("an opcode lacks its operand")
        return self._stack.pop()

    def _mark(self) -> None:
        self._marked.append(self._stack)
        self._stack = []

    def _pop_to_mark(self) -> list[Any]:
        if not self._marked:
            raise PickleError("an opcode lacks its mark")
        values, self._stack = self._stack, self._marked.pop()
        return values

    def _text(self, length_form: str) -> str:
        try:
            return self._take(self._number(length_form)).decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            raise PickleError("a name is not UTF-8") from None

    def _line(self) -> str:
        line = self._stream.readline()
        if not line.endswith(b"\n"):
            raise PickleError("the description of its tensors is cut short")
        return line[:-1].decode("utf-8", "replace")

    def _long(self) -> None:
        self._push(int.from_bytes(self._take(self._number("<B")), "little", signed=True))

    def _tuple(self, size: int) -> None:
        self._push(tuple(reversed([self._pop() for _ in range(size)])))

    def _put(self, place: int) -> None:
        value = self._pop()
        self._memo[place] = value
        self._push(value)

    def _get(self, place: int) -> None:
        if place not in self._memo:
            raise PickleError("a reference to nothing")
        self._push(self._memo[place])

    def _global(self, module: Any, name: Any) -> None:
        if module == "torch" and name in _STORAGE_TYPES:
            self._push(_STORAGE_TYPES[name])
        elif f"{module}.{name}" in _CALLABLES:
            self._push(_CALLABLES[f"{module}.{name}"])
        else:
            raise ForeignNameError(f"{module}.{name}")

    def _stack_global(self) -> None:
        name = self._pop()
        self._global(self._pop(), name)

    def _storage(self) -> None:
        reference = self._pop()
        if type(reference) is not tuple or len(reference) < 3:
            raise PickleError("a reference to no storage")
        kind, dtype, key, *_ = reference
        if kind != "storage" or not isinstance(dtype, np.dtype) or not isinstance(key, str):
            raise PickleError("a reference to no storage")
        self._push(Storage(dtype, key))

    def _reduce(self) -> None:
        arguments, function = self._pop(), self._pop()
        if not callable(function) or type(arguments) is not tuple:
            raise PickleError("a call of something that is no function")
        try:
            self._push(function(*arguments))
        except TypeError:
            raise PickleError("a call with other arguments than torch.save writes") from None

    def _build(self) -> None:
        self._pop()  # attributes of a state dict: the versions of its modules
        self._push(self._pop())

    def _set_items(self, items: list[Any]) -> None:
        target = self._pop()
        if type(target) is not dict or len(items) % 2:
            raise PickleError("items of something that is no dict")
        for key, value in zip(items[::2], items[1::2], strict=True):
            if not isinstance(key, str):
                raise PickleError("a name that is not text")
            target[key] = value
        self._push(target)

    def _set_item(self) -> None:
        value, key = self._pop(), self._pop()
        self._set_items([key, value])

    def _append(self, values: list[Any]) -> None:
        target = self._pop()
        if type(target) is not list:
            raise PickleError("elements of something that is no list")
        target.extend(values)
        self._push(target)


_ACTIONS: dict[bytes, Callable[[_Reader], Any]] = {
    pickle.PROTO: lambda reader: reader._take(1),
    pickle.FRAME: lambda reader: reader._take(8),
    pickle.NONE: lambda reader: reader._push(None),
    pickle.NEWTRUE: lambda reader: reader._push(True),
    pickle.NEWFALSE: lambda reader: reader._push(False),
    pickle.BININT: lambda reader: reader._push(reader._number("<i")),
    pickle.BININT1: lambda reader: reader._push(reader._number("<B")),
    pickle.BININT2: lambda reader: reader._push(reader._number("<H")),
    pickle.LONG1: _Reader._long,
    pickle.BINFLOAT: lambda reader: reader._push(struct.unpack(">d", reader._take(8))[0]),
    pickle.SHORT_BINUNICODE: lambda reader: reader._push(reader._text("<B")),
    pickle.BINUNICODE: lambda reader: reader._push(reader._text("<I")),
    pickle.EMPTY_TUPLE: lambda reader: reader._push(()),
    pickle.TUPLE1: lambda reader: reader._tuple(1),
    pickle.TUPLE2: lambda reader: reader._tuple(2),
    pickle.TUPLE3: lambda reader: reader._tuple(3),
    pickle.TUPLE: lambda reader: reader._push(tuple(reader._pop_to_mark())),
    pickle.EMPTY_LIST: lambda reader: reader._push([]),
    pickle.EMPTY_DICT: lambda reader: reader._push({}),
    pickle.MARK: _Reader._mark,
    pickle.APPEND: lambda reader: reader._append([reader._pop()]),
    pickle.APPENDS: lambda reader: reader._append(reader._pop_to_mark()),
    pickle.SETITEM: _Reader._set_item,
    pickle.SETITEMS: lambda reader: reader._set_items(reader._pop_to_mark()),
    pickle.BINPUT: lambda reader: reader._put(reader._number("<B")),
    pickle.LONG_BINPUT: lambda reader: reader._put(reader._number("<I")),
    pickle.MEMOIZE: lambda reader: reader._put(len(reader._memo)),
    pickle.BINGET: lambda reader: reader._get(reader._number("<B")),
    pickle.LONG_BINGET: lambda reader: reader._get(reader._number("<I")),
    pickle.GLOBAL: lambda reader: reader._global(reader._line(), reader._line()),
    pickle.STACK_GLOBAL: _Reader._stack_global,
    pickle.BINPERSID: _Reader._storage,
    pickle.REDUCE: _Reader._reduce,
    pickle.BUILD: _Reader._build,
}
