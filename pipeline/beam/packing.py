"""Values as bytes for spill files: JSON, followed by the bytes of arrays.

Reading a pickle runs code that its writer chose, and others may be able to write to the folder of
an output. So reading makes only plain values, arrays, and classes that the reader names.

The bytes are: length of the JSON (8 bytes, big-endian), the JSON, and all arrays end to end in the
order in which the JSON names them. An object `{kind: content}` of the JSON stands for a type that
JSON lacks: an array (dtype and shape), bytes, texts of Arrow, a dict with any keys, a Counter, a
tuple, or a named class with its fields.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa

from bert_tf.base.errors import InputError

_LENGTH_BYTES = 8  # of the length of the JSON


def pack(value: Any) -> list[bytes]:
    """Pack plain values, arrays, and containers, dataclasses and named tuples of them.

    Returns:
        The bytes in parts, for `BlobWriter.add`; arrays are copied once.
    """
    arrays: list[np.ndarray] = []
    described = json.dumps(_described(value, arrays)).encode()
    parts = [array.tobytes() for array in arrays]
    return [len(described).to_bytes(_LENGTH_BYTES), described, *parts]


def unpack(data: bytes, *classes: type) -> Any:
    """Return the packed object.

    Args:
        data: all parts of `pack`, joined.
        classes: dataclasses and named tuples that may be made.

    Raises:
        InputError: the data is damaged, or has another class.
    """
    end = _LENGTH_BYTES + int.from_bytes(data[:_LENGTH_BYTES])
    try:
        return _Reader(data, end, classes).value(json.loads(data[_LENGTH_BYTES:end]))
    except Exception as error:  # damaged bytes fail in any way
        raise InputError(
            f"the intermediate data of the output is not of this version ({error!r}); start again "
            "with --overwrite"
        ) from None


def _described(value: Any, arrays: list[np.ndarray]) -> Any:
    """Return the JSON of a value, and append its arrays.

    A list stands for a list, and `{kind: content}` for a type that JSON lacks.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray):
        arrays.append(value)
        kind = value.dtype.str if value.dtype.names is None else value.dtype.descr
        return {"array": [kind, value.shape]}
    if isinstance(value, bytes):
        return {"bytes": _described(np.frombuffer(value, np.uint8), arrays)}
    if isinstance(value, pa.Array):
        _, offsets, content = value.buffers()
        end = value.offset + len(value) + 1
        bounds = np.frombuffer(offsets or bytes(4), np.int32)[value.offset : end]
        text = np.frombuffer(content or b"", np.uint8)[bounds[0] : bounds[-1]]
        # A slice of an array has the buffers of the whole array; only its own part is kept.
        buffers = [_described(bounds - bounds[0], arrays), _described(text, arrays)]
        return {"texts": [len(value), *buffers]}
    if isinstance(value, dict):
        kind = "counter" if isinstance(value, Counter) else "dict"
        items = [[_described(key, arrays), _described(item, arrays)] for key, item in value.items()]
        return {kind: items}
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        items = [_described(item, arrays) for item in value]
        return items if isinstance(value, list) else {"tuple": items}
    names = getattr(value, "_fields", None) or [field.name for field in dataclasses.fields(value)]
    content = {name: _described(getattr(value, name), arrays) for name in names}
    return {type(value).__name__: content}


class _Reader:
    """Makes values from their JSON, and takes arrays from the bytes in order.

    Args:
        data: all packed bytes.
        begin: the first byte of the arrays.
        classes: those that may be made.
    """

    def __init__(self, data: bytes, begin: int, classes: tuple[type, ...]):
        self._data = data
        self._begin = begin
        self._classes = {named.__name__: named for named in classes}

    def value(self, described: Any) -> Any:
        if isinstance(described, list):
            return list(map(self.value, described))
        if not isinstance(described, dict):
            return described
        ((kind, content),) = described.items()
        match kind:
            case "array":
                return self._array(*content)
            case "bytes":
                return self.value(content).tobytes()
            case "texts":
                size, *buffers = map(self.value, content)
                texts = pa.StringArray.from_buffers(size, *map(pa.py_buffer, buffers))
                texts.validate()
                return texts
            case "dict" | "counter":
                items = dict(map(self.value, content))
                return Counter(items) if kind == "counter" else items
            case "tuple":
                return tuple(map(self.value, content))
        fields = {name: self.value(field) for name, field in content.items()}
        return self._classes[kind](**fields)

    def _array(self, kind: str | list[Any], shape: list[int]) -> np.ndarray:
        if not isinstance(
            kind, str
        ):  # fields of records, which JSON has as lists: name, dtype, shape
            kind = [(*field[:2], *map(tuple, field[2:])) for field in kind]
        # `frombuffer` refuses dtypes of Python objects.
        flat = np.frombuffer(self._data, np.dtype(kind), math.prod(shape), self._begin)
        self._begin += flat.nbytes
        return flat.reshape(shape).copy()
