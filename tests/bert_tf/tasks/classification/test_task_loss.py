"""The loss against PyTorch's, by values that tests/parity/cross_entropy.py wrote."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from behavior.tasks import check_exported_predictions
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax

from bert_tf.base.errors import InputError
from bert_tf.data.tables.file_rows import Table
from bert_tf.tasks.classification.task import (
    loss_without_texts,
    rejecting_bad_weights,
    smoothed_cross_entropy,
    weights_of_labels,
)

GOLDEN = Path(__file__).parents[3] / "golden" / "cross_entropy.npz"


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.6])
@pytest.mark.parametrize("weighted", ["plain", "weighted"])
def test_loss_and_gradient_are_those_of_pytorch(weighted, smoothing):
    golden = np.load(GOLDEN)
    weights = tuple(golden["class_weights"].tolist()) if weighted == "weighted" else ()
    logits, labels = tf.constant(golden["logits"]), tf.constant(golden["labels"], tf.int32)
    with tf.GradientTape() as tape:
        tape.watch(logits)
        losses = smoothed_cross_entropy(logits, labels, class_weights=weights, smoothing=smoothing)
        loss = tf.reduce_sum(losses) / tf.reduce_sum(weights_of_labels(labels, weights))
    name = f"{weighted}-{smoothing}"
    assert loss.numpy() == pytest.approx(golden[f"{name}/loss"], abs=1e-6)
    np.testing.assert_allclose(tape.gradient(loss, logits), golden[f"{name}/gradient"], atol=1e-6)


def test_without_texts_equal_labels_have_the_loss_ln_of_their_number():
    labels = np.array([0, 1, 2] * 5)
    for smoothing in (0.0, 0.3):
        loss = loss_without_texts(
            labels, np.ones(15), classes=3, class_weights=(), smoothing=smoothing
        )
        assert loss == pytest.approx(np.log(3))


@given(
    rows=st.lists(
        st.tuples(
            st.integers(0, 2), st.floats(0.1, 5), st.lists(st.floats(-3, 3), min_size=3, max_size=3)
        ),
        min_size=1,
        max_size=12,
    ),
    class_weights=st.sampled_from([(), (0.5, 1.0, 4.0)]),
    smoothing=st.sampled_from([0.0, 0.2]),
)
def test_no_prediction_that_ignores_the_texts_has_a_lower_loss(rows, class_weights, smoothing):
    labels = np.array([label for label, _, _ in rows])
    weights = np.array([weight for _, weight, _ in rows])
    least = loss_without_texts(
        labels, weights, classes=3, class_weights=class_weights, smoothing=smoothing
    )
    by_class = np.array(class_weights or (1, 1, 1), float)
    one_hot = np.eye(3)[labels]
    targets = weights[:, None] * ((1 - smoothing) * one_hot * by_class + smoothing * by_class / 3)

    def mean_loss(log_probabilities):
        return -(targets @ log_probabilities).sum() / (weights * by_class[labels]).sum()

    for _, _, logits in rows:
        assert mean_loss(log_softmax(logits)) >= least - 1e-9
    share = targets.sum(axis=0) / targets.sum()
    assert mean_loss(np.log(np.maximum(share, 1e-300))) == pytest.approx(least, abs=1e-9)


# Weights of rows that cannot be used are rejects.


def table_of(weights):
    lines = list(range(2, 2 + len(weights)))
    return Table(source="t.csv", columns={"w": weights}, lines=lines, rejects=[])


def test_numbers_from_0_are_weights():
    table = table_of(["1", "0", "0.25", "1e3", " 2 "])
    assert rejecting_bad_weights(table, "w") is table


def test_other_cells_are_rejected():
    table = rejecting_bad_weights(table_of(["1", "-1", "heavy", "nan", "inf", "2"]), "w")
    assert table.columns["w"] == ["1", "2"]
    assert [str(reject) for reject in table.rejects] == [
        f"t.csv:{line}: weight is not a number from 0 ({cell!r})"
        for line, cell in [(3, "-1"), (4, "heavy"), (5, "nan"), (6, "inf")]
    ]


def test_a_column_without_weights():
    with pytest.raises(InputError, match="2 × weight is not .*t.csv:2 .*'w'"):
        rejecting_bad_weights(table_of(["good", "bad"]), "w")


# An exported classifier predicts what its run does, long texts and calibration included.
WORDS = (
    ("good", "bad", "fine"),
    ("film", "city", "china"),
    ("was", "is not", "is very"),
    ("red", "of"),
)
ROWS = [
    {"text": " ".join(words) + " . it is red" * (number % 9), "label": words[0]}
    for number, words in enumerate(itertools.product(*WORDS))
]


@pytest.mark.slow  # trains and exports
@pytest.mark.parametrize("long_texts", ["head", "windows"])
def test_predictions_equal_those_of_the_run(run_command, tmp_path, small_model, long_texts):
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    run_command(
        f"finetune classification --train rows.jsonl --eval rows.jsonl --init {small_model} "
        f"--output run --epochs 2 --max-seq-length 16 --batch-size 8 --learning-rate 3e-3 "
        f"--long-texts {long_texts} --calibration temperature "
        "--set finetune.precision=float32 --set finetune.checkpoint_minutes=0"
    )
    run_command("evaluate --model run --data rows.jsonl --output measured")
    run_command("export --run run --output model")
    run_command("evaluate --model model --data rows.jsonl --output measured-export")
    check_exported_predictions(tmp_path / "measured", tmp_path / "measured-export")
    labels = {
        json.loads(line)["predicted_label"]
        for line in (tmp_path / "measured" / "predictions.jsonl").read_text().splitlines()
    }
    assert len(labels) > 1
