"""The entropy against SciPy's, and a sentence for each curve that goes wrong."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from bert_tf.data.records.dataset_info import PretrainingData
from bert_tf.pretraining.findings import plan_finding, run_findings, unigram_entropy

ENTROPY = 6.0


@given(st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3), min_size=1), st.data())
def test_the_entropy_is_that_of_the_targets(rows, data):
    ids = np.array(rows)
    weights = np.array(
        [[data.draw(st.sampled_from([0.0, 1.0])) for _ in row] for row in rows], np.float32
    )
    batches = [
        {"masked_lm_ids": ids[n : n + 2], "masked_lm_weights": weights[n : n + 2]}
        for n in range(0, len(ids), 2)
    ]
    targets = ids[weights > 0]
    expected = stats.entropy(np.bincount(targets)) if targets.size else 0.0
    assert unigram_entropy(batches) == pytest.approx(expected, abs=1e-9)


def test_a_model_of_frequencies_has_this_loss():
    """Cross-entropy of the constant prediction of the targets' own frequencies."""
    ids = np.random.default_rng(1).zipf(1.5, (50, 20)) % 100
    found = unigram_entropy([{"masked_lm_ids": ids, "masked_lm_weights": np.ones(ids.shape)}])
    frequencies = np.bincount(ids.ravel(), minlength=100) / ids.size
    assert found == pytest.approx(-np.log(frequencies[ids.ravel()]).mean())


def curve(evals, trains, *, steps=20_000, **more):
    """Metrics with evaluations and train lines spread evenly over the steps."""
    lines = []
    for split, losses in (("train", trains), ("eval", evals)):
        for step, loss in zip(
            np.linspace(steps / len(losses), steps, len(losses)), losses, strict=True
        ):
            lines.append({"step": int(step), "split": split, "mlm_loss": loss, **more})
            if split == "eval":
                lines[-1]["unigram_entropy"] = ENTROPY
    return sorted(lines, key=lambda line: line["step"])


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (
            curve([6.2, 6.0, 5.98], [6.2, 6.0, 5.9]),
            ["no better than the unigram baseline", "[UNK]"],
        ),
        (curve([6.9], [6.9], steps=200), ["no better than", "200 were made; train longer"]),
        # BERT-tiny at 1e-3 without bias correction, a warmup of 20 steps: 6.93, entropy 6.76.
        (curve([6.21, 6.17], [6.2, 6.2], steps=3_134), ["still above", "collapsed", "warmup"]),
        (curve([6.3], [6.3], steps=900), ["no better than", "900 were made; train longer"]),
        (curve([5.0, 4.0, 4.5], [5.0, 4.0, 3.0]), ["rose from 4.00 at", "memorizes"]),
        (curve([5.0, 4.0, 6.5], [5.0, 4.0, 6.5]), ["rose from 4.00 at", "diverged"]),
        (
            [line for line in curve([7.5], [6.9, 7.5]) if line["split"] == "train"],
            ["loss 7.50 of training is above that of guessing (ln 1,000 = 6.91)", "learning rate"],
        ),
        (curve([4.0, 3.9], [3.2, 3.0]), ["3.00 in training and 3.90", "repeat too often"]),
        (
            curve([4.0, 3.0], [4.0, 3.0], nsp_loss=0.6931),
            ["nsp_loss 0.693 is no better than"],
        ),
    ],
)
def test_what_goes_wrong_is_said_with_its_cause(lines, words):
    (sentence,) = run_findings(lines, vocab_size=1000)
    assert not [word for word in words if word not in sentence]


@pytest.mark.parametrize(
    "lines",
    [
        curve([5.0, 4.0, 3.0], [5.0, 4.0, 2.9], nsp_loss=0.1),
        curve([3.0], [3.0], sop_loss=0.5),
        [line for line in curve([6.5], [6.5]) if line["split"] == "train"],
        [],
    ],
)
def test_a_curve_as_it_should_be_has_no_findings(lines):
    assert run_findings(lines, vocab_size=1000) == []


def test_earlier_phases_are_not_compared():
    lines = curve([3.0, 3.1, 4.0, 3.5], [3.0, 3.1, 4.0, 3.5], steps=4000)
    assert run_findings(lines, vocab_size=1000)
    assert run_findings(lines, vocab_size=1000, first_step=2000) == []


def records(examples, *, masking="dynamic", passes=10):
    """Record as a manifest of `preprocess` describes them."""
    fields = {
        "max_seq_length": 128,
        "max_predictions_per_seq": 20,
        "vocab_size": 100,
        "vocab_sha256": "",
        "lowercase": True,
        "masking": masking,
        "train_shards": ["train-0"],
    }
    manifest = {
        "records": fields,
        "config": {"masking": masking, "dupe_factor": passes},
        "counts": {"examples": {"train": examples, "eval": 1}},
    }
    return PretrainingData.from_manifest("data", manifest)


@pytest.mark.parametrize(
    ("phases", "epochs", "fewer"),
    [
        ([(records(3200), 10_000, 32)], None, None),  # 100 epochs
        ([(records(1600), 10_000, 32)], "200", "2000"),
        ([(records(16_000, masking="token"), 10_000, 32)], "200", "2000"),  # of 10 passes each
        ([(records(1600), 5_000, 32), (records(400), 5_000, 16)], "300", "1333"),
        ([(records(1600), 5_000, 32), (records(0), 5_000, 16)], None, None),
    ],
)
def test_a_plan_of_many_epochs_is_said_with_what_to_do(phases, epochs, fewer):
    found = plan_finding(phases)
    if epochs is None:
        assert found is None
    else:
        assert f"read this text about {epochs} times" in found and f"--steps {fewer})" in found
        assert ("masking=dynamic" in found) == (phases[0][0].masking == "token")
