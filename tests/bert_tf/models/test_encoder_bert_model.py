"""The models with heads: shapes, types, gradients, saving, Keras' own training loop."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.config.bert import BertConfig
from bert_tf.models.encoder import BertEncoder
from bert_tf.models.heads import (
    BertClassifier,
    BertPretrainingModel,
    BertQuestionAnswerer,
    BertTokenClassifier,
)

CONFIG = BertConfig(
    vocab_size=30,
    hidden_size=8,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=16,
    max_position_embeddings=10,
)
# Keras 3 saves weights through a NumPy conversion that NumPy 2 warns of.
KERAS_SAVES = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
KEY = np.int32([1, 2])
BATCH = 3
LENGTH = 6
PREDICTIONS = 2
LABELS = 4
SHAPES = {
    "pretraining": {
        "mlm_logits": (BATCH, PREDICTIONS, CONFIG.vocab_size),
        "nsp_logits": (BATCH, 2),
    },
    "classification": (BATCH, LABELS),
    "token_classification": (BATCH, LENGTH, LABELS),
    "question_answering": ((BATCH, LENGTH), (BATCH, LENGTH)),
}


def make_model(name, **arguments):
    if name == "pretraining":
        return BertPretrainingModel(CONFIG, **arguments)
    if name == "classification":
        return BertClassifier(CONFIG, LABELS, **arguments)
    if name == "token_classification":
        return BertTokenClassifier(CONFIG, LABELS, **arguments)
    return BertQuestionAnswerer(CONFIG, **arguments)


@pytest.fixture
def inputs():
    generator = np.random.default_rng(0)
    values = {
        "input_word_ids": generator.integers(1, CONFIG.vocab_size, (BATCH, LENGTH)),
        "input_mask": np.arange(LENGTH)[None, :] < np.array([[6], [4], [0]]),
        "input_type_ids": generator.integers(0, 2, (BATCH, LENGTH)),
        "masked_lm_positions": generator.integers(0, LENGTH, (BATCH, PREDICTIONS)),
    }
    return {name: tf.constant(value, tf.int32) for name, value in values.items()}


@pytest.mark.parametrize(
    "policy",
    [
        "float32",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("mixed_bfloat16", "mixed_float16")
        ),
    ],
)
@pytest.mark.parametrize("name", SHAPES)
def test_logits_are_finite_float32_of_the_promised_shape(name, policy, inputs):
    model = make_model(name, dtype=policy)
    outputs = model(inputs, training=True, dropout_key=KEY)
    assert keras.tree.map_structure(lambda logits: tuple(logits.shape), outputs) == SHAPES[name]
    for logits in keras.tree.flatten(outputs):
        assert logits.dtype == "float32"
        assert np.isfinite(logits).all()


@pytest.mark.parametrize("name", SHAPES)
def test_every_weight_gets_a_gradient(name, inputs):
    model = make_model(name)
    model.build_weights()
    with tf.GradientTape() as tape:
        outputs = model(inputs, training=True, dropout_key=KEY)
        loss = tf.add_n([tf.reduce_sum(logits**2) for logits in keras.tree.flatten(outputs)])
    gradients = tape.gradient(loss, [weight.value for weight in model.trainable_weights])
    assert all(gradient is not None for gradient in gradients)


@pytest.mark.parametrize("name", SHAPES)
def test_building_without_data_makes_all_variables(name, inputs):
    model = make_model(name)
    model.build_weights()
    before = [variable.path for variable in model.variables]
    model(inputs)
    assert [variable.path for variable in model.variables] == before


@pytest.mark.parametrize("name", ["encoder", *SHAPES])
def test_keras_summarizes_it_down_to_the_blocks(name):
    model = BertEncoder(CONFIG) if name == "encoder" else make_model(name)
    model.build_weights()
    lines: list[str] = []
    model.summary(print_fn=lines.append, expand_nested=True)
    text = "\n".join(lines)
    assert "(BertEmbeddings)" in text
    assert "block_0 (TransformerBlock)" in text
    assert f"Total params: {model.count_params():,}" in text


@pytest.mark.parametrize("name", SHAPES)
@KERAS_SAVES
def test_keras_saves_and_loads_it_with_its_policy_bfloat16(name, inputs, tmp_path):
    model = make_model(name, dtype="mixed_bfloat16")
    model.build_weights()
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.config == CONFIG
    assert loaded.dtype_policy == model.dtype_policy
    keras.tree.map_structure(np.testing.assert_array_equal, loaded(inputs), model(inputs))


@pytest.mark.parametrize("name", ["classification", "token_classification"])
def test_classifier_dropout_uses_its_own_stream(name, inputs):
    # With dropout in the head alone, other keys still change the logits.
    model = make_model(name)
    streams = [block.first_dropout_stream for block in model.encoder.blocks]
    assert model.dropout.stream > max(streams) + 2
    model.encoder.trainable = False
    first = model(inputs, training=True, dropout_key=KEY)
    np.testing.assert_array_equal(model(inputs, training=True, dropout_key=KEY), first)


@pytest.mark.slow  # trains
def test_keras_fit_learns_a_rule():
    # The label is whether the text starts with token 7 or 6; a Keras script needs no dropout key.
    keras.utils.set_random_seed(0)
    generator = np.random.default_rng(0)
    ids = generator.integers(8, CONFIG.vocab_size, (128, 4)).astype(np.int32)
    labels = generator.integers(0, 2, 128)
    ids[:, 0] = np.where(labels, 7, 6)
    model = BertClassifier(CONFIG.replace(initializer_range=0.2), 2)
    model.compile(
        optimizer=keras.optimizers.Adam(1e-2),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
        jit_compile=False,
    )
    history = model.fit({"input_word_ids": ids}, labels, batch_size=32, epochs=5, verbose=0)
    assert history.history["accuracy"][-1] > 0.9
