"""First-step losses of sentence embeddings against sentence-transformers' on MiniLM.

Theirs, which similarity_losses.py wrote, are kept in tests/golden; `make parity` makes them anew.
"""

import io
import json
import os
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from similarity_losses import ANCHORS, CASES, NEGATIVES, POSITIVES, SCORES

from bert_tf.base.console import Console
from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.tasks.registry import finetune_config
from bert_tf.tasks.similarity.task import SimilarityTask
from bert_tf.weights.model_directory import load_all_weights, read_model_directory
from pipeline.demo.plan import find_weights

GOLDEN = Path(__file__).parents[1] / "golden"
LIVE = os.environ.get("BERT_PARITY_DIR")
OPTIONS = {
    "ranking": {},
    "ranking_with_negatives": {"negative_column": ("negative",)},
    "triplet": {"loss": "triplet"},
    "cosine_triplet": {"loss": "triplet", "triplet_distance": "cosine", "triplet_margin": 0.5},
    "cosent": {"loss": "cosent", "text_column": "anchor", "text_pair_column": "positive"},
}


@pytest.fixture(scope="module", params=["golden", "live"])
def expected(request):
    """Loss and gradient norm by case, from sentence-transformers."""
    if request.param == "golden":
        return np.load(GOLDEN / "similarity_losses.npz")
    if LIVE is None:
        pytest.skip("BERT_PARITY_DIR is not set: `make parity` writes what it names")
    return np.load(Path(LIVE) / "similarity_losses.npz")


@pytest.mark.slow  # MiniLM with 90 MB of weights
@pytest.mark.parametrize("case", CASES)
def test_the_first_loss_equals_sentence_transformers(expected, case, tmp_path):
    path = tmp_path / "train.jsonl"
    names = ("anchor", "positive", "negative", "score")
    rows = zip(ANCHORS, POSITIVES, NEGATIVES, SCORES, strict=True)
    path.write_text("".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows))
    paths = {"train": str(path), "init": str(find_weights(None)), "output": str(tmp_path / "run")}
    config = finetune_config({"task": "similarity", **paths, **OPTIONS[case]})
    task, source = SimilarityTask.from_training(config, Console(io.StringIO()))
    directory = read_model_directory(config.init)
    tokenizer = WordPieceTokenizer(directory.vocab, lowercase=directory.lowercase)
    model = task.build_model(directory.config, policy="float32")
    model.build_weights()
    load_all_weights(model, directory)
    data = task.encode(source, tokenizer, training=True)
    # Two rows that only fill up the batch change nothing.
    batch = data.batch(np.arange(6), length=24, pad_id=tokenizer.pad_id, batch_size=8)
    batch = {name: tf.constant(values) for name, values in batch.items()}
    words = model.encoder.embeddings.word_embeddings.value
    with tf.GradientTape() as tape:
        outputs = task.outputs(model, batch, training=False, dropout_key=None)
        loss = task.loss_parts(outputs, batch).losses["loss"] / task.weights(batch)["loss"]
    gradient = tf.convert_to_tensor(tape.gradient(loss, words))
    expected_loss, expected_norm = expected[case]
    np.testing.assert_allclose(loss, expected_loss, rtol=1e-5)
    np.testing.assert_allclose(tf.norm(gradient), expected_norm, rtol=1e-4)
