"""A server survives any request: exactly those of the declared shapes and ids are answered.

In a process of its own that runs the graph as TensorFlow Serving does: `Session::Run` passes on
shapes and types that the signature does not have.
"""

from __future__ import annotations

import json

import pytest
from behavior.forks import run_forked

from bert_tf.weights.model_directory import read_model_directory

pytestmark = pytest.mark.slow  # exports a model of every task and starts a process

_SCRIPT = """
import json, sys
import numpy as np
import tensorflow as tf
import tensorflow_text
from tensorflow.python.client import pywrap_tf_session as client

tf.get_logger().setLevel("ERROR")
STRING, INT32 = 7, 3
REQUESTS = 40
vocab, positions, types = map(int, sys.argv[1:4])
random = np.random.default_rng(5)
BELOW = {"input_word_ids": vocab, "input_mask": 2, "input_type_ids": types}
TEXTS = [b"", b"the river [MASK] runs north", b"is it ?", b"\\xff\\x00"]

def values_of(name, shape, dtype):
    if dtype == STRING:
        return random.choice(np.array(TEXTS, object), shape)
    if dtype != INT32:
        return np.ones(shape, dtype)
    below = BELOW.get(name, 100)
    values = np.array(random.integers(0, below, shape), np.int32)
    if name in BELOW and values.size and random.random() < 0.1:
        values.flat[random.integers(values.size)] = random.choice([-1, below, 2**31 - 1])
    return values

def is_right(rows, infos):
    for name, values in rows.items():
        expected = object if infos[name].dtype == STRING else np.int32
        if values.dtype != expected or values.ndim != len(infos[name].tensor_shape.dim):
            return False
        if 0 in values.shape[1:]:
            return False
    if "input_mask" in rows:
        one = rows["input_mask"].shape
        return (
            all(values.shape == one for values in rows.values())
            and one[-1] <= positions
            and all(((values >= 0) & (values < BELOW[name])).all() for name, values in rows.items())
        )
    return len({len(values) for name, values in rows.items() if name != "batch_tokens"}) == 1

def random_rows(infos):
    rank = max(len(info.tensor_shape.dim) for info in infos.values())
    common = tuple(random.integers(1, 5, rank))
    if random.random() < 0.1:
        common = (0, *common[1:])
    rows = {}
    for name, info in infos.items():
        shape, dtype = common[: len(info.tensor_shape.dim)], info.dtype
        if random.random() < 0.2:
            shape = tuple(random.integers(0, 4, random.integers(0, 4)))
        if random.random() < 0.03:
            shape = (*shape[:-1], positions + 1)
        if random.random() < 0.05:
            dtype = [np.float32, np.int64, np.bool_, STRING, INT32][random.integers(5)]
        rows[name] = values_of(name, shape, dtype)
    return rows

counts = {}
for path in sys.argv[4:]:
    with tf.Graph().as_default() as graph:
        session = tf.compat.v1.Session(graph=graph)
        model = tf.compat.v1.saved_model.load(session, ["serve"], path)
    tensor = lambda info: graph.get_tensor_by_name(info.name)._as_tf_output()
    for key, signature in sorted(model.signature_def.items()):
        infos = dict(sorted(signature.inputs.items()))
        if not infos:
            continue
        fetches = [tensor(info) for info in signature.outputs.values()]

        def request(rows):
            feed = {tensor(infos[name]): values for name, values in rows.items()}
            # Printed first, so that the last line of a process that dies is what it died of.
            shapes = {name: [values.shape, str(values.dtype)] for name, values in rows.items()}
            print(path, key, shapes, flush=True)
            outputs = client.TF_SessionRun_wrapper(session._session, None, feed, fetches, [], None)
            return dict(zip(signature.outputs, outputs, strict=True))

        answered = refused = 0
        for number in range(5 * REQUESTS):
            if number >= REQUESTS and answered >= 5 and refused >= 3:
                break
            rows = random_rows(infos)
            try:
                outputs = request(rows)
            except tf.errors.InvalidArgumentError as error:
                assert not is_right(rows, infos), (rows, str(error))
                refused += 1
                continue
            assert is_right(rows, infos), (rows, outputs)
            answered += 1
            count = max(len(values) for values in rows.values() if values.ndim)
            for name, values in outputs.items():
                assert name == "labels" or len(values) == count, (rows, name, values.shape)
                assert values.dtype == object or np.isfinite(values).all(), (rows, name)
        counts[f"{path} {key}"] = answered, refused
print(json.dumps(counts))
"""


def test_every_signature_answers_the_requests_it_declares_and_refuses_the_others(all_kinds):
    paths = [str(path) for path in all_kinds.values()]
    config = read_model_directory(paths[0]).config
    sizes = (config.vocab_size, config.max_position_embeddings, config.type_vocab_size)
    done = run_forked(_SCRIPT, *sizes, *paths)
    assert done.returncode == 0, (done.stdout.splitlines()[-1:], done.stderr[-2000:])
    counts = json.loads(done.stdout.splitlines()[-1])
    assert len(counts) == 3 * len(paths) + 1, "and `embed` of similarity"
    for signature, (answered, refused) in counts.items():
        assert answered >= 5 and refused >= 3, signature
