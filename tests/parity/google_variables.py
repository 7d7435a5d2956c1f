"""Lists the variables of google-research/bert's own graphs, for test_google_checkpoint.py.

    python tests/parity/google_variables.py CHECKOUT tests/golden/google_variables.json

CHECKOUT is a clone of github.com/google-research/bert. Its modeling.py, run_pretraining.py,
run_classifier.py and run_squad.py run as they are, on TensorFlow 2's compatibility module; the two
functions that module lacks stand here as TensorFlow 1 had them. The shape is that of the models in
tests/golden/models.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import tensorflow as tf

v1 = tf.compat.v1
BATCH = 2
LENGTH = 6
LABELS = 3
GOLDEN = Path(__file__).parents[1] / "golden" / "models"


def layer_norm(inputs: Any, begin_norm_axis: int, begin_params_axis: int, scope: str | None) -> Any:
    """tf.contrib.layers.layer_norm over the last axis."""
    assert begin_norm_axis == begin_params_axis == -1
    with v1.variable_scope(scope, "LayerNorm"):
        shape = inputs.shape[-1:]
        beta = v1.get_variable("beta", shape, initializer=v1.zeros_initializer())
        gamma = v1.get_variable("gamma", shape, initializer=v1.ones_initializer())
    mean, variance = tf.nn.moments(inputs, [-1], keepdims=True)
    return tf.nn.batch_normalization(inputs, mean, variance, beta, gamma, 1e-12)


def dense(
    inputs: Any,
    units: int,
    activation: Any = None,
    name: str | None = None,
    kernel_initializer: Any = None,
) -> Any:
    """tf.layers.dense of matrices."""
    with v1.variable_scope(name, "dense"):
        shape = [inputs.shape[-1], units]
        kernel = v1.get_variable("kernel", shape, initializer=kernel_initializer)
        bias = v1.get_variable("bias", [units], initializer=v1.zeros_initializer())
    outputs = inputs @ kernel + bias
    return activation(outputs) if activation else outputs


class TensorFlow1:
    """The compatibility module with the attributes that the reference needs beside it."""

    contrib = mock.Mock(layers=mock.Mock(layer_norm=layer_norm))
    layers = mock.Mock(dense=dense)
    flags = mock.Mock()

    def __getattr__(self, name: str) -> Any:
        return getattr(v1, name)


def inputs() -> tuple[Any, Any, Any]:
    """Ids, mask and segments."""
    ones = tf.ones([BATCH, LENGTH], tf.int32)
    return ones, ones, ones


def pretraining(modeling: Any, config: Any) -> None:
    import run_pretraining

    ids, mask, segments = inputs()
    model = modeling.BertModel(config, False, ids, mask, segments)
    run_pretraining.get_masked_lm_output(
        config, model.get_sequence_output(), model.get_embedding_table(), ids, ids, tf.ones([12])
    )
    run_pretraining.get_next_sentence_output(config, model.get_pooled_output(), ids[:, 0])


def classification(modeling: Any, config: Any) -> None:
    import run_classifier

    ids, mask, segments = inputs()
    run_classifier.create_model(config, False, ids, mask, segments, ids[:, 0], LABELS, False)


def question_answering(modeling: Any, config: Any) -> None:
    import run_squad

    run_squad.create_model(config, False, *inputs(), False)


def main() -> None:
    checkout, output = Path(sys.argv[1]), Path(sys.argv[2])
    sys.path.insert(0, str(checkout))
    v1.disable_v2_tensorshape()
    with mock.patch.dict(sys.modules, {"tensorflow": TensorFlow1()}):
        import modeling

        document = json.loads((GOLDEN / "pretraining" / "config.json").read_text())
        config = modeling.BertConfig(vocab_size=document["vocab_size"])
        listed: dict[str, Any] = {"config": sorted(vars(config))}
        for name in vars(config):
            setattr(config, name, document[name])
        for build in (pretraining, classification, question_answering):
            with tf.Graph().as_default():
                build(modeling, config)
                listed[build.__name__] = {
                    variable.op.name: variable.shape.as_list() for variable in v1.global_variables()
                }
    output.write_text(json.dumps(listed, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
