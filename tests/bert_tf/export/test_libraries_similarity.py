"""A model of sentence vectors in every format that holds its encoder: vectors, recipe and card."""

from __future__ import annotations

import io

import numpy as np
import pytest

from bert_tf import load
from bert_tf.base.console import Console
from bert_tf.config.embedding_recipe import RAW_CLS, EmbeddingRecipe
from bert_tf.config.section import build_section
from bert_tf.config.sections import ExportConfig
from bert_tf.embeddings.settings import EmbedderSettings
from bert_tf.engines.registry import ENGINES
from bert_tf.export.registry import FORMATS, recognize_format
from bert_tf.weights.sentence_transformers import read_recipe
from pipeline.jobs import exporting
from pipeline.outputs.job_spec import RunOptions

RECIPE = EmbeddingRecipe(pooling="max", normalize=True, max_seq_length=16, is_trained=True)
ROWS = {
    "text": ["the river runs north", "", "where is it ? " * 9],
    "text_pair": ["north of the city", "it", ""],
}
EVERY_FORMAT = ("savedmodel", "onnx", "openvino", "huggingface", "sentence-transformers")


@pytest.fixture(params=EVERY_FORMAT)
def written(request, comparer, tmp_path):
    """Return the model exported by the command: format, folder and manifest."""
    for package in FORMATS[request.param].packages:
        pytest.importorskip(package, reason="an optional package")
    given = {
        "run": str(comparer[0].directory.path),
        "output": str(tmp_path / "model"),
        "format": request.param,
    }
    config = build_section(ExportConfig, given)
    manifest = exporting.run(config, RunOptions(console=Console(io.StringIO())))
    return request.param, tmp_path / "model", manifest


@pytest.mark.slow  # exports models
def test_every_format_keeps_vectors_recipe_and_card(written, comparer):
    name, folder, manifest = written
    # What HuggingFace's libraries load is what sentence-transformers loads, by its recipe.
    known_as = "sentence-transformers" if name == "huggingface" else name
    assert recognize_format(folder).name == known_as
    assert manifest["notes"] == []
    assert read_recipe(folder, max_positions=32) == RECIPE
    card = (folder / "README.md").read_text()
    assert "\npipeline_tag: sentence-similarity\n" in card
    assert RAW_CLS not in card

    expected = comparer[1].predict(ROWS)
    embedder = EmbedderSettings(
        pooling=RECIPE.pooling, normalize=RECIPE.normalize, max_seq_length=RECIPE.max_seq_length
    ).load(folder)
    vectors = embedder.predict({"text": ROWS["text"]})["embedding"]
    np.testing.assert_allclose(vectors, expected["embedding"], atol=1e-5)

    engines = [each for each in ENGINES.values() if each.can_load(folder) and each.is_installed()]
    assert bool(engines) == (name in ("savedmodel", "onnx", "openvino"))
    for engine in engines:
        found = engine.load(folder).predict(ROWS)
        assert found.keys() == expected.keys()
        for output, values in expected.items():
            np.testing.assert_allclose(
                found[output], values, atol=1e-5, err_msg=f"{engine.name}: {output}"
            )
    if engines:
        rows = {"anchor": ROWS["text"], "positive": ROWS["text_pair"]}
        cosines = load(folder).predict(rows)["predicted_similarity"]
        np.testing.assert_allclose(cosines, expected["predicted_similarity"], atol=1e-5)
