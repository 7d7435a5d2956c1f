"""Our vectors against those of sentence-transformers, which sentence_vectors.py wrote.

Those of MiniLM are kept in tests/golden; `make parity` makes them anew.
"""

import io
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from bert_tf.base.console import Console
from bert_tf.config.sections import ExportConfig
from bert_tf.embeddings.embedder import Embedder
from bert_tf.embeddings.settings import EmbedderSettings
from bert_tf.weights.sentence_transformers import read_recipe
from pipeline.demo.plan import find_weights
from pipeline.jobs import exporting
from pipeline.outputs.job_spec import RunOptions

GOLDEN = Path(__file__).parents[1] / "golden"
PYTHON = os.environ.get("BERT_PARITY_PYTHON")
SCRIPT = Path(__file__).with_name("sentence_vectors.py")
LIVE = os.environ.get("BERT_PARITY_DIR")
TOLERANCE = 1e-5


@pytest.fixture(scope="module", params=["golden", "live"])
def sentences(request):
    """Return the sentences and vectors that sentence_vectors.py wrote."""
    if request.param == "golden":
        return np.load(GOLDEN / "sentence_vectors.npz")
    if LIVE is None:
        pytest.skip("BERT_PARITY_DIR is not set: `make parity` writes what it names")
    return np.load(Path(LIVE) / "sentence_vectors.npz")


@pytest.mark.slow  # MiniLM with 90 MB of weights
@pytest.mark.parametrize("name", ["recipe", "cls", "max"])
def test_vectors_of_minilm_equal_sentence_transformers(sentences, name):
    folder = find_weights(None)
    recipe = read_recipe(folder, max_positions=512)
    if name != "recipe":
        recipe = recipe.changed(pooling=name, normalize=False)
    embedder = Embedder(
        folder,
        EmbedderSettings(
            pooling=recipe.pooling,
            normalize=recipe.normalize,
            max_seq_length=recipe.max_seq_length,
        ),
    )
    got = embedder.predict({"text": sentences["sentences"].tolist()})
    np.testing.assert_allclose(got["embedding"], sentences[name], rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize(
    ("pooling", "normalize"), [(None, None), ("max", False)], ids=["own recipe", "max"]
)
def test_sentence_transformers_loads_what_is_exported(tmp_path, pooling, normalize):
    if PYTHON is None:
        pytest.skip("BERT_PARITY_PYTHON is not set: `make parity` names one with the library")
    config = ExportConfig(
        run=str(find_weights(None)),
        output=str(tmp_path / "m"),
        format="sentence-transformers",
        pooling=pooling,
        normalize=normalize,
    )
    exporting.run(config, RunOptions(console=Console(io.StringIO())))
    command = [PYTHON, str(SCRIPT), str(tmp_path / "v.npz"), str(tmp_path / "m")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    theirs = np.load(tmp_path / "v.npz")
    recipe = read_recipe(tmp_path / "m", max_positions=512)
    assert (recipe.pooling, recipe.normalize) == (pooling or "mean", normalize is None)
    embedder = Embedder(
        tmp_path / "m",
        EmbedderSettings(
            pooling=recipe.pooling,
            normalize=recipe.normalize,
            max_seq_length=recipe.max_seq_length,
        ),
    )
    got = embedder.predict({"text": theirs["sentences"].tolist()})
    np.testing.assert_allclose(got["embedding"], theirs["recipe"], rtol=0, atol=TOLERANCE)
