"""Read the pickles of `torch.save` as descriptions of tensors, in bounded memory.

Python's own unpickler imports and calls any name in a pickle, and allocates lengths and memo sizes
that a few bytes ask for. So this is a stack machine of its own. It knows only the opcodes of state
dicts (like PyTorch's `torch/_weights_only_unpickler.py`), which allocate in proportion to their
bytes. Keys must be texts, since hashing nested shared tuples takes exponential time.
"""

from __future__ import annotations

import io
import pickletools
from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

LONGEST_PICKLE_BYTES = 4 << 20  # BERT-large takes 60 kB
_MOST_DIMENSIONS = 32  # of NumPy's arrays
_OPCODES = {opcode.code: opcode for opcode in pickletools.opcodes}
_STOP = b"."  # the last opcode of a pickle
_CUT = "the description of its tensors is cut short or damaged"
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
    """The pickle contains a name, the argument, that no state dict has."""


class Storage(NamedTuple):
    """Numbers in the archive.

    Attributes:
        dtype: their dtype.
        key: name of the archive's member below `data/`.
    """

    dtype: np.dtype
    key: str


class Tensor(NamedTuple):
    """A view of a storage.

    Attributes:
        storage: the numbers.
        offset: number of the first one.
        shape: sizes of the axes.
        strides: numbers between neighbors along each axis.
    """

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def read_pickle(content: bytes) -> Any:
    """Read a pickle, with a `Tensor` for each tensor.

    Args:
        content: at most LONGEST_PICKLE_BYTES.

    Raises:
        PickleError: it is cut short, too long, or not of a state dict.
        ForeignNameError: it names anything other than tensors and their parts.
    """
    if len(content) > LONGEST_PICKLE_BYTES:
        raise PickleError(
            f"the description of its tensors takes more than {LONGEST_PICKLE_BYTES >> 20} MiB"
        )
    stream = io.BytesIO(content)
    reader = _Reader()
    while (code := stream.read(1)) != _STOP:
        if not code:
            raise PickleError(_CUT)
        opcode = _OPCODES.get(code.decode("latin-1"))
        action = _ACTIONS.get(opcode.name) if opcode else None
        if opcode is None or action is None:
            raise PickleError(f"opcode {code!r}, which no state dict has")
        action(reader, _argument(opcode, stream))
    return reader.pop()


def _argument(opcode: pickletools.OpcodeInfo, stream: io.BytesIO) -> Any:
    """Read the argument of an opcode; None if it has none."""
    if opcode.name == "GLOBAL":  # the reader of pickletools would interpret escapes
        names = [stream.readline(), stream.readline()]
        if not names[1].endswith(b"\n"):
            raise PickleError(_CUT)
        return [name[:-1].decode("utf-8", "replace") for name in names]
    try:
        return opcode.arg.reader(stream) if opcode.arg else None
    except ValueError:
        raise PickleError(_CUT) from None


def _ordered_dict() -> dict[str, Any]:
    return {}


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
        raise PickleError("a parameter that is not a tensor")
    return tensor


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _are_counts(values: Any) -> bool:
    return type(values) is tuple and all(map(_is_count, values))


# The only names that a pickle may call, besides types of storages.
_CALLABLES: dict[str, Callable[..., Any]] = {
    "collections.OrderedDict": _ordered_dict,
    "torch._utils._rebuild_tensor_v2": _rebuild_tensor,
    "torch._utils._rebuild_parameter": _rebuild_parameter,
}


class _Reader:
    """A stack machine: one method per opcode that does more than push a constant."""

    def __init__(self) -> None:
        self._stack: list[Any] = []
        self._marked: list[list[Any]] = []  # the stacks below each mark
        self.memo: dict[int, Any] = {}

    def push(self, value: Any) -> None:
        self._stack.append(value)

    def pop(self) -> Any:
        if not self._stack:
            raise PickleError("an opcode lacks its operand")
        return self._stack.pop()

    def mark(self, _: None) -> None:
        self._marked.append(self._stack)
        self._stack = []

    def pop_to_mark(self) -> list[Any]:
        if not self._marked:
            raise PickleError("an opcode lacks its mark")
        values = self._stack
        self._stack = self._marked.pop()
        return values

    def pop_many(self, size: int) -> list[Any]:
        return [self.pop() for _ in range(size)][::-1]

    def put(self, place: int) -> None:
        value = self.pop()
        self.memo[place] = value
        self.push(value)

    def get(self, place: int) -> None:
        if place not in self.memo:
            raise PickleError("a reference to nothing")
        self.push(self.memo[place])

    def push_global(self, module: Any, name: Any) -> None:
        if module == "torch" and name in _STORAGE_TYPES:
            self.push(_STORAGE_TYPES[name])
        elif f"{module}.{name}" in _CALLABLES:
            self.push(_CALLABLES[f"{module}.{name}"])
        else:
            raise ForeignNameError(f"{module}.{name}")

    def storage(self, _: None) -> None:
        reference = self.pop()
        if type(reference) is not tuple or len(reference) < 3:
            raise PickleError("a reference to no storage")
        kind, dtype, key = reference[:3]
        if kind != "storage" or not isinstance(dtype, np.dtype) or not isinstance(key, str):
            raise PickleError("a reference to no storage")
        self.push(Storage(dtype, key))

    def reduce(self, _: None) -> None:
        arguments = self.pop()
        function = self.pop()
        if not callable(function) or type(arguments) is not tuple:
            raise PickleError("a call of something that is not a function")
        try:
            self.push(function(*arguments))
        except TypeError:
            raise PickleError("a call with other arguments than torch.save writes") from None

    def build(self, _: None) -> None:
        self.pop()  # attributes of a state dict: the versions of its modules
        self.push(self.pop())

    def set_items(self, items: list[Any]) -> None:
        target = self.pop()
        if type(target) is not dict or len(items) % 2:
            raise PickleError("items of something that is not a dict")
        for key, value in zip(items[::2], items[1::2], strict=True):
            if not isinstance(key, str):
                raise PickleError("a name that is not text")
            target[key] = value
        self.push(target)

    def append(self, values: list[Any]) -> None:
        target = self.pop()
        if type(target) is not list:
            raise PickleError("elements of something that is not a list")
        target.extend(values)
        self.push(target)


# Actions of opcodes, given the machine and the opcode's argument.
_ACTIONS: dict[str, Callable[[_Reader, Any], None]] = {
    **dict.fromkeys(("PROTO", "FRAME"), lambda reader, _: None),
    **dict.fromkeys(("NONE", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"), _Reader.push),
    **dict.fromkeys(("SHORT_BINUNICODE", "BINUNICODE"), _Reader.push),
    "NEWTRUE": lambda reader, _: reader.push(True),
    "NEWFALSE": lambda reader, _: reader.push(False),
    "EMPTY_TUPLE": lambda reader, _: reader.push(()),
    "TUPLE1": lambda reader, _: reader.push(tuple(reader.pop_many(1))),
    "TUPLE2": lambda reader, _: reader.push(tuple(reader.pop_many(2))),
    "TUPLE3": lambda reader, _: reader.push(tuple(reader.pop_many(3))),
    "TUPLE": lambda reader, _: reader.push(tuple(reader.pop_to_mark())),
    "EMPTY_LIST": lambda reader, _: reader.push([]),
    "EMPTY_DICT": lambda reader, _: reader.push({}),
    "MARK": _Reader.mark,
    "APPEND": lambda reader, _: reader.append([reader.pop()]),
    "APPENDS": lambda reader, _: reader.append(reader.pop_to_mark()),
    "SETITEM": lambda reader, _: reader.set_items(reader.pop_many(2)),
    "SETITEMS": lambda reader, _: reader.set_items(reader.pop_to_mark()),
    **dict.fromkeys(("BINPUT", "LONG_BINPUT"), _Reader.put),
    "MEMOIZE": lambda reader, _: reader.put(len(reader.memo)),
    **dict.fromkeys(("BINGET", "LONG_BINGET"), _Reader.get),
    "GLOBAL": lambda reader, names: reader.push_global(*names),
    "STACK_GLOBAL": lambda reader, _: reader.push_global(*reader.pop_many(2)),
    "BINPERSID": _Reader.storage,
    "REDUCE": _Reader.reduce,
    "BUILD": _Reader.build,
}
