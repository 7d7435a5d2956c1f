"""Tensors of a HuggingFace folder by their present names, read when asked for."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import ml_dtypes  # noqa: F401  registers bfloat16, which safetensors needs to read such files
import numpy as np
import safetensors
import safetensors.numpy

from bert_tf.base.errors import InputError, UsageError
from bert_tf.base.files import check_lfs_pointer, replacing_file
from bert_tf.base.json_files import read_json_object
from bert_tf.weights.containers.pytorch_file import PyTorchFile
from bert_tf.weights.containers.tensorflow_file import TensorFlowFile
from bert_tf.weights.found_files import describe_folder
from bert_tf.weights.tensor_names import canonical_name

SAFETENSORS = "model.safetensors"
SHARD_INDEX = "model.safetensors.index.json"
PYTORCH, PYTORCH_INDEX = "pytorch_model.bin", "pytorch_model.bin.index.json"
TENSORFLOW = "tf_model.h5"
WORD_EMBEDDINGS = "bert.embeddings.word_embeddings.weight"
_MASKED_LM_HEAD = "cls.predictions."
_DECODER = f"{_MASKED_LM_HEAD}decoder.weight"


class FolderTensors(Mapping[str, np.ndarray]):
    """The floating-point tensors of a folder, float32, by `canonical_name`.

    Args:
        folder: holds `model.safetensors` or `pytorch_model.bin`, or shards of them with an index,
            or `tf_model.h5`.

    Raises:
        UsageError: the folder has none of these files, or a PyTorch file that holds more than
            tensors.
        InputError: a file is damaged.
    """

    def __init__(self, folder: str | Path):
        self._readers: dict[str, Callable[[], np.ndarray]] = {}
        self._shapes: dict[str, tuple[int, ...]] = {}
        folder = Path(folder)
        if (folder / SAFETENSORS).is_file():
            self._add_safetensors(folder / SAFETENSORS)
        elif (folder / SHARD_INDEX).is_file():
            for path in _shards(folder / SHARD_INDEX):
                self._add_safetensors(path)
        elif (folder / PYTORCH).is_file():
            self._add(PyTorchFile(folder / PYTORCH))
        elif (folder / PYTORCH_INDEX).is_file():
            for path in _shards(folder / PYTORCH_INDEX):
                self._add(PyTorchFile(path))
        elif (folder / TENSORFLOW).is_file():
            self._add(TensorFlowFile(folder / TENSORFLOW))
        else:
            raise UsageError(f"{folder}: {describe_folder(folder)}")

    def __getitem__(self, name: str) -> np.ndarray:
        return self._readers[name]().astype(np.float32)

    def __iter__(self) -> Iterator[str]:
        return iter(self._readers)

    def __len__(self) -> int:
        return len(self._readers)

    def count_numbers(self) -> int:
        """Numbers in all tensors, which are not read for that."""
        return sum(map(math.prod, self._shapes.values()))

    def leave_out(self, prefix: str) -> None:
        """Excludes the tensors whose names have this prefix."""
        for name in [name for name in self._readers if name.startswith(prefix)]:
            del self._readers[name], self._shapes[name]

    def _add_safetensors(self, path: Path) -> None:
        check_lfs_pointer(path)
        try:
            file = safetensors.safe_open(path, framework="np")
            for name in file.keys():  # noqa: SIM118  the file is no mapping
                # Old folders hold the buffer `position_ids`, whole numbers that are no weights.
                part = file.get_slice(name)
                if part.get_dtype() in ("F64", "F32", "F16", "BF16"):
                    self._readers[canonical_name(name)] = functools.partial(file.get_tensor, name)
                    self._shapes[canonical_name(name)] = tuple(part.get_shape())
        except (safetensors.SafetensorError, OSError) as error:
            raise InputError(f"{path}: damaged or not a safetensors file ({error})") from None

    def _add(self, file: PyTorchFile | TensorFlowFile) -> None:
        for name, shape in file.shapes.items():
            self._readers[canonical_name(name)] = functools.partial(file.read, name)
            self._shapes[canonical_name(name)] = shape


def leave_out_own_decoder(folder: Path, tensors: FolderTensors) -> tuple[str, ...]:
    """Leaves out a masked-LM head that scores with other embeddings than the model's.

    Returns:
        That it is left out, as a sentence, if it is.
    """
    if _DECODER not in tensors or WORD_EMBEDDINGS not in tensors:
        return ()
    if np.array_equal(tensors[_DECODER], tensors[WORD_EMBEDDINGS]):
        return ()
    tensors.leave_out(_MASKED_LM_HEAD)
    return (
        f"{folder}: the masked-LM head is left out, since it has embeddings of its own "
        "(tie_word_embeddings is false)",
    )


def _shards(index: Path) -> list[Path]:
    files = read_json_object(index).get("weight_map")
    if not isinstance(files, dict) or not all(isinstance(name, str) for name in files.values()):
        raise InputError(f"{index}: damaged index of weight files (it has no weight_map)")
    names = sorted(set(files.values()))
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
