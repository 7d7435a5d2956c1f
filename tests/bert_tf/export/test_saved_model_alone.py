"""SavedModels in a process that cannot import this package, nor more libraries than it says.

tensorflow_text imports Keras, so only models of ids can do without that.
"""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

from bert_tf.engines.saved_model import SAVED_MODEL
from bert_tf.export.loading import load_trained_model
from bert_tf.export.saved_model import (
    first_serving_release,
    text_operations,
    write_ids_model,
)
from bert_tf.weights.model_directory import read_model_directory

pytestmark = pytest.mark.slow  # exports models and starts processes

_FORBIDDING = """
import json, sys
from importlib.machinery import ModuleSpec

class Forbidding:  # TensorFlow looks for Keras when it is imported, and imports it when it is used
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in FORBIDDEN:
            return ModuleSpec(name, self, origin="forbidden")

    def create_module(self, spec):
        raise ModuleNotFoundError(f"forbidden: {spec.name}")

    def exec_module(self, module):
        pass

sys.meta_path.insert(0, Forbidding())
import numpy as np
import tensorflow as tf
"""
_TEXTS = """
import tensorflow_text

LONG = b"the river runs north of it . " * 690
TEXTS = [
    b"the city [MASK] is it", b"", LONG[:20_000], b"x" * 20_000, " \\u200b\\U0001f388".encode(),
    b"\\xff\\xfe\\x00 \\xc3(", b"the \\xe2\\x82 city\\xf0\\x9f [MASK] \\xff", b"\\xed\\xa0\\x80",
]
JSON = ("predicted_entities", "predicted_tags", "predicted_nbest", "predicted_tokens")
IDS = np.array([[2, 7, 9, 3], [2, 3, 0, 0]], np.int32)
found = {}
for path in sys.argv[3:]:
    model = tf.saved_model.load(path)
    signature = model.signatures["serving_default"]
    inputs = signature.structured_input_signature[1]
    shapes = {}
    for texts in (TEXTS, []):
        rows = {}
        for name, spec in inputs.items():
            lists = [[text, b"is it ?", text] for text in texts]
            values = texts if spec.shape.rank == 1 else lists
            rows[name] = tf.constant(values, tf.string, [len(texts), 3][:spec.shape.rank])
        outputs = {name: values.numpy() for name, values in signature(**rows).items()}
        shapes[len(texts)] = sorted({len(values) for values in outputs.values()})
        for name, values in outputs.items():
            assert values.dtype == object or np.isfinite(values).all(), (path, name)
            if name in JSON:  # of UTF-8
                [json.loads(value) for value in values[:5]]
    ids = model.signatures["ids"]
    rank = ids.structured_input_signature[1]["input_mask"].shape.rank
    rows = tf.constant(IDS if rank == 2 else IDS[None])
    mask = tf.cast(rows > 0, tf.int32)
    outputs = ids(input_word_ids=rows, input_mask=mask, input_type_ids=tf.zeros_like(rows))
    found[path] = shapes, {name: values.numpy().tolist() for name, values in outputs.items()}
answerer = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
answers = answerer(question=tf.constant(["where is it ?"]), context=tf.constant([sys.argv[2]]))
found["answer"] = [
    answers["predicted_answer"].numpy()[0].decode(), int(answers["predicted_start"][0])
]
print(json.dumps(found))
"""
_IDS = """
from tensorflow.python.framework import op_def_registry

lacking = [name for name in json.loads(sys.argv[1]) if op_def_registry.get(name) is None]
found = {}
for path in sys.argv[2:]:
    signature = tf.saved_model.load(path).signatures["serving_default"]
    rank = signature.structured_input_signature[1]["input_mask"].shape.rank
    rows = np.array([[2, 7, 9, 3], [2, 3, 0, 0]], np.int32)
    ids = tf.constant(rows if rank == 2 else rows[None])
    mask, types = tf.cast(ids > 0, tf.int32), tf.zeros_like(ids)
    outputs = signature(input_word_ids=ids, input_mask=mask, input_type_ids=types)
    found[path] = {name: values.numpy().tolist() for name, values in outputs.items()}
print(json.dumps([lacking, found]))
"""

CONTEXT = "🎈 the river runs north"
# Of every shape of inputs and outputs: JSON of tags, two texts, lists of texts, windows, [MASK],
# likelihoods, vectors.
# `test_saved_model_requests` asks the models of all tasks, beside this package.
ALONE = ("tagger", "answerer", "chooser", "multi_labeler", "filler", "judge", "comparer")


def run_alone(script, *arguments, forbidden=("keras_hub", "bert_tf", "pipeline")):
    done = subprocess.run(
        [sys.executable, "-c", f"FORBIDDEN = {forbidden!r}{_FORBIDDING}{script}", *arguments],
        env={"TF_CPP_MIN_LOG_LEVEL": "2", "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def with_texts(all_kinds):
    """Return numbers of rows and outputs for ids of each kind, and an answer."""
    paths = {kind: str(all_kinds[kind]) for kind in ALONE}
    found = run_alone(_TEXTS, paths["answerer"], CONTEXT, *paths.values())
    return {kind: found[path] for kind, path in paths.items()}, found["answer"]


@pytest.fixture(scope="module")
def with_ids(all_kinds, tmp_path_factory):
    """Return the operations that TensorFlow lacks, and the outputs for ids of each kind."""
    used = set()
    folder = tmp_path_factory.mktemp("ids")
    for kind, path in all_kinds.items():
        graph = SavedModel.FromString((path / SAVED_MODEL).read_bytes()).meta_graphs[0]
        used |= {operation.name for operation in graph.meta_info_def.stripped_op_list.op}
        write_ids_model(load_trained_model(read_model_directory(path)), folder / kind)
        assert text_operations(folder / kind / SAVED_MODEL) == []
    forbidden = ("tensorflow_text", "keras", "keras_hub", "bert_tf", "pipeline")
    paths = {kind: str(folder / kind) for kind in ALONE}
    lacking, found = run_alone(_IDS, json.dumps(sorted(used)), *paths.values(), forbidden=forbidden)
    return lacking, {kind: found[path] for kind, path in paths.items()}


def test_models_answer_any_bytes_with_tensorflow_and_tensorflow_text_alone(with_texts):
    """Empty, of 100,000 characters, not UTF-8; and no rows at all."""
    assert len(with_texts[0]) == len(ALONE)
    for kind, (shapes, _) in with_texts[0].items():
        assert shapes == {"8": [8], "0": [0]}, kind


def test_an_answer_is_that_of_the_model(all_kinds, with_texts):
    trained = load_trained_model(read_model_directory(all_kinds["answerer"]))
    texts = {"question": ["where is it ?"], "context": [CONTEXT]}
    wanted = trained.task.host_predictions(trained.model, trained.tokenizer, texts)
    assert with_texts[1] == [wanted["predicted_answer"][0], wanted["predicted_start"][0]]


def test_models_take_ids_with_tensorflow_alone(with_texts, with_ids):
    assert len(with_ids[1]) == len(ALONE)
    for kind, outputs in with_ids[1].items():
        _, beside_texts = with_texts[0][kind]
        assert outputs.keys() == beside_texts.keys()
        for name, values in outputs.items():
            np.testing.assert_allclose(
                values, beside_texts[name], atol=1e-5, err_msg=f"{kind} {name}"
            )


def test_all_operations_that_tensorflow_lacks_are_known(all_kinds, with_ids):
    """The card names the operations that TensorFlow Serving has to have."""
    lacking, _ = with_ids
    assert lacking == ["FastBertNormalize", "FastWordpieceTokenizeWithOffsets"]
    for path in all_kinds.values():
        assert text_operations(path / SAVED_MODEL) == lacking
    assert first_serving_release(lacking) == "2.12"
    assert first_serving_release(["FastWordpieceTokenizeWithOffsets"]) == "2.10"
    assert first_serving_release(["TFText>RoundRobinTrim"]) is None
