"""Reads PyTorch weight files without PyTorch and without running the code that pickles may hold.

The file is a zip archive since PyTorch 1.6: `data.pkl` describes the tensors, `data/<key>` holds
the numbers. The unpickler here knows a handful of names, all of them inert; any other is refused.
"""

from __future__ import annotations

import collections
import dataclasses
import pickle
import zipfile
from pathlib import Path
from typing import Any, BinaryIO

import ml_dtypes
import numpy as np

from bert_tf.config.errors import InputError, UsageError

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
_CURE = "convert it with PyTorch: model.save_pretrained(folder, safe_serialization=True)"


@dataclasses.dataclass(frozen=True)
class _Storage:
    dtype: np.dtype
    key: str


@dataclasses.dataclass(frozen=True)
class _Tensor:
    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def _rebuild_tensor(
    storage: _Storage, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], *_: Any
) -> _Tensor:
    return _Tensor(storage, offset, tuple(shape), tuple(strides))


def _rebuild_parameter(tensor: _Tensor, *_: Any) -> _Tensor:
    return tensor


class _TensorUnpickler(pickle.Unpickler):
    """Builds descriptions of tensors; nothing that a pickle names is imported or called."""

    def __init__(self, stream: BinaryIO, path: Path):
        super().__init__(stream)
        self._path = path

    def find_class(self, module: str, name: str) -> Any:
        if module == "torch" and name in _STORAGE_TYPES:
            return _STORAGE_TYPES[name]
        known = {
            ("collections", "OrderedDict"): collections.OrderedDict,
            ("torch._utils", "_rebuild_tensor_v2"): _rebuild_tensor,
            ("torch._utils", "_rebuild_parameter"): _rebuild_parameter,
        }
        if (module, name) not in known:
            raise UsageError(
                f"{self._path}: holds {module}.{name}, which is no weight and is not loaded, "
                f"since it could run foreign code; {_CURE}"
            )
        return known[module, name]

    def persistent_load(self, pid: Any) -> _Storage:
        kind, dtype, key, *_ = pid
        if kind != "storage" or not isinstance(dtype, np.dtype):
            raise InputError(f"{self._path}: damaged PyTorch file (reference to {kind!r})")
        return _Storage(dtype, str(key))


class PyTorchFile:
    """A state dict saved by PyTorch 1.6 or later.

    Raises:
        UsageError: the file is older, or holds anything but tensors.
        InputError: the file is damaged.
    """

    def __init__(self, path: str | Path):
        self._path = Path(path)
        if not zipfile.is_zipfile(self._path):
            raise UsageError(
                f"{self._path}: not a zip archive, so saved by PyTorch before 1.6 or damaged; "
                f"{_CURE}"
            )
        with zipfile.ZipFile(self._path) as archive:
            described = [name for name in archive.namelist() if name.endswith("/data.pkl")]
            if len(described) != 1:
                raise InputError(f"{self._path}: damaged PyTorch file (no data.pkl inside)")
            self._root = described[0].removesuffix("data.pkl")
            if self._root + "byteorder" in archive.namelist():
                order = archive.read(self._root + "byteorder")
                if order != b"little":
                    raise UsageError(f"{self._path}: byte order is {order.decode()}; {_CURE}")
            with archive.open(described[0]) as stream:
                state = self._unpickle(stream)
        self._tensors = {
            name: value
            for name, value in state.items()
            if isinstance(value, _Tensor) and value.storage.dtype.kind not in "iub"
        }

    def _unpickle(self, stream: Any) -> dict[str, Any]:
        try:
            state = _TensorUnpickler(stream, self._path).load()
        except (pickle.UnpicklingError, EOFError, ValueError, TypeError, AttributeError) as error:
            raise InputError(f"{self._path}: damaged PyTorch file ({error})") from None
        if not isinstance(state, dict):
            raise UsageError(f"{self._path}: holds no state dict; {_CURE}")
        return state

    @property
    def names(self) -> list[str]:
        """Names of the floating-point tensors."""
        return list(self._tensors)

    def read(self, name: str) -> np.ndarray:
        """The numbers of a tensor, in the type they are stored in."""
        tensor = self._tensors[name]
        try:
            with zipfile.ZipFile(self._path) as archive:
                content = archive.read(f"{self._root}data/{tensor.storage.key}")
        except (KeyError, zipfile.BadZipFile) as error:
            raise InputError(f"{self._path}: damaged at {name} ({error})") from None
        numbers = np.frombuffer(content, tensor.storage.dtype)
        ends = [
            (size - 1) * stride for size, stride in zip(tensor.shape, tensor.strides, strict=True)
        ]
        if (
            tensor.offset < 0
            or min(ends, default=0) < 0
            or tensor.offset + sum(ends) >= len(numbers)
        ):
            raise InputError(f"{self._path}: damaged at {name} (fewer numbers than its shape)")
        item = tensor.storage.dtype.itemsize
        return np.lib.stride_tricks.as_strided(
            numbers[tensor.offset :], tensor.shape, [stride * item for stride in tensor.strides]
        ).copy()
