"""Values as bytes for spill files: JSON, followed by arrays as NumPy writes them.

A pickle would run whatever its writer chose, and the folder of an output may be writable for
others. Only classes that the reader names are made.
"""

from __future__ import annotations

import dataclasses
import io
import json
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa

from bert_tf.base.errors import InputError

_LENGTH_BYTES = 8  # of the length of the JSON


def pack(value: Any) -> list[bytes]:
    """Packs plain values, containers, arrays, and dataclasses and named tuples of such."""
    arrays: list[np.ndarray] = []
    described = json.dumps(_described(value, arrays)).encode()
    stream = io.BytesIO()
    for array in arrays:
        np.lib.format.write_array(stream, array, allow_pickle=False)
    return [len(described).to_bytes(_LENGTH_BYTES), described, stream.getvalue()]


def unpack(data: bytes, *classes: type) -> Any:
    """Returns what was packed; raises InputError for damage, and for classes not given here."""
    end = _LENGTH_BYTES + int.from_bytes(data[:_LENGTH_BYTES])
    stream = io.BytesIO(data)
    try:
        stream.seek(end)
        return _Reader(stream, classes).value(json.loads(data[_LENGTH_BYTES:end]))
    except Exception as error:  # damaged bytes fail in any way
        raise InputError(
            f"the intermediate data of the output is not of this version ({error!r}); start again "
            "with --overwrite"
        ) from None


def _described(value: Any, arrays: list[np.ndarray]) -> Any:
    """JSON of a value: a list for a list, and `{kind: content}` for all that JSON lacks."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray):
        arrays.append(value)
        return {"array": None}
    if isinstance(value, bytes):
        arrays.append(np.frombuffer(value, np.uint8))
        return {"bytes": None}
    if isinstance(value, pa.Array):
        size, (_, offsets, content) = len(value), value.buffers()
        bounds = np.frombuffer(offsets or bytes(4), np.int32)[value.offset :][: size + 1]
        text = np.frombuffer(content or b"", np.uint8)[bounds[0] : bounds[-1]]
        arrays += [bounds - bounds[0], text]
        return {"texts": size}
    if isinstance(value, dict):
        kind = "counter" if isinstance(value, Counter) else "dict"
        return {kind: [[_described(each, arrays) for each in item] for item in value.items()]}
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        items = [_described(item, arrays) for item in value]
        return items if isinstance(value, list) else {"tuple": items}
    names = getattr(value, "_fields", None) or [each.name for each in dataclasses.fields(value)]
    return {
        type(value).__name__: {name: _described(getattr(value, name), arrays) for name in names}
    }


class _Reader:
    def __init__(self, stream: io.BytesIO, classes: tuple[type, ...]):
        self._stream = stream
        self._classes = {each.__name__: each for each in classes}

    def value(self, described: Any) -> Any:
        if isinstance(described, list):
            return list(map(self.value, described))
        if not isinstance(described, dict):
            return described
        ((kind, content),) = described.items()
        match kind:
            case "array":
                return self._array()
            case "bytes":
                return self._array().tobytes()
            case "texts":
                buffers = [pa.py_buffer(self._array()), pa.py_buffer(self._array())]
                texts = pa.StringArray.from_buffers(content, *buffers)
                texts.validate()
                return texts
            case "dict" | "counter":
                items = dict(map(self.value, content))
                return Counter(items) if kind == "counter" else items
            case "tuple":
                return tuple(map(self.value, content))
        return self._classes[kind](**{name: self.value(each) for name, each in content.items()})

    def _array(self) -> np.ndarray:
        return np.lib.format.read_array(self._stream, allow_pickle=False)
