import numpy as np
import pytest

from bert_tf.config.bert import sized_config
from bert_tf.models.heads import BertPretrainingModel
from bert_tf.models.model_flops import ModelFlops


def test_operations_are_those_of_the_models_matrix_products():
    """Every kernel, times 2 a token forward and 4 backward; attention's two products likewise."""
    config = sized_config("tiny", 1000)
    model = BertPretrainingModel(config)
    model.build_weights()
    kernels = {
        v.path.split("/", 1)[1]: int(np.prod(v.shape)) for v in model.weights if v.name == "kernel"
    }
    blocks = sum(size for path, size in kernels.items() if "/block_" in path)
    length = 64
    rows = 8
    predictions = 10
    tokens = rows * length
    masked = rows * predictions
    head = kernels["masked_lm/transform/kernel"] + 1000 * config.hidden_size
    pooler = kernels["encoder/pooler/kernel"]
    attention = config.num_hidden_layers * rows * 2 * length * length * config.hidden_size
    expected = 6 * (blocks * tokens + head * masked + pooler * rows + attention)
    work = ModelFlops.of_encoder(config)
    counts = {"tokens": tokens, "examples": rows, "squared_lengths": rows * length**2}
    assert work.flops(**counts, predictions=masked) == pytest.approx(expected)
    assert work.flops(**counts, predictions=0) == pytest.approx(expected - 6 * head * masked)


def test_layers_that_are_not_trained_have_no_backward_pass():
    """One of 2 layers has the forward third of its operations; heads are trained."""
    config = sized_config("tiny", 1000)
    counts = {"tokens": 512, "examples": 8, "squared_lengths": 8 * 64**2, "predictions": 80}
    no_heads = {**counts, "examples": 0, "predictions": 0}
    whole, half = (
        ModelFlops.of_encoder(config, frozen_layers=layers).flops(**counts) for layers in (0, 1)
    )
    layers = ModelFlops.of_encoder(config).flops(**no_heads)
    assert half == pytest.approx(whole - layers / 2 * 2 / 3)


def test_what_no_head_reads_is_left_out_of_the_last_block():
    """In pretraining: queries, output projection, both large kernels, attention's rows."""
    config = sized_config("tiny", 1000)
    rows = 8
    length = 64
    predictions = 80
    counts = {"tokens": rows * length, "examples": rows, "squared_lengths": rows * length**2}
    whole, needed = (
        ModelFlops.of_encoder(config, reads_all_tokens=reads).flops(
            **counts, predictions=predictions
        )
        for reads in (True, False)
    )
    hidden, wide = config.hidden_size, config.intermediate_size
    unread = rows * length - rows - predictions
    kernels = 2 * hidden * hidden + 2 * hidden * wide
    assert whole - needed == pytest.approx(6 * unread * (kernels + 2 * length * hidden))


def test_operations_by_hand():
    """6 x (1000 x 9 + 100 x 3 + 10 x 4) + 12 x 7 x (4 + 9 + 16), and a step without tokens."""
    work = ModelFlops(
        token_parameters=1000, example_parameters=100, prediction_parameters=10, attention_width=7
    )
    flops = work.flops(
        tokens=[9.0, 0.0], examples=[3.0, 0.0], squared_lengths=[29.0, 0.0], predictions=[4.0, 0.0]
    )
    assert flops.tolist() == [58_476.0, 0.0]
