"""The functions that jobs read files and answer requests with, as functions of a path."""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

from faults.children import check_message
from faults.valid_files import VOCAB

Read = Callable[[Path], Any]


def read_rows(path: Path) -> None:
    """Read a table like `finetune`, `score` and `search`."""
    from bert_tf.data.tables.tables import read_table_blocks

    for _ in read_table_blocks(path, text_columns=["text"], list_columns=["label"]):
        pass


def read_documents(path: Path) -> None:
    """Read a corpus like `vocab` and `preprocess`."""
    from behavior.readers import read_corpus

    read_corpus(path)


def read_table(path: Path) -> None:
    try:
        read_rows(path)
    finally:
        read_documents(path)


def read_squad(path: Path) -> None:
    from bert_tf.data.tables.tables import read_table_blocks

    for _ in read_table_blocks(path, text_columns=["question", "context"]):
        pass


def read_tags(path: Path) -> None:
    from bert_tf.data.tables.dialect import PLAIN
    from bert_tf.data.tables.places import Places
    from bert_tf.data.tables.word_blocks import read_word_blocks
    from bert_tf.tasks.tagging.row_forms import TagColumns
    from bert_tf.tasks.tagging.rows import read_tagged_rows

    columns = TagColumns(text="text", tokens=None, tags=None, entities="entities")
    list(read_tagged_rows(path, columns, PLAIN, None, Places()))
    list(read_word_blocks(str(path), column="2", dialect=PLAIN, block_rows=3, as_lines=True))


def read_config(path: Path) -> None:
    from bert_tf.base.errors import BertPipelineError
    from bert_tf.config.plain_yaml import read_yaml_lines
    from bert_tf.config.resolve import resolve
    from bert_tf.config.sections import FinetuneConfig, TrainConfig, VocabConfig

    for section in (FinetuneConfig, VocabConfig):
        try:
            resolve(section, config_file=str(path), flags={})
        except BertPipelineError as error:
            check_message(error)
    with contextlib.suppress(BertPipelineError):
        list(read_yaml_lines(str(path)))
    resolve(TrainConfig, config_file=str(path), flags={})


def read_bert_config(path: Path) -> None:
    from bert_tf.config.bert_file import read_bert_document

    read_bert_document(path)


def read_vocabulary(path: Path) -> None:
    from bert_tf.data.text.vocab_file import read_vocab

    read_vocab(path)


def read_folder(path: Path) -> None:
    from bert_tf.data.text.vocabulary_files import read_folder_vocabulary

    read_folder_vocabulary(path.parent, vocab_size=len(VOCAB) + 2)


def read_weights(path: Path) -> None:
    from bert_tf.weights.tensor_files import FolderTensors

    tensors = FolderTensors(path.parent)
    tensors.count_numbers()
    for name in tensors:
        tensors[name]


def read_google(path: Path) -> None:
    from bert_tf.weights.google_checkpoint import read_google_checkpoint

    directory = read_google_checkpoint(path.parent)
    for name in directory.tensors:
        directory.tensors[name]


def read_task(path: Path) -> None:
    from bert_tf.config.bert_file import read_task
    from bert_tf.tasks.registry import host_task_from_settings, served_task_from_settings

    settings = read_task(path.parent)
    served_task_from_settings(settings, str(path))
    host_task_from_settings(settings, str(path))


def read_vectors_file(path: Path) -> None:
    from pipeline.embedding.vectors import holds_vectors, read_vectors

    holds_vectors(str(path))
    read_vectors(str(path), text_column=None)


def load_graph(engine: str) -> Read:
    def read(path: Path) -> None:
        from bert_tf.engines.registry import ENGINES

        ENGINES[engine].load(path.parent, threads=1).predict({"text": ["the river", "é"]})

    return read


class _Connection:
    """A socket of a request that has arrived."""

    def __init__(self, request: bytes):
        self._request = request

    def makefile(self, mode: str, size: int) -> io.BytesIO:
        return io.BytesIO(self._request)

    def sendall(self, data: bytes) -> None: ...

    def settimeout(self, seconds: float) -> None: ...

    def setsockopt(self, *option: Any) -> None: ...


@functools.cache
def _tried_server() -> Any:
    from types import SimpleNamespace

    import numpy as np

    from bert_tf.engines.predictor import Predictor
    from bert_tf.tasks.registry import declared_task
    from pipeline.trying.model import TriedModel
    from pipeline.trying.page import TryPage

    task = {"task": "classification", "labels": ["<b>", "x"], "columns": {"text": "t"}}
    outputs = {
        "predicted_label": np.array(["<b>"], object),
        "predicted_score": np.array([0.5]),
        "probabilities": np.array([[0.5, 0.5]]),
    }
    engine: Any = SimpleNamespace(predict=lambda inputs: outputs)
    model = Predictor(
        folder="m", engine_name="e", engine=engine, declared=declared_task(task, "m"), task=task
    )

    def warn(line: str) -> None:
        raise AssertionError(line)

    return SimpleNamespace(
        page=TryPage(TriedModel(name="m", predictor=model)),
        hosts=["127.0.0.1:1", "localhost:1"],
        url="http://127.0.0.1:1/",
        console=SimpleNamespace(warn=warn),
    )


def answer_request(path: Path) -> None:
    from pipeline.trying.server import _Handler

    _Handler(_Connection(path.read_bytes()), ("127.0.0.1", 2), _tried_server())


def import_libraries() -> None:
    """Import all libraries, since a child must not run before it is forked."""
    for name in (
        *("behavior.readers", "bert_tf.engines.onnx_runtime", "openvino", "tensorflow"),
        *("bert_tf.weights.google_checkpoint", "pipeline.embedding.vectors"),
        *("bert_tf.tasks.registry", "pipeline.trying.page", "pipeline.trying.server"),
        *(f"bert_tf.tasks.{task}.task" for task in ("classification", "tagging", "regression")),
    ):
        importlib.import_module(name)
