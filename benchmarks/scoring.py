"""Rows per second of scoring texts: ours, KerasHub and PyTorch, sorted by length, in one run.

    python benchmarks/scoring.py --texts lines.txt [--weights FOLDER] [--torch-python PATH]

Text in, label out; at most 128 tokens per row. The sides take turns on the same rows, so that other
load on the machine falls on all of them. `--weights` is a HuggingFace BERT folder (default: the
installed MiniLM, 6 layers x 384); the classifier on top is random. PyTorch runs in the interpreter
that `--torch-python` names and is left out without one.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import keras
import keras_hub
import numpy as np
import tensorflow as tf

from bert_tf.base.console import Console
from bert_tf.base.processor import describe_processor
from bert_tf.data.rows.batching import budgeted_batches
from bert_tf.data.rows.text_rows import encode_texts
from bert_tf.engines.saved_model import SavedModelEngine
from bert_tf.export.formats.registry import FORMATS
from bert_tf.export.loading import load_trained_model
from bert_tf.serving.signatures import DEFAULT_BATCH_TOKENS
from bert_tf.tasks.classification.task import ClassificationTask
from bert_tf.weights.model_directory import (
    load_weights,
    read_model_directory,
    write_model_directory,
)
from pipeline.demo.files import find_weights

MAX_LENGTH = 128
LABELS = ("world", "sports", "business", "science")
Turn = tuple[float, float, list[int]]
"""Seconds, seconds of processors, the number of the label of each row."""
Side = Callable[[], Turn]


def read_texts(path: Path, rows: int) -> list[str]:
    """Lines of the length of news items (150 to 450 characters), in a fixed random order."""
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    lines = [line.strip() for line in content.decode().splitlines()]
    fitting = [line for line in lines if 150 <= len(line) <= 450]
    order = np.random.default_rng(0).permutation(len(fitting))[:rows]
    return [fitting[index] for index in order]


def make_model(weights: Path, folder: Path) -> SavedModelEngine:
    """Exports a classifier with a random head on the encoder."""
    directory = read_model_directory(weights)
    task = ClassificationTask(
        labels=LABELS,
        text_column="text",
        text_pair_column=None,
        label_column="label",
        max_seq_length=MAX_LENGTH,
    )
    keras.utils.set_random_seed(1)
    model = task.build_model(directory.config, policy="float32")
    model.build_weights()
    load_weights(model, directory)
    write_model_directory(
        folder / "run",
        model,
        vocab=directory.vocab,
        lowercase=directory.lowercase,
        task=task.settings(),
    )
    trained = load_trained_model(read_model_directory(folder / "run"))
    FORMATS["savedmodel"].load().write(trained, folder / "model", Console())
    return SavedModelEngine(folder / "model")


def timed(score: Callable[[], list[int]]) -> Turn:
    wall, processor_time = time.perf_counter(), time.process_time()
    labels = score()
    return time.perf_counter() - wall, time.process_time() - processor_time, labels


def our_side(model: SavedModelEngine, texts: list[str], batch_tokens: int) -> Side:
    model.predict({"text": texts[:64]}, batch_tokens=batch_tokens)
    number = {label: index for index, label in enumerate(LABELS)}

    def score() -> list[int]:
        predicted = model.predict({"text": texts}, batch_tokens=batch_tokens)
        return [number[label] for label in predicted["predicted_label"]]

    return lambda: timed(score)


def keras_hub_side(folder: Path, texts: list[str], batch_tokens: int) -> Side:
    """Their backbone in a tf.function, with our tokenizer and batches."""
    trained = load_trained_model(read_model_directory(folder))
    backbone = keras_hub.models.BertBackbone.from_preset(str(folder), load_weights=True)
    kernel, bias = (trained.model.classifier.kernel, trained.model.classifier.bias)
    ids = tf.TensorSpec([None, None], tf.int32)

    @tf.function(input_signature=[ids, ids, ids])
    def best(token_ids, padding_mask, segment_ids):
        pooled = backbone(
            {"token_ids": token_ids, "padding_mask": padding_mask, "segment_ids": segment_ids}
        )["pooled_output"]
        return tf.argmax(tf.matmul(pooled, kernel.value) + bias.value, axis=-1)

    def score() -> list[int]:
        rows = encode_texts(trained.tokenizer, texts, None, max_seq_length=MAX_LENGTH)
        labels = np.zeros(len(rows), np.int64)
        for chosen in budgeted_batches(rows.lengths, budget=batch_tokens, multiple=8):
            batch = rows.padded(
                chosen, length=int(rows.lengths[chosen].max()), pad_id=trained.tokenizer.pad_id
            )
            labels[chosen] = best(
                tf.constant(batch["input_word_ids"]),
                tf.constant(batch["input_mask"]),
                tf.constant(batch["input_type_ids"]),
            ).numpy()
        return labels.tolist()

    score()
    return lambda: timed(score)


def pytorch_side(python: str, folder: Path, texts_file: Path) -> Side:
    worker = subprocess.Popen(
        [python, str(Path(__file__).with_name("scoring_pytorch.py")), str(folder), str(texts_file)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert worker.stdin is not None and worker.stdout is not None
    requests, answers = worker.stdin, worker.stdout
    if answers.readline().strip() != "ready":
        raise SystemExit("the PyTorch side did not start")

    def ask() -> Turn:
        print("score", file=requests, flush=True)
        answer = json.loads(answers.readline())
        return answer["seconds"], answer["processor_seconds"], answer["labels"]

    return ask


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--texts", type=Path, required=True, help="text file, one text per line")
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--weights", help="HuggingFace BERT folder")
    parser.add_argument("--torch-python", help="interpreter with torch and transformers")
    parser.add_argument(
        "--batch-tokens", type=int, nargs="+", default=[DEFAULT_BATCH_TOKENS], help="ours"
    )
    given = parser.parse_args()
    texts = read_texts(given.texts, given.rows)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "texts.json").write_text(json.dumps(texts))
        model = make_model(find_weights(given.weights), folder)
        sides: dict[str, Side] = {
            f"ours, {tokens} tokens per batch": our_side(model, texts, tokens)
            for tokens in given.batch_tokens
        }
        sides["KerasHub"] = keras_hub_side(folder / "model", texts, DEFAULT_BATCH_TOKENS)
        if given.torch_python:
            sides["PyTorch"] = pytorch_side(
                given.torch_python, folder / "model", folder / "texts.json"
            )
        results: dict[str, list[Turn]] = {name: [] for name in sides}
        for _ in range(given.rounds):
            for name, side in sides.items():
                results[name].append(side())
    report(results, len(texts))


def report(results: dict[str, list[Turn]], rows: int) -> None:
    ours = next(iter(results))
    print(describe_processor())
    print(f"{rows} rows, best of {len(results[ours])} rounds; ratio: ours ({ours}) to it")
    best = {name: min(turn[0] for turn in turns) for name, turns in results.items()}
    work = {name: min(turn[1] for turn in turns) for name, turns in results.items()}
    for name, turns in results.items():
        same = np.mean(np.array(turns[0][2]) == np.array(results[ours][0][2]))
        print(
            f"{name:<28} {rows / best[name]:7.1f} rows/s   ratio {best[name] / best[ours]:5.2f}   "
            f"processor {1000 * work[name] / rows:6.1f} ms/row   ratio "
            f"{work[name] / work[ours]:5.2f}   same labels {same:.4f}"
        )


if __name__ == "__main__":
    main()
