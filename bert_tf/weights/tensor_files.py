"""Tensors of a HuggingFace folder by their present names, read when asked for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import ml_dtypes  # noqa: F401  registers bfloat16, which safetensors needs to read such files
import numpy as np
import safetensors
import safetensors.numpy

from bert_tf.config.errors import InputError, UsageError
from bert_tf.data.atomic import replacing_file
from bert_tf.weights.pytorch_file import PyTorchFile
from bert_tf.weights.tensor_names import canonical_name

SAFETENSORS = "model.safetensors"
SHARD_INDEX = "model.safetensors.index.json"
PYTORCH = "pytorch_model.bin"


class FolderTensors(Mapping[str, np.ndarray]):
    """The floating-point tensors of a folder, float32, by `canonical_name`.

    Args:
        folder: holds `model.safetensors`, shards with an index, or `pytorch_model.bin`.

    Raises:
        UsageError: the folder has none of these files, or a PyTorch file that holds more than
            tensors.
        InputError: a file is damaged.
    """

    def __init__(self, folder: str | Path):
        self._readers: dict[str, Callable[[], np.ndarray]] = {}
        folder = Path(folder)
        if (folder / SAFETENSORS).is_file():
            self._add_safetensors(folder / SAFETENSORS)
        elif (folder / SHARD_INDEX).is_file():
            for path in _shards(folder / SHARD_INDEX):
                self._add_safetensors(path)
        elif (folder / PYTORCH).is_file():
            self._add_pytorch(folder / PYTORCH)
        else:
            raise UsageError(
                f"{folder}: no weights; looked for {SAFETENSORS}, {SHARD_INDEX} and {PYTORCH}"
            )

    def __getitem__(self, name: str) -> np.ndarray:
        return self._readers[name]().astype(np.float32)

    def __iter__(self) -> Iterator[str]:
        return iter(self._readers)

    def __len__(self) -> int:
        return len(self._readers)

    def _add_safetensors(self, path: Path) -> None:
        try:
            file = safetensors.safe_open(path, framework="np")
            for name in file.keys():  # noqa: SIM118  the file is no mapping
                # Old folders hold the buffer `position_ids`, whole numbers that are no weights.
                if file.get_slice(name).get_dtype() in ("F64", "F32", "F16", "BF16"):
                    self._readers[canonical_name(name)] = _safetensors_reader(file, name)
        except (safetensors.SafetensorError, OSError) as error:
            raise InputError(f"{path}: damaged or not a safetensors file ({error})") from None

    def _add_pytorch(self, path: Path) -> None:
        file = PyTorchFile(path)
        for name in file.names:
            self._readers[canonical_name(name)] = _pytorch_reader(file, name)


def _safetensors_reader(file: safetensors.safe_open, name: str) -> Callable[[], np.ndarray]:
    return lambda: file.get_tensor(name)


def _pytorch_reader(file: PyTorchFile, name: str) -> Callable[[], np.ndarray]:
    return lambda: file.read(name)


def _shards(index: Path) -> list[Path]:
    try:
        names = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
    except (ValueError, KeyError, AttributeError) as error:
        raise InputError(f"{index}: damaged index of weight files ({error!r})") from None
    paths = [index.with_name(Path(name).name) for name in names]
    missing = [path.name for path in paths if not path.is_file()]
    if missing:
        raise UsageError(f"{index}: names files that are missing: {', '.join(missing)}")
    return paths


def write_tensors(path: str | Path, tensors: Mapping[str, np.ndarray]) -> None:
    """Writes a safetensors file, whole or not at all, as HuggingFace's loader expects it."""
    # The package writes memory as it lies: a transposed view would come back as its original.
    contiguous = {name: np.ascontiguousarray(value) for name, value in tensors.items()}
    with replacing_file(path) as aside:
        aside.touch()
        readable_as_usual = aside.stat().st_mode  # the package makes files for their owner alone
        safetensors.numpy.save_file(contiguous, aside, metadata={"format": "pt"})
        aside.chmod(readable_as_usual)
