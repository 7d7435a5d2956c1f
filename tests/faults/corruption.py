"""One flipped bit in the files of finished artifacts: found and named, or without consequence."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

from faults.campaigns import Case, campaign
from faults.children import EXPECTED, in_child

from bert_tf.base.checksums import write_sums

Load = Callable[[Path], Any]


def load_model(folder: Path) -> Any:
    """All that `finetune --init`, `export` and `score` read of a model directory."""
    from bert_tf.weights.model_directory import read_model_directory

    found = read_model_directory(folder)
    tensors = {name: found.tensors[name].tobytes() for name in sorted(found.tensors)}
    return found.config, found.vocab, found.lowercase, found.task, tensors, found.document


def load_export(folder: Path) -> Any:
    """Return the checksum of the files of both engines, as `score --engine` takes it."""
    from bert_tf.engines.registry import ENGINES
    from pipeline.outputs.inputs import fingerprint

    engines = [ENGINES[name] for name in ("onnxruntime", "openvino")]
    return fingerprint(folder, lambda name: any(each.reads(name) for each in engines))["sha256"]


def load_checkpoint(folder: Path) -> Any:
    from bert_tf.training.run_files import read_checkpoint

    found = read_checkpoint(folder)
    # A hit name of the checksum is a further key, which is not read.
    read = {name: found.state.get(name) for name in ("step", "seconds", "position")}
    return read, {name: value.tobytes() for name, value in found.tensors.items()}


def load_vectors(folder: Path) -> Any:
    from pipeline.embedding.vectors import read_vectors

    found = read_vectors(str(folder / "v.parquet"), text_column=None)
    return found.vectors.tobytes(), found.texts.to_pylist(), found.made_with


def load_vocabulary(folder: Path) -> Any:
    """Read a vocabulary as `preprocess --vocab` does."""
    from bert_tf.data.text.vocab_file import read_vocab
    from pipeline.outputs.manifest import check_files

    check_files(folder, {"vocab.txt"})
    return read_vocab(folder / "vocab.txt")


def load_records(folder: Path) -> Any:
    from bert_tf.data.records.index import index_shards, read_records

    blocks = index_shards([str(folder / "a.tfrecord")], block_records=4)
    return [read_records(block) for block in blocks]


def load_spill(folder: Path) -> Any:
    """None, which has the work done again, or the blobs."""
    from pipeline.beam.blobs import BlobStore

    store = BlobStore(str(folder))
    found = store.finished("work")
    return None if found is None else [(label, store.read(blob)) for label, blob in found]


def make_artifacts(folder: Path) -> None:
    import numpy as np
    import tensorflow as tf
    from behavior.exported_models import VOCAB, write_kind
    from faults.valid_files import valid_vectors, write_models

    from bert_tf.training.run_files import write_checkpoint
    from pipeline.beam.blobs import BlobStore
    from pipeline.outputs.manifest import describe_files, write_manifest

    write_kind(folder / "model", "classifier")
    (folder / "made").mkdir()
    write_models(folder / "made")
    graphs = folder / "made" / "model"
    write_sums(graphs, [path.name for path in graphs.iterdir() if path.name != "SHA256SUMS"])
    graphs.rename(folder / "export")
    write_checkpoint(
        folder / "checkpoint",
        step=3,
        tensors={"a": np.arange(99, dtype=np.float32)},
        state={"seconds": 1.5, "position": {"epoch": 1}},
    )
    (folder / "vectors").mkdir()
    (folder / "vectors" / "v.parquet").write_bytes(valid_vectors()[0])
    (folder / "vocabulary").mkdir()
    (folder / "vocabulary" / "vocab.txt").write_text("\n".join([*VOCAB, ""]))
    for output in (folder / "vectors" / "v.parquet", folder / "vocabulary"):
        write_manifest(output, {"command": "vocab", "outputs": describe_files(output, {})})
    (folder / "records").mkdir()
    with tf.io.TFRecordWriter(str(folder / "records" / "a.tfrecord")) as writer:
        for number in range(9):
            writer.write(bytes(range(number, number + 60)))
    (folder / "spill").mkdir()
    store = BlobStore(str(folder / "spill"))
    list(store.once("work", lambda writer: [(n, writer.add([bytes(range(99))])) for n in (1, 2)]))


LOADS: dict[str, Load] = {
    "model": load_model,
    "export": load_export,
    "checkpoint": load_checkpoint,
    "vectors": load_vectors,
    "vocabulary": load_vocabulary,
    "records": load_records,
    "spill": load_spill,
}
# Of these a work folder only holds what can be made again: damage has it made again.
_REDONE = {"spill"}


@campaign("flipped bits in artifacts, which must be noticed, or change nothing")
def corruption(folder: Path) -> Iterator[Case]:
    for name in ("behavior.small_models", "bert_tf.training.run_files", "pipeline.beam.blobs"):
        importlib.import_module(name)
    in_child(lambda: make_artifacts(folder))
    whole = {name: in_child(lambda load=load, name=name: load(folder / name))
             for name, load in LOADS.items()}  # fmt: skip

    def flip(random: Random) -> str:
        name = random.choice(sorted(LOADS))
        files = [path for path in sorted((folder / name).rglob("*")) if path.is_file()]
        file = random.choice(files)
        content = file.read_bytes()
        damaged = bytearray(content)
        damaged[random.randrange(len(content))] ^= 1 << random.randrange(8)
        file.write_bytes(damaged)
        try:
            return f"{name}/{file.name}: {in_child(lambda: outcome(name, file, whole[name]))}"
        finally:
            file.write_bytes(content)

    def outcome(name: str, file: Path, expected: Any) -> str:
        try:
            found = LOADS[name](folder / name)
        except EXPECTED as error:
            assert str(file) in str(error) or file.parent.name in str(error), error
            return "noticed"
        if found == expected:
            return "harmless"
        assert name in _REDONE and found is None, f"{file}: the change was not noticed"
        return "made again"

    yield flip
