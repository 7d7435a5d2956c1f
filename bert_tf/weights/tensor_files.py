"""Tensors of a HuggingFace folder by their present names, read on access."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import h5py
import ml_dtypes  # noqa: F401  registers bfloat16, which safetensors needs to read such files
import numpy as np
import safetensors
import safetensors.numpy

from bert_tf.base.errors import InputError, UsageError
from bert_tf.base.files import check_lfs_pointer, replacing_file, toml_beside
from bert_tf.base.json_files import read_json_object
from bert_tf.config.bert_file import CONFIG, GOOGLE_CONFIG
from bert_tf.weights.pytorch_file import PyTorchFile
from bert_tf.weights.tensor_names import canonical_name

# Exceptions of h5py for a damaged file, and of Keras for unexpected content.
HDF5_ERRORS = (OSError, ValueError, TypeError, KeyError, RuntimeError)
# A path ends in the variable's: "bert/tf_bert_model/bert/embeddings/LayerNorm/gamma:0". A head's
# layer has its attribute before its name: "mlm___cls/predictions/bias:0".
_VARIABLE = re.compile(
    r".*(?:^|/|___)((?:embeddings|encoder|pooler|cls|classifier|qa_outputs)/.+):0$"
)
_EMBEDDINGS = re.compile(r"_embeddings/(embeddings|weight)$")
_ENDINGS = {"kernel": "weight", "gamma": "weight", "beta": "bias"}
SAFETENSORS = "model.safetensors"
SHARD_INDEX = "model.safetensors.index.json"
PYTORCH = "pytorch_model.bin"
PYTORCH_INDEX = "pytorch_model.bin.index.json"
TENSORFLOW = "tf_model.h5"
WORD_EMBEDDINGS = "bert.embeddings.word_embeddings.weight"
_MASKED_LM_HEAD = "cls.predictions."
_DECODER = f"{_MASKED_LM_HEAD}decoder.weight"
_TIED_BIASES = (f"{_MASKED_LM_HEAD}decoder.bias", f"{_MASKED_LM_HEAD}bias")
_NARROW_TYPES = ("F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "F6_E2M3", "F4")
_SMALL_INTEGERS = ("I8", "U8")  # of quantized weights; buffers may have them, too
# Files of `save_pretrained(variant=…)`: model.fp16.safetensors.
_VARIANT = re.compile(r"(model|pytorch_model)\.(\w+)\.(safetensors|bin)")
# Most folders and files that a message names.
_FOLDERS_NAMED = 3
_FILES_NAMED = 5
_ARCHIVES = (".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".7z")
_SHARD = re.compile(r"-\d+-of-\d+(\.(?:bin|safetensors))$")


class TensorFlowFile:
    """Weights of a `tf_model.h5` by PyTorch's names, without the prefix `bert.`.

    Attributes:
        shapes: shapes of the tensors by name, in PyTorch's layout.

    Raises:
        InputError: the file is damaged, or smaller than its arrays.
    """

    def __init__(self, path: Path):
        self._path = path
        self.shapes: dict[str, tuple[int, ...]] = {}
        self._places: dict[str, str] = {}
        try:
            for place, (shape, kind) in hdf5_shapes(path).items():
                name = huggingface_name(place)
                if shape is not None and kind == "f" and name is not None:
                    self._places[name] = place
                    self.shapes[name] = shape[::-1] if place.endswith("kernel:0") else shape
            count_hdf5_numbers(path, self.shapes.values())
        except HDF5_ERRORS as error:
            raise self._damaged(error) from None

    def read(self, name: str) -> np.ndarray:
        """Read a tensor; kernels are [output, input]."""
        place = self._places[name]
        try:
            with h5py.File(self._path) as file:
                value = np.asarray(file[place])
        except HDF5_ERRORS as error:
            raise self._damaged(error) from None
        return value.T if place.endswith("kernel:0") else value

    def _damaged(self, reason: object) -> InputError:
        return InputError(
            f"{self._path}: damaged or not an HDF5 file of HuggingFace's ({reason}); take "
            "model.safetensors or pytorch_model.bin of the same model"
        )


def hdf5_shapes(path: Path) -> dict[str, tuple[tuple[int, ...] | None, str]]:
    """Read shape and NumPy kind of each array, by its path.

    The shape of a null dataspace is None.

    Raises:
        One of HDF5_ERRORS: the file is damaged.
    """
    shapes: dict[str, tuple[tuple[int, ...] | None, str]] = {}

    def add(place: str, node: h5py.HLObject) -> None:
        if isinstance(node, h5py.Dataset):
            # Such an array could read any file of this machine.
            if node.external or node.is_virtual:
                raise ValueError(f"the numbers of {place} are in another file")
            shapes[place] = node.shape, node.dtype.kind

    with h5py.File(path) as file:
        file.visititems(add)
    return shapes


def count_hdf5_numbers(path: Path, shapes: Iterable[tuple[int, ...] | None]) -> int:
    """Return the size of arrays of a file together.

    Raises:
        ValueError: an array is null, or the file is smaller than its arrays.
    """
    numbers = 0
    for shape in shapes:
        if shape is None:
            raise ValueError("an array has a null dataspace")
        numbers += math.prod(shape)
    if numbers > path.stat().st_size:  # no number takes less than a byte
        raise ValueError(f"its arrays of {numbers:,} numbers are larger than the file")
    return numbers


def huggingface_name(place: str) -> str | None:
    """Return PyTorch's name of a variable by its path; None for anything else.

    "bert/…/bert/pooler/dense/kernel:0" is pooler.dense.weight,
    "mlm___cls/…/mlm___cls/predictions/bias:0" is cls.predictions.bias.
    """
    match = _VARIABLE.fullmatch(place)
    if match is None:
        return None
    path = _EMBEDDINGS.sub("_embeddings/weight", match[1].replace("_._", "/"))
    *scope, last = path.split("/")
    return ".".join([*scope, _ENDINGS.get(last, last)])


class FolderTensors(Mapping[str, np.ndarray]):
    """The floating-point tensors of a folder, float32, by `canonical_name`.

    Args:
        folder: contains `model.safetensors` or `pytorch_model.bin`, or shards of them with an
            index, or `tf_model.h5`; the first of these is read.

    Raises:
        UsageError: there is no such file, or a PyTorch file contains more than tensors.
        InputError: a file is damaged.
    """

    def __init__(self, folder: str | Path):
        self._readers: dict[str, Callable[[], np.ndarray]] = {}
        self._shapes: dict[str, tuple[int, ...]] = {}
        kind, paths = _weight_files(Path(folder))
        for path in paths:
            check_lfs_pointer(path)
            if kind in (SAFETENSORS, SHARD_INDEX):
                self._add_safetensors(path)
            elif kind == TENSORFLOW:
                self._add(TensorFlowFile(path))
            else:
                self._add(PyTorchFile(path))
        copy, own = _TIED_BIASES
        if own not in self._readers and copy in self._readers:  # as transformers, which ties them
            self._readers[own] = self._readers[copy]
            self._shapes[own] = self._shapes[copy]

    def __getitem__(self, name: str) -> np.ndarray:
        return self._readers[name]().astype(np.float32)

    def __iter__(self) -> Iterator[str]:
        return iter(self._readers)

    def __len__(self) -> int:
        return len(self._readers)

    def count_numbers(self) -> int:
        """Return the size of all tensors together, without reading them."""
        return sum(map(math.prod, self._shapes.values()))

    def leave_out(self, prefix: str) -> None:
        """Exclude the tensors whose names begin with `prefix`."""
        for name in [name for name in self._readers if name.startswith(prefix)]:
            del self._readers[name], self._shapes[name]

    def _add_safetensors(self, path: Path) -> None:
        try:
            file = safetensors.safe_open(path, framework="np")
            for name in file.keys():  # noqa: SIM118  the file is not a mapping
                # Old folders contain the buffer `position_ids` of integers, which is not a weight.
                part = file.get_slice(name)
                is_narrow = part.get_dtype() in _NARROW_TYPES
                is_quantized = part.get_dtype() in _SMALL_INTEGERS and name.endswith(".weight")
                if is_narrow or is_quantized:
                    raise UsageError(
                        f"{path}: {name} has the type {part.get_dtype()}, numbers of 8 or fewer "
                        "bits, which need scales that no file of BERT's has; save the model in "
                        "float32, float16 or bfloat16"
                    )
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
    """Leave out a masked-LM head with its own embeddings; return notes about that."""
    if (
        _DECODER not in tensors
        or WORD_EMBEDDINGS not in tensors
        or np.array_equal(tensors[_DECODER], tensors[WORD_EMBEDDINGS])
    ):
        return ()
    tensors.leave_out(_MASKED_LM_HEAD)
    return (
        f"{folder}: the masked-LM head is left out, since it has embeddings of its own "
        "(tie_word_embeddings is false)",
    )


def _weight_files(folder: Path) -> tuple[str, list[Path]]:
    """Find the weights of a folder.

    Returns:
        Name of the first file of weights, or index of such files, that is there; and the files.

    Raises:
        UsageError: there are none, or an index names files that are missing.
        InputError: an index is damaged.
    """
    for name in (SAFETENSORS, SHARD_INDEX, PYTORCH, PYTORCH_INDEX, TENSORFLOW):
        path = folder / name
        if path.is_file():
            return name, _shards(path) if name in (SHARD_INDEX, PYTORCH_INDEX) else [path]
    raise UsageError(f"{folder}: {describe_folder(folder)}")


def _shards(index: Path) -> list[Path]:
    """Return the files that an index names, which must exist."""
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
    """Write a safetensors file atomically, with the metadata that HuggingFace's loader expects."""
    # The package writes memory as it is: a transposed view would come back as its original.
    contiguous = {name: np.ascontiguousarray(value) for name, value in tensors.items()}
    with replacing_file(path) as aside:
        aside.touch()
        readable_as_usual = aside.stat().st_mode  # the package makes files readable for the owner
        safetensors.numpy.save_file(contiguous, aside, metadata={"format": "pt"})
        aside.chmod(readable_as_usual)


def describe_folder(folder: Path) -> str:
    """Describe a folder without a readable model, and the next step, for a message."""
    models = _models_inside(folder)
    if models:
        more = ", …" if len(models) > _FOLDERS_NAMED else ""
        one_of = "" if len(models) == 1 else "one of "
        listed = ", ".join(str(folder / name) for name in models[:_FOLDERS_NAMED])
        return f"not a model directory, but holds some: give {one_of}{listed}{more}"
    files = sorted(path.name for path in folder.iterdir())
    for known in toml_beside(__file__, "other_files.toml")["files"]:
        ending = known["name"]
        for name in files:
            if name == ending or (ending.startswith(".") and name.endswith(ending)):
                return f"holds {name}, {known['kind']}; {known['step']}"
    for name in files:
        if match := _VARIANT.fullmatch(name):
            return f"holds {name}, the weights of a variant; rename it to {match[1]}.{match[3]}"
        if _SHARD.search(name):
            index = _SHARD.sub(r"\1.index.json", name)
            return f"holds {name}, a part of the weights, but no {index}, which lists them; add it"
        if name.endswith(_ARCHIVES):
            return f"holds the archive {name}; unpack it and give the folder inside"
    listed = ", ".join(files[:_FILES_NAMED]) + (", …" if len(files) > _FILES_NAMED else "")
    return (
        f"no BERT model; found {listed or 'nothing'}, expected {CONFIG} with "
        "model.safetensors, pytorch_model.bin or tf_model.h5 (HuggingFace), or model.weights.h5 "
        f"(KerasHub), or {GOOGLE_CONFIG} with bert_model.ckpt (google-research/bert)"
    )


def _models_inside(folder: Path) -> list[str]:
    """Return folders below this one that contain a model, relative to it."""
    places = ("*", "snapshots/*", "*/snapshots/*", "best", "*/best")
    files = {
        path.parent.relative_to(folder)
        for place in places
        for name in (CONFIG, GOOGLE_CONFIG)
        for path in folder.glob(f"{place}/{name}")
    }
    # A run is given by itself, not by the model that it keeps.
    return sorted({str(path.parent if path.name == "best" else path) for path in files} - {"."})
