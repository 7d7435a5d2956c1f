"""Read PyTorch weight files (zip archives) without PyTorch, and without running code in pickles.

Members must be stored, not compressed, so nothing is larger in memory than on disk.
"""

from __future__ import annotations

import itertools
import math
import struct
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from bert_tf.base.errors import InputError, UsageError
from bert_tf.base.wording import shortened
from bert_tf.weights.pytorch_pickle import (
    LONGEST_PICKLE_BYTES,
    ForeignNameError,
    PickleError,
    Tensor,
    read_pickle,
)

_CURE = "convert it with PyTorch: model.save_pretrained(folder, safe_serialization=True)"
# Exceptions of zipfile for damage: a name that is not text, a cut header, an unknown version.
_DAMAGE = (KeyError, EOFError, OSError, ValueError, RuntimeError, struct.error, zipfile.BadZipFile)
# Tensors may share numbers, like the masked-LM head and the embeddings, so all together may be
# larger than the file; but not by more than this factor, which bounds the memory.
_MOST_SHARING = 4
_NOT_FLOATING = "iub"  # kinds of NumPy dtypes: integers, unsigned integers, booleans
_KEYS_NAMED = 5
_ENCRYPTED = 1  # bit of the flags of a member


def _holds_tensors(value: object) -> bool:
    return isinstance(value, dict) and any(isinstance(item, Tensor) for item in value.values())


class PyTorchFile:
    """Floating-point tensors of a state dict saved by PyTorch.

    Raises:
        UsageError: the file was saved before PyTorch 1.6, or contains more than tensors.
        InputError: the file is damaged.
    """

    def __init__(self, path: str | Path):
        self._path = Path(path)
        if not zipfile.is_zipfile(self._path):
            raise UsageError(
                f"{self._path}: not a zip archive, so saved by PyTorch before 1.6 or damaged; "
                f"{_CURE}"
            )
        with self._open() as archive:
            described = [name for name in archive.namelist() if name.endswith("/data.pkl")]
            if len(described) != 1:
                raise self._damaged("no data.pkl inside")
            self._root = described[0].removesuffix("data.pkl")
            if self._root + "byteorder" in archive.namelist():
                order = self._member(archive, "byteorder", at_most=16)
                if order != b"little":
                    raise UsageError(f"{self._path}: byte order is {order!r}; {_CURE}")
            content = self._member(archive, "data.pkl", at_most=LONGEST_PICKLE_BYTES)
        self._tensors = {
            name: value
            for name, value in self._state(content).items()
            if isinstance(value, Tensor) and value.storage.dtype.kind not in _NOT_FLOATING
        }
        size = sum(
            math.prod(tensor.shape) * tensor.storage.dtype.itemsize
            for tensor in self._tensors.values()
        )
        if size > _MOST_SHARING * self._path.stat().st_size:
            raise self._damaged(
                f"its tensors would take {size:,} bytes, more than {_MOST_SHARING} times the file"
            )

    @contextmanager
    def _open(self) -> Iterator[zipfile.ZipFile]:
        try:
            with zipfile.ZipFile(self._path) as archive:
                yield archive
        except _DAMAGE as error:
            raise self._damaged(error) from None

    def _damaged(self, reason: object) -> InputError:
        return InputError(f"{self._path}: damaged PyTorch file ({reason})")

    def _member(self, archive: zipfile.ZipFile, name: str, *, at_most: int) -> bytes:
        """Read a member of the archive.

        Raises:
            InputError: it is larger than `at_most`, compressed or encrypted.
        """
        info = archive.getinfo(self._root + name)
        if info.file_size > at_most:
            raise self._damaged(
                f"{name} has {info.file_size:,} bytes, expected at most {at_most:,}"
            )
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & _ENCRYPTED:
            raise InputError(
                f"{self._path}: {name} is compressed or encrypted inside, which PyTorch never "
                f"does; {_CURE}"
            )
        return archive.read(info)

    def _state(self, content: bytes) -> dict[str, object]:
        """Read the state dict, also from inside a checkpoint with other entries."""
        try:
            state = read_pickle(content)
        except PickleError as error:
            raise self._damaged(error) from None
        except ForeignNameError as error:
            raise UsageError(
                f"{self._path}: holds {shortened(str(error))}, which is not a weight "
                f"and could run arbitrary code; {_CURE}"
            ) from None
        inner = state.get("state_dict") if isinstance(state, dict) else None
        state = inner if isinstance(inner, dict) else state
        if not isinstance(state, dict):
            raise UsageError(f"{self._path}: holds no state dict; {_CURE}")
        if state and not any(isinstance(value, Tensor) for value in state.values()):
            keys = ", ".join(repr(key) for key in itertools.islice(state, _KEYS_NAMED))
            nested = next((key for key, value in state.items() if _holds_tensors(value)), None)
            if nested is None:
                raise UsageError(
                    f"{self._path}: holds {keys or 'nothing'}, but no tensors; {_CURE}"
                )
            raise UsageError(
                f"{self._path}: a checkpoint with {keys}; its tensors are in {nested!r}; save "
                f"only these: torch.save(torch.load(path)[{nested!r}], path)"
            )
        return state

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the tensors by name."""
        return {name: tensor.shape for name, tensor in self._tensors.items()}

    def read(self, name: str) -> np.ndarray:
        """Read a tensor in its stored dtype.

        Raises:
            InputError: the file has fewer numbers than its shape needs.
        """
        tensor = self._tensors[name]
        try:
            with self._open() as archive:
                content = self._member(
                    archive, f"data/{tensor.storage.key}", at_most=self._path.stat().st_size
                )
        except InputError as error:
            raise InputError(f"{error} at {name}") from None
        item = tensor.storage.dtype.itemsize
        numbers = np.frombuffer(content, tensor.storage.dtype, len(content) // item)
        axes = list(zip(tensor.shape, tensor.strides, strict=True))
        last = tensor.offset + sum((length - 1) * stride for length, stride in axes)
        if last >= len(numbers) or not 0 < math.prod(tensor.shape) <= len(numbers):
            raise InputError(
                f"{self._path}: damaged at {name} (its shape {list(tensor.shape)} does not fit "
                f"the {len(numbers):,} numbers that are stored)"
            )
        # An axis of length 1 may have any stride, also one that leads out of the storage.
        strides = [stride * item if length > 1 else 0 for length, stride in axes]
        stored = numbers[tensor.offset :]
        return np.lib.stride_tricks.as_strided(stored, tensor.shape, strides).copy()
