"""A format of exported models in one file: all that a new format must have."""

from __future__ import annotations

import json

import numpy as np

from bert_tf.export.loading import model_contents
from bert_tf.export.registry import FormatEntry


class ArraysFormat:
    """A `ModelFormat` of NumPy arrays."""

    def write(self, trained, output, console):
        """See `ModelFormat.write`."""
        contents = model_contents(trained)
        shape = {"hidden_size": contents["config"].hidden_size}
        (output / "arrays.json").write_text(json.dumps(shape))
        np.savez(output / "arrays.npz", **contents["tensors"])
        return ["arrays have no tokenizer"]

    def loading(self, card, *, lowercase):
        """See `ModelFormat.loading`."""
        return [f"With NumPy ({card.transformers_class}): `numpy.load`."]


ARRAYS = FormatEntry(
    name="arrays",
    implementation="arrays_format:ArraysFormat",
    title="folder of NumPy arrays",
    config_file="arrays.json",
    model_file="arrays.npz",
)
