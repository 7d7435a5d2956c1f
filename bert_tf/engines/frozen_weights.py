"""What TensorFlow saves in processes whose weights never change."""

from __future__ import annotations

import os

_VARIABLE = "BERT_PIPELINE_FROZEN_WEIGHTS"
_OF_TENSORFLOW = "TF_ONEDNN_ASSUME_FROZEN_WEIGHTS"


def declare_frozen_weights() -> None:
    """Says that this process, and those it starts from now on, change no weights until they end."""
    os.environ[_VARIABLE] = "1"


def lay_out_weights_once() -> None:
    """Has TensorFlow's matrix products lay out their weights once where these are frozen.

    oneDNN computes from blocks of a weight matrix, and TensorFlow makes the blocks for every batch
    unless it knows that weights stay: a twentieth of the time in bfloat16, whose results are equal
    either way. TensorFlow reads the setting before its first product, for the life of the process;
    evaluation between the steps of a training would use the first weights. A setting in the
    environment stays.
    """
    if os.environ.get(_VARIABLE):
        os.environ.setdefault(_OF_TENSORFLOW, "true")
