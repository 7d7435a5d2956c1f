"""The page of a model."""

import json
import math

import numpy as np
import pytest
from behavior.pages import check_page
from safetensors.numpy import save_file

from pipeline.report.model_page import part_of, tensor_shapes
from pipeline.report.page import artifact_page

TENSORS = {
    "bert.embeddings.word_embeddings.weight": (10, 4),
    "bert.embeddings.position_embeddings.weight": (8, 4),
    "bert.embeddings.LayerNorm.weight": (4,),
    "bert.encoder.layer.0.output.dense.weight": (4, 16),
    "bert.encoder.layer.10.output.dense.weight": (4, 16),
    "bert.pooler.dense.weight": (4, 4),
    "classifier.weight": (2, 4),
}


@pytest.fixture
def model(tmp_path):
    save_file(
        {name: np.zeros(shape, np.float32) for name, shape in TENSORS.items()},
        tmp_path / "model.safetensors",
    )
    config = {"model_type": "bert", "num_hidden_layers": 11, "hidden_size": 4, "vocab_size": 10}
    (tmp_path / "config.json").write_text(json.dumps(config))
    task = {
        "task": "classification", "labels": ["<no>", "yes"], "temperature": 1.0,
        "label_smoothing": 0.0, "columns": {"text": "body", "text_pair": None},
        "max_seq_length": 64,
    }  # fmt: skip
    (tmp_path / "task.json").write_text(json.dumps(task))
    return tmp_path


def test_a_model_shows_its_shape_its_labels_and_where_its_parameters_are(model):
    page = check_page(artifact_page(str(model), samples=1))
    shown = " ".join(" ".join(page.text).split())
    total = sum(map(math.prod, TENSORS.values()))
    for tile in ("task classification", f"parameters {total:,}", "layers 11", "64 tokens"):
        assert tile in shown
    assert "<no>" in page.text and "column of the text body" in shown
    assert "temperature" not in page.text, "settings without effect are only among all keys"
    parts = shown[shown.index("Parameters part") : shown.index("Files")]
    order = ["word embeddings", "position embeddings", "other embeddings", "layer 1", "layer 11"]
    places = [parts.index(f" {part} ") for part in [*order, "pooler", "head"]]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("encoder.layer.3.attention.self.query.weight", "layer 4"),
        ("bert.embeddings.token_type_embeddings.weight", "other embeddings"),
        ("cls.predictions.decoder.weight", "head"),
    ],
)
def test_a_tensor_belongs_to_a_part(name, part):
    assert part_of(name) == part


def test_damaged_weights_leave_the_rest_of_the_page(model):
    (model / "model.safetensors").write_bytes(b"none")
    assert tensor_shapes(model) == {}
    assert "Parameters" not in check_page(artifact_page(str(model), samples=1)).text
