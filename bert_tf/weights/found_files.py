"""What a folder without readable weights holds, and the next step with it."""

from __future__ import annotations

import re
from pathlib import Path

from bert_tf.config.bert_file import CONFIG, GOOGLE_CONFIG

_SAVE = "model.save_pretrained(NEW_FOLDER)"
_FOLDERS_NAMED, _FILES_NAMED = 3, 5
_ARCHIVES = (".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".7z")
_SHARD = re.compile(r"-\d+-of-\d+(\.(?:bin|safetensors))$")
# File, or end of a file's name; what it is; the next step.
_KNOWN = (
    (
        "adapter_config.json",
        "a LoRA adapter without its model",
        "load both with peft, then save model.merge_and_unload() with save_pretrained",
    ),
    (
        "flax_model.msgpack",
        "weights of Flax",
        "load them with transformers 4 (from_flax=True) and save them with " + _SAVE,
    ),
    (
        ".ckpt",
        "a checkpoint of PyTorch Lightning",
        "load it into its LightningModule and save the model inside with " + _SAVE,
    ),
    (".pt", "a checkpoint of PyTorch", "load it into its model and save that with " + _SAVE),
    (".pth", "a checkpoint of PyTorch", "load it into its model and save that with " + _SAVE),
    (".onnx", "an ONNX graph", "take the folder that it was exported from"),
    (".gguf", "weights in GGUF", "take the folder that they were converted from"),
)


def describe_folder(folder: Path) -> str:
    """What a folder holds in place of a model, and what to do, for a message."""
    models = _models_inside(folder)
    if models:
        more = ", …" if len(models) > _FOLDERS_NAMED else ""
        one_of = "" if len(models) == 1 else "one of "
        listed = ", ".join(str(folder / name) for name in models[:_FOLDERS_NAMED])
        return f"not a model directory, but holds some: give {one_of}{listed}{more}"
    files = sorted(path.name for path in folder.iterdir())
    for known, kind, step in _KNOWN:
        for name in files:
            if name == known or (known.startswith(".") and name.endswith(known)):
                return f"holds {name}, {kind}; {step}"
    for name in files:
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
    """Folders with a model's config, as below an unpacked archive and in a cache of the Hub."""
    places = ("*", "snapshots/*", "*/snapshots/*", "best", "*/best")
    found = {
        path.parent.relative_to(folder)
        for place in places
        for name in (CONFIG, GOOGLE_CONFIG)
        for path in folder.glob(f"{place}/{name}")
    }
    # A run is given by itself, not by the model that it keeps.
    return sorted({str(path.parent if path.name == "best" else path) for path in found} - {"."})
