"""Reads `tf_model.h5`, HuggingFace's weights for TensorFlow, which transformers 5 no longer has."""

from __future__ import annotations

import re
from pathlib import Path

import h5py
import numpy as np

from bert_tf.base.errors import InputError
from bert_tf.base.files import check_lfs_pointer

# What HDF5's own errors become.
_DAMAGED = (OSError, ValueError, TypeError, KeyError, RuntimeError)
# A path ends in the variable's: "bert/tf_bert_model/bert/embeddings/LayerNorm/gamma:0". A head's
# layer has its attribute before its name: "mlm___cls/predictions/bias:0".
_VARIABLE = re.compile(
    r".*(?:^|/|___)((?:embeddings|encoder|pooler|cls|classifier|qa_outputs)/.+):0$"
)
_EMBEDDINGS = re.compile(r"_embeddings/(embeddings|weight)$")
_ENDINGS = {"kernel": "weight", "gamma": "weight", "beta": "bias"}


class TensorFlowFile:
    """The weights of a `tf_model.h5` by PyTorch's names, without the prefix `bert.`.

    Raises:
        InputError: the file is damaged, or its arrays are larger than the file.
    """

    def __init__(self, path: Path):
        check_lfs_pointer(path)
        self._path = path
        self.shapes: dict[str, tuple[int, ...]] = {}
        self._places: dict[str, str] = {}
        try:
            with h5py.File(path) as file:
                file.visititems(self._add)
        except _DAMAGED as error:
            raise self._damaged(error) from None
        numbers = sum(int(np.prod(shape)) for shape in self.shapes.values())
        if numbers > path.stat().st_size:  # no number takes less than a byte
            raise self._damaged(f"its arrays of {numbers:,} numbers are larger than the file")

    def _add(self, place: str, node: h5py.HLObject) -> None:
        if isinstance(node, h5py.Dataset) and node.dtype.kind == "f":
            name = huggingface_name(place)
            if name is not None:
                self._places[name] = place
                self.shapes[name] = node.shape[::-1] if place.endswith("kernel:0") else node.shape

    def read(self, name: str) -> np.ndarray:
        """The numbers of a tensor, kernels as [output, input]."""
        place = self._places[name]
        try:
            with h5py.File(self._path) as file:
                value = np.asarray(file[place])
        except _DAMAGED as error:
            raise self._damaged(error) from None
        return value.T if place.endswith("kernel:0") else value

    def _damaged(self, reason: object) -> InputError:
        return InputError(
            f"{self._path}: damaged or not an HDF5 file of HuggingFace's ({reason}); take "
            "model.safetensors or pytorch_model.bin of the same model"
        )


def huggingface_name(place: str) -> str | None:
    """PyTorch's name of a variable, by its path; None of anything else.

    | path                                       | name                 |
    |--------------------------------------------|----------------------|
    | "bert/…/bert/pooler/dense/kernel:0"        | pooler.dense.weight  |
    | "mlm___cls/…/mlm___cls/predictions/bias:0" | cls.predictions.bias |
    """
    found = _VARIABLE.fullmatch(place)
    if found is None:
        return None
    path = _EMBEDDINGS.sub("_embeddings/weight", found[1].replace("_._", "/"))
    *scope, last = path.split("/")
    return ".".join([*scope, _ENDINGS.get(last, last)])
