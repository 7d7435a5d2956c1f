"""A side of benchmarks/scoring.py from an environment with transformers: another library's way.

    python benchmarks/scoring_peer.py NAME MODEL TEXTS MAX_LENGTH

NAME is one of `SIDES`, MODEL a HuggingFace folder with `model.onnx`, TEXTS a JSON list. The
protocol is that of side.py. All but `pipeline`, which pads texts in their order to batches of 32,
sort rows by length into batches of 2,048 tokens, padding included, and tokenize with transformers.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from side import take_turns
from transformers import AutoTokenizer

BATCH_TOKENS = 2048
Logits = Callable[[dict[str, np.ndarray]], np.ndarray]
Score = Callable[[list[str]], np.ndarray]


def openvino_logits(folder: Path, precision: str) -> Logits:
    import openvino

    compiled = openvino.Core().compile_model(
        folder / "model.onnx",
        "CPU",
        {"INFERENCE_PRECISION_HINT": precision, "PERFORMANCE_HINT": "LATENCY"},
    )
    request = compiled.create_infer_request()
    return lambda batch: request.infer(batch)[compiled.outputs[0]]


def onnxruntime_logits(folder: Path) -> Logits:
    import onnxruntime

    session = onnxruntime.InferenceSession(folder / "model.onnx")
    return lambda batch: session.run(["logits"], batch)[0]


def pytorch_logits(folder: Path, precision: str) -> Logits:
    import torch
    from transformers import AutoModelForSequenceClassification

    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    model = model.to(getattr(torch, precision))

    def logits(batch: dict[str, np.ndarray]) -> np.ndarray:
        with torch.inference_mode():
            tensors = {name: torch.from_numpy(values) for name, values in batch.items()}
            return model(**tensors).logits.float().numpy()

    return logits


def ctranslate2_logits(folder: Path, compute_type: str) -> Logits:
    """Return the encoder by CTranslate2, the classifier on its pooler output by NumPy."""
    import ctranslate2
    from ctranslate2.converters import TransformersConverter
    from safetensors.numpy import load_file

    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "source"
        shutil.copytree(folder, source)
        # The converter asks for a key that transformers 5 neither writes nor reads.
        config = json.loads((folder / "config.json").read_text())
        config["position_embedding_type"] = "absolute"
        (source / "config.json").write_text(json.dumps(config))
        converted = TransformersConverter(str(source)).convert(f"{scratch}/converted")
        encoder = ctranslate2.Encoder(converted, compute_type=compute_type)
    tensors = load_file(folder / "model.safetensors")
    kernel, bias = tensors["classifier.weight"].T, tensors["classifier.bias"]

    def logits(batch: dict[str, np.ndarray]) -> np.ndarray:
        ids = ctranslate2.StorageView.from_array(batch["input_ids"].astype(np.int32))
        lengths = batch["attention_mask"].sum(axis=1, dtype=np.int32)
        output = encoder.forward_batch(ids, ctranslate2.StorageView.from_array(lengths))
        return np.array(output.pooler_output) @ kernel + bias

    return logits


def pipeline_side(folder: Path, max_length: int) -> Score:
    from transformers import pipeline

    classify = pipeline("text-classification", str(folder), top_k=None)
    places = classify.model.config.label2id

    def score(texts: list[str]) -> np.ndarray:
        found = np.zeros((len(texts), len(places)))
        results = classify(texts, batch_size=32, truncation=True, max_length=max_length)
        for row, labels in enumerate(results):
            for each in labels:
                found[row, places[each["label"]]] = each["score"]
        return found

    return score


SIDES: dict[str, Callable[[Path], Logits] | None] = {
    "OpenVINO float32": lambda folder: openvino_logits(folder, "f32"),
    "OpenVINO bfloat16": lambda folder: openvino_logits(folder, "bf16"),
    "onnxruntime": onnxruntime_logits,
    "PyTorch float32": lambda folder: pytorch_logits(folder, "float32"),
    "PyTorch bfloat16": lambda folder: pytorch_logits(folder, "bfloat16"),
    "CTranslate2 float32": lambda folder: ctranslate2_logits(folder, "float32"),
    "CTranslate2 int8": lambda folder: ctranslate2_logits(folder, "int8"),
    "pipeline": None,
}


def sorted_side(folder: Path, logits: Logits, max_length: int) -> Score:
    tokenizer = AutoTokenizer.from_pretrained(folder)

    def score(texts: list[str]) -> np.ndarray:
        rows = tokenizer(texts, truncation=True, max_length=max_length)["input_ids"]
        order = np.argsort([-len(row) for row in rows], kind="stable")
        parts = []
        begin = 0
        while begin < len(order):
            length = -(-len(rows[order[begin]]) // 8) * 8
            chosen = order[begin : begin + max(1, BATCH_TOKENS // length)]
            begin += len(chosen)
            batch: Any = tokenizer.pad(
                {"input_ids": [rows[row] for row in chosen]},
                padding="max_length",
                max_length=length,
                return_tensors="np",
            )
            ids = np.asarray(batch["input_ids"], np.int64)
            mask = np.asarray(batch["attention_mask"], np.int64)
            parts.append(
                logits(
                    {
                        "input_ids": ids,
                        "attention_mask": mask,
                        "token_type_ids": np.zeros_like(ids),
                    }
                )
            )
        shifted = np.concatenate(parts)
        exponents = np.exp(shifted - shifted.max(axis=1, keepdims=True))
        found = np.empty_like(exponents)
        found[order] = exponents / exponents.sum(axis=1, keepdims=True)
        return found

    return score


def main() -> None:
    name, model, texts_file, length = sys.argv[1:]
    folder, max_length = Path(model), int(length)
    texts = json.loads(Path(texts_file).read_text(encoding="utf-8"))
    make = SIDES[name]
    if make is None:
        score = pipeline_side(folder, max_length)
    else:
        score = sorted_side(folder, make(folder), max_length)
    take_turns(score, texts)


if __name__ == "__main__":
    main()
