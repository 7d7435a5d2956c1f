"""The train job on records small enough to learn by heart."""

import json

import numpy as np
import pytest
from behavior.pretraining_runs import BATCH, LENGTH, RECORDS, VOCAB, encoded, train, write_data

from bert_tf.base.errors import ConfigError, InputError, UsageError
from bert_tf.base.processor import CoreTimes
from bert_tf.training.metrics_log import read_metrics
from bert_tf.weights.model_directory import read_model_directory

pytestmark = pytest.mark.slow  # trains, and compiles the step each time


@pytest.fixture(scope="module")
def learned(data, model_config, tmp_path_factory):
    run = tmp_path_factory.mktemp("learned") / "run"
    keys = {"steps": 250, "learning_rate": 1e-2, "log_every": 10, "eval_every": 125}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CoreTimes, "taken_by_others", lambda self: 0.0)
        return run, *train(data, run, model_config=model_config, **keys)


def test_a_few_records_are_learned_by_heart(learned):
    _, manifest, _ = learned
    assert manifest["metrics"]["eval"]["mlm_accuracy"] == 1.0
    assert manifest["metrics"]["eval"]["nsp_accuracy"] == 1.0
    assert manifest["metrics"]["eval"]["mlm_loss"] < 0.2


def test_the_run_directory_is_whole(learned):
    run, manifest, said = learned
    assert {path.name for path in run.iterdir()} == {
        *("config.yaml", "vocab.txt", "checkpoints", "metrics.jsonl"),
        *("tensorboard", "manifest.json", "best", "arithmetic.json"),
    }
    model = read_model_directory(run)
    assert (model.vocab, model.lowercase, model.task) == (VOCAB, True, None)
    assert manifest["counts"] == {"steps": 250, "examples": 250 * BATCH}
    best = manifest["metrics"]["best"]
    evals = {
        line["step"]: line["mlm_loss"]
        for line in read_metrics(run / "metrics.jsonl")
        if line["split"] == "eval"
    }
    assert evals.keys() == {125, 250}
    assert best == {"step": min(evals, key=evals.get), "mlm_loss": min(evals.values())}
    assert manifest["best_model"]["value"] == best["mlm_loss"]
    assert f"the model of step {best['step']}, with the lowest mlm_loss: " in said
    assert f"--init {run}" in manifest["next"]
    assert manifest["stopped_early"] is None
    perplexity = np.exp(best["mlm_loss"])
    assert manifest["metrics"]["eval"]["perplexity"] == pytest.approx(
        np.exp(manifest["metrics"]["eval"]["mlm_loss"])
    )
    entropy = manifest["metrics"]["eval"]["unigram_entropy"]
    assert f"perplexity {perplexity:.2f}, at step {best['step']}; unigram baseline " in said
    assert 0 < entropy < np.log(len(VOCAB))
    assert "GFLOP/s here" in said
    assert 0 <= manifest["metrics"]["train"]["mfu"] <= 1
    assert "loss: * train  o eval" in said


def test_training_starts_from_the_model_of_a_run(learned, data, tmp_path):
    run, before, _ = learned
    manifest, _ = train(data, tmp_path / "more", init=str(run), steps=1, learning_rate=1e-30)
    for name in ("mlm_loss", "nsp_loss"):
        best = before["metrics"]["best"]["step"]
        [line] = [
            line
            for line in read_metrics(run / "metrics.jsonl")
            if line["split"] == "eval" and line["step"] == best
        ]
        assert manifest["metrics"]["eval"][name] == pytest.approx(line[name], rel=1e-4)


def test_short_sequences_share_rows_and_are_learned_as_well(padded_data, model_config, tmp_path):
    keys = {"steps": 250, "learning_rate": 1e-2, "log_every": 10, "eval_every": 125}
    run = tmp_path / "run"
    manifest, said = train(padded_data, run, model_config=model_config, **keys)
    assert "packing: 2.00 sequences per row, 83.3% of the places filled, 2 rows per step" in said
    assert manifest["packing"] == {
        "sequences_per_row": 2.0, "packing_efficiency": 0.8333, "rows_per_step": 2,
    }  # fmt: skip
    assert manifest["counts"] == {"steps": 250, "examples": 250 * BATCH}
    assert manifest["metrics"]["eval"]["mlm_accuracy"] == 1.0
    line = [line for line in read_metrics(run / "metrics.jsonl") if line["split"] == "train"][-1]
    rounding = 0.05 + 10 * 0.0005  # of tokens, and of 10 times the examples
    assert line["tokens_per_second"] == pytest.approx(
        10 * line["examples_per_second"], abs=1.01 * rounding
    )


def test_without_eval_records_the_last_model_is_the_best(model_config, tmp_path):
    """The run has its own seed, any whole number, and its own rates of dropout."""
    data = write_data(tmp_path / "data", eval_records=0)
    keys = {"steps": 1, "seed": 2**70, "attention_probs_dropout_prob": 0.5}
    manifest, said = train(data, tmp_path / "run", model_config=model_config, **keys)
    assert manifest["config"]["seed"] == 2**70
    assert "has no eval shards, so nothing is evaluated and best/ is the last model" in said
    assert manifest["metrics"]["eval"] is None
    assert "the model of the last step (1); there was no evaluation to choose by" in said
    config = read_model_directory(tmp_path / "run").config
    assert config.hidden_size == 16
    assert (config.hidden_dropout_prob, config.attention_probs_dropout_prob) == (0.1, 0.5)


def test_a_run_without_progress_stops_early(data, model_config, tmp_path):
    keys = {"learning_rate": 1e-30, "eval_every": 2, "early_stop_evals": 2, "seed": -1}
    manifest, said = train(data, tmp_path / "run", model_config=model_config, **keys)
    assert manifest["config"]["seed"] == -1
    assert manifest["counts"]["steps"] == 6
    assert manifest["stopped_early"] == "no better evaluation in 2 since step 2"
    assert "stopped early at step 6: no better evaluation in 2 since step 2" in said
    empty = write_data(tmp_path / "empty", eval_records=0)
    with pytest.raises(UsageError, match=r"early_stop_evals: .* has no eval shards; set it to 0"):
        train(empty, tmp_path / "other", model_config=model_config, **keys)


def write_pairs(folder):
    """Pairs whose good sentence has a pair of words that the records never have together."""
    path = folder / "pairs.jsonl"
    rows = [
        {"sentence_good": f"word{n} word{n + 1}", "sentence_bad": f"word{n + 1} word{n}"}
        for n in range(0, 20, 2)
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def test_minimal_pairs_are_measured_and_choose_the_best_model(data, model_config, tmp_path):
    run = tmp_path / "run"
    keys = {"eval_likelihood": str(write_pairs(tmp_path)), "selection_metric": "pair_accuracy"}
    manifest, said = train(
        data, run, model_config=model_config, steps=6, eval_every=2, learning_rate=1e-2, **keys
    )
    lines = [line for line in read_metrics(run / "metrics.jsonl") if line["split"] == "eval"]
    accuracies = {line["step"]: line["pair_accuracy"] for line in lines}
    assert accuracies.keys() == {2, 4, 6}
    assert all(0 <= value <= 1 for value in accuracies.values())
    best = manifest["best_model"]
    assert best["metric"] == "pair_accuracy"
    assert best["value"] == accuracies[best["step"]]
    assert "last pair accuracy" in said
    assert "eval_likelihood" in {entry["key"] for entry in manifest["inputs"]}


def test_pairs_with_a_key_missing_are_refused_before_training(data, model_config, tmp_path):
    path = tmp_path / "pairs.jsonl"
    path.write_text('{"sentence_good": "a", "sentence_bd": "b"}\n')
    with pytest.raises(InputError, match="pairs.jsonl:1: has no key 'sentence_bad'"):
        train(data, tmp_path / "run", model_config=model_config, eval_likelihood=str(path))
    assert not (tmp_path / "run" / "checkpoints").exists()


def test_an_unmeasured_selection_metric_is_refused(data, model_config, tmp_path):
    with pytest.raises(ConfigError, match=r"selection_metric: 'pair_accuracy' is not measured"):
        train(data, tmp_path / "run", model_config=model_config, selection_metric="pair_accuracy")


@pytest.fixture(scope="module")
def domains(tmp_path_factory):
    """Return records of an old and of a new domain."""
    folder = tmp_path_factory.mktemp("domains")
    return write_data(folder / "old"), write_data(folder / "new")


def test_gain_and_forgetting_are_measured_beside_the_model_of_init(
    learned, domains, data, tmp_path
):
    run, *_ = learned
    old, new = domains
    keys = {"init": str(run), "eval": (f"old={old}", f"new={new}"), "learning_rate": 1e-2}
    manifest, said = train(
        data, tmp_path / "more", steps=4, eval_every=2, selection_metric="new_mlm_loss", **keys
    )
    lines = [
        line
        for line in read_metrics(tmp_path / "more" / "metrics.jsonl")
        if line["split"] == "eval"
    ]
    assert [line["step"] for line in lines] == [2, 4]
    for line in lines:
        # Both have the same records, as does the run itself.
        assert line["old_mlm_loss"] == pytest.approx(line["mlm_loss"], rel=1e-5)
        assert line["new_mlm_loss_change"] == line["old_mlm_loss_change"]
    before = lines[0]["old_mlm_loss"] - lines[0]["old_mlm_loss_change"]
    assert f"before training: old_mlm_loss {before:.4f}" in said
    assert lines[1]["old_mlm_loss"] - lines[1]["old_mlm_loss_change"] == pytest.approx(before)
    assert "since the model of --init" in said
    assert manifest["best_model"]["metric"] == "new_mlm_loss"
    assert {"eval.old", "eval.new"} <= {entry["key"] for entry in manifest["inputs"]}


def test_a_run_that_forgets_stops_and_stays_stopped(learned, domains, data, tmp_path):
    """At this learning rate everything is forgotten within a few steps."""
    run, *_ = learned
    keys = {"init": str(run), "eval": (f"old={domains[0]}",), "learning_rate": 1.0}
    keys |= {"steps": 20, "eval_every": 2, "max_forgetting": 0.5, "warmup_proportion": 0.0}
    manifest, said = train(data, tmp_path / "lost", **keys)
    assert manifest["counts"]["steps"] < 20
    assert "above that before training, more than max_forgetting, 0.5" in manifest["stopped_early"]
    assert "forgotten since the model of --init" in said


@pytest.mark.parametrize(
    ("keys", "fault"),
    [
        ({"eval": ("old",)}, "expected NAME=DIRECTORY"),
        ({"eval": ("o-d=x",)}, "expected NAME=DIRECTORY"),
        ({"eval": ("a=x", "a=y")}, "has the name 'a' twice"),
        ({"max_forgetting": 0.5}, "max_forgetting: compares the sets of --eval"),
        ({"selection_metric": "old_mlm_loss"}, "selection_metric: 'old_mlm_loss' is not measured"),
    ],
)
def test_faulty_sets_are_refused_in_a_line(data, model_config, tmp_path, keys, fault):
    with pytest.raises(ConfigError, match=fault) as raised:
        train(data, tmp_path / "run", model_config=model_config, **keys)
    assert "\n" not in str(raised.value)


def test_sets_that_cannot_be_measured_are_refused(data, model_config, tmp_path):
    without = write_data(tmp_path / "without", eval_records=0)
    other = write_data(tmp_path / "other", vocab=[*VOCAB[:-1], "another"])
    for folder, fault in ((without, "has no eval shards"), (other, "another vocabulary or casing")):
        with pytest.raises(UsageError, match=rf"^--eval set={folder}: .*{fault}"):
            keys = {"model_config": model_config, "eval": (f"set={folder}",)}
            train(data, tmp_path / "run", **keys)


# Data and models that the train job refuses, with what is wrong with them.


def test_sides_that_do_not_fit_are_named(data, model_config, tmp_path):
    wrong = tmp_path / "config.json"
    wrong.write_text(json.dumps({**json.loads(model_config.read_text()), "vocab_size": 31}))
    with pytest.raises(UsageError, match="config.json: vocab_size is 31, .* of 30 entries"):
        train(data, tmp_path / "run", model_config=wrong)
    with pytest.raises(UsageError, match="--batch-size 4 cannot be divided .* use 6"):
        train(data, tmp_path / "run", model_config=model_config, gradient_accumulation_steps=3)
    with pytest.raises(UsageError, match="--data .*: is a file; give a folder made by "):
        train(wrong, tmp_path / "run", model_config=model_config)
    with pytest.raises(UsageError, match="--data .*: no such folder"):
        train(tmp_path / "nothing", tmp_path / "run", model_config=model_config)
    other = write_data(tmp_path / "other")
    (other / "vocab.txt").write_text("\n".join([*VOCAB[:-1], "another"]) + "\n")
    with pytest.raises(UsageError, match="not the vocabulary that the records in"):
        train(other, tmp_path / "run", model_config=model_config)


def damage(path, records, *, is_flipped):
    """Flips a bit of the last record, or puts records of another length behind all others."""
    content = bytearray(path.read_bytes())
    content[-20] ^= is_flipped
    path.write_bytes(bytes(content) + (b"" if is_flipped else encoded(records, LENGTH + 1)))


@pytest.mark.parametrize(("shard", "is_flipped"), [("eval-0", True), ("train-0", False)])
def test_the_shard_and_record_that_cannot_be_read_are_named(
    shard, is_flipped, model_config, tmp_path
):
    data = write_data(tmp_path / "data")
    damage(data / shard, RECORDS, is_flipped=is_flipped)
    expected = (
        f"{RECORDS - 1} is damaged" if is_flipped else f"{RECORDS} does not match the manifest"
    )
    keys = {"model_config": model_config, "batch_size": 1, "packing": "off", "steps": 24}
    with pytest.raises(InputError, match=f"{shard}: record {expected}"):
        train(data, tmp_path / "run", **keys)
