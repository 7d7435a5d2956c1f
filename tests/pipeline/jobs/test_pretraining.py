"""The train job on records small enough to learn by heart."""

import io
import json
import os
import signal

import numpy as np
import pytest

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError, StoppedEarly, UsageError
from bert_tf.config.section import build_section
from bert_tf.config.sections import TrainConfig
from bert_tf.data.records.schema import encode_records
from bert_tf.data.text.vocab_file import vocab_fingerprint
from bert_tf.pretraining import evaluation as training
from bert_tf.training.run.metrics_log import read_metrics
from bert_tf.weights.model_directory import read_model_directory
from pipeline.jobs import pretraining
from pipeline.outputs.job import RunOptions
from pipeline.outputs.manifest import write_manifest

pytestmark = pytest.mark.slow  # trains, and compiles the step each time

VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"word{n}" for n in range(25))]
LENGTH, PREDICTIONS, RECORDS = 12, 2, 8
BATCH = 4


def make_features(seed, count):
    """Rows `[CLS] a … [SEP] b … [SEP]`; the type of the second segment tells its label."""
    generator = np.random.default_rng(seed)
    ids = generator.integers(5, len(VOCAB), (count, LENGTH)).astype(np.int32)
    ids[:, 0], ids[:, 5], ids[:, 9] = 2, 3, 3
    mask = np.broadcast_to(np.arange(LENGTH, dtype=np.int32) < 10, ids.shape).astype(np.int32)
    positions = np.tile(np.array([2, 7], np.int32), (count, 1))
    masked = np.take_along_axis(ids, positions, axis=1)
    np.put_along_axis(ids, positions, 4, axis=1)
    return {
        "input_word_ids": ids * mask,
        "input_mask": mask,
        "input_type_ids": np.where(np.arange(LENGTH) > 5, mask, 0).astype(np.int32),
        "masked_lm_positions": positions,
        "masked_lm_ids": masked,
        "masked_lm_weights": np.ones((count, PREDICTIONS), np.float32),
        "next_sentence_labels": generator.integers(0, 2, (count, 1)).astype(np.int32),
    }


def encoded(count, length):
    """Framed records, padded to a length."""
    features = make_features(1, count)
    for name in ("input_word_ids", "input_mask", "input_type_ids"):
        features[name] = np.pad(features[name], [(0, 0), (0, length - LENGTH)])
    return encode_records(features)[0].tobytes()


def write_data(folder, *, eval_records=RECORDS, length=LENGTH, vocab=VOCAB):
    folder.mkdir()
    (folder / "train-0").write_bytes(encoded(RECORDS, length))
    if eval_records:
        (folder / "eval-0").write_bytes(encoded(eval_records, length))
    (folder / "vocab.txt").write_text("\n".join(vocab) + "\n")
    records = {
        "max_seq_length": length,
        "max_predictions_per_seq": PREDICTIONS,
        "feature_names": "reference",
        "compression": "none",
        "vocab_size": len(vocab),
        "vocab_sha256": vocab_fingerprint(vocab),
        "lowercase": True,
        "train_shards": ["train-0"],
        "eval_shards": ["eval-0"] if eval_records else [],
    }
    write_manifest(folder, {"command": "preprocess", "records": records})
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_data(tmp_path_factory.mktemp("records") / "data")


@pytest.fixture(scope="module")
def model_config(tmp_path_factory):
    path = tmp_path_factory.mktemp("config") / "config.json"
    path.write_text(
        json.dumps(
            {
                "vocab_size": len(VOCAB),
                "hidden_size": 16,
                "num_hidden_layers": 2,
                "num_attention_heads": 2,
                "intermediate_size": 32,
                "max_position_embeddings": 2 * LENGTH,
                "initializer_range": 0.1,
            }
        )
    )
    return path


def train(data, output, *, resume=False, **keys):
    values = {
        "data": str(data) if data else None,
        "output": str(output),
        "xla": "off",
        "precision": "float32",
        "batch_size": BATCH,
        "steps": 12,
        "log_every": 1,
        "eval_every": 6,
        "checkpoint_minutes": 0.0,
        **{name: str(value) if name == "model_config" else value for name, value in keys.items()},
    }
    console = Console(io.StringIO())
    manifest = pretraining.run(
        build_section(TrainConfig, values), RunOptions(console=console, resume=resume)
    )
    return manifest, console._stream.getvalue()


def losses(run):
    return [
        {name: line[name] for name in ("step", "loss", "mlm_loss", "nsp_loss")}
        for line in read_metrics(run / "metrics.jsonl")
        if line["split"] == "train"
    ]


@pytest.fixture(scope="module")
def learned(data, model_config, tmp_path_factory):
    run = tmp_path_factory.mktemp("learned") / "run"
    keys = {"steps": 250, "learning_rate": 1e-2, "log_every": 10, "eval_every": 125}
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
        *("tensorboard", "manifest.json", "best"),
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
    assert f"perplexity {perplexity:.2f}, at step {best['step']}" in said
    assert "GFLOP/s here" in said
    assert 0 <= manifest["metrics"]["train"]["mfu"] < 1
    assert "loss: * train  o eval" in said


def test_training_goes_on_from_the_model_of_a_run(learned, data, tmp_path):
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


@pytest.fixture(scope="module")
def padded_data(tmp_path_factory):
    """More than half of every row is padding."""
    return write_data(tmp_path_factory.mktemp("padded") / "data", length=2 * LENGTH)


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
    [line, *_] = read_metrics(run / "metrics.jsonl")
    assert line["tokens_per_second"] / line["examples_per_second"] == pytest.approx(10, rel=1e-3)


@pytest.mark.parametrize("packing", ["off", "on"])
def test_an_interrupted_run_ends_with_the_losses_of_one_that_was_not(
    packing, padded_data, model_config, tmp_path, monkeypatch
):
    """Dropout is on, and the interruption falls inside an epoch."""
    data = padded_data
    keep_if_best = training.BestModelKeeper.keep_if_best

    def keep_and_stop(self, found, metrics, notes):
        keep_if_best(self, found, metrics, notes)
        if found["step"] == 3:
            os.kill(os.getpid(), signal.SIGTERM)

    keys = {"model_config": model_config, "eval_every": 3, "packing": packing, "batch_size": 6}
    train(data, tmp_path / "whole", **keys)
    monkeypatch.setattr(training.BestModelKeeper, "keep_if_best", keep_and_stop)
    with pytest.raises(StoppedEarly, match="stopped at step 3 of 12"):
        train(data, tmp_path / "parts", **keys)
    manifest, said = train(data, tmp_path / "parts", resume=True, **keys)
    assert "resumed from" in said
    assert losses(tmp_path / "parts") == losses(tmp_path / "whole")
    assert manifest["counts"]["steps"] == 12


@pytest.mark.parametrize("seed", [-1, 2**31, 2**70])
def test_any_whole_number_is_a_seed(seed, data, model_config, tmp_path):
    keys = {
        "model_config": model_config,
        "steps": 1,
        "seed": seed,
        "attention_probs_dropout_prob": 0.5,
    }
    manifest, _ = train(data, tmp_path / "run", **keys)
    assert manifest["config"]["seed"] == seed
    config = read_model_directory(tmp_path / "run").config
    assert (config.hidden_dropout_prob, config.attention_probs_dropout_prob) == (0.1, 0.5)


def test_more_steps_extend_a_run(data, model_config, tmp_path, monkeypatch):
    """A finished one; one that is killed on the way from there to more; and no other way."""
    keys = {"model_config": model_config, "eval_every": 3, "checkpoint_every": 3}
    run = tmp_path / "run"
    manifest, _ = train(data, run, steps=6, **keys)
    assert manifest["extended_from"] == []
    first = losses(run)

    def kill(self, found, metrics, notes):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(training.BestModelKeeper, "keep_if_best", kill)
        with pytest.raises(MemoryError):
            train(data, run, steps=9, **keys)
    assert not (run / "manifest.json").exists(), "it would vouch for what may have changed"
    manifest, said = train(data, run, steps=12, **keys)
    assert f"{run}: run of fewer steps found; extending it" in said
    assert "extended from 6 to 12 steps: from here on the learning rates of a run of 12" in said
    assert (manifest["config"]["steps"], manifest["counts"]["steps"]) == (12, 12)
    assert manifest["extended_from"] == [6]
    assert losses(run)[:6] == first
    assert [loss["step"] for loss in losses(run)] == [*range(1, 13)]
    with pytest.raises(UsageError, match="steps: 12 then, 6 now, and it cannot be shortened"):
        train(data, run, steps=6, **keys)
    with pytest.raises(UsageError, match=r"seed: 1 then, 2 now\); choose another"):
        train(data, run, steps=20, seed=2, **keys)
    with pytest.raises(UsageError, match="max_minutes: 0.0 then, 5.0 now"):
        train(data, run, steps=20, max_minutes=5, **keys)


def test_without_eval_records_the_last_model_is_the_best(model_config, tmp_path):
    data = write_data(tmp_path / "data", eval_records=0)
    manifest, said = train(data, tmp_path / "run", model_config=model_config, steps=1)
    assert "has no eval shards, so nothing is evaluated and best/ is the last model" in said
    assert manifest["metrics"]["eval"] is None
    assert "the model of the last step (1); nothing was evaluated to choose another" in said
    assert read_model_directory(tmp_path / "run").config.hidden_size == 16


def test_sides_that_do_not_fit_are_named(data, model_config, learned, tmp_path):
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


@pytest.fixture(scope="module")
def phases(tmp_path_factory):
    """Eight updates on short rows, four of smaller batches on rows of twice the length."""
    folder = tmp_path_factory.mktemp("phases")
    return [
        {"data": str(write_data(folder / "short")), "steps": 8},
        {
            "data": str(write_data(folder / "long", length=2 * LENGTH)),
            "steps": 4,
            "batch_size": 2,
            "gradient_accumulation_steps": 2,
        },
    ]


PHASE_KEYS = {"steps": 12, "eval_every": 100, "packing": "off", "ema_decay": 0.9}


@pytest.fixture(scope="module")
def whole(phases, model_config, tmp_path_factory):
    run = tmp_path_factory.mktemp("whole") / "run"
    return run, *train(None, run, phases=phases, model_config=model_config, **PHASE_KEYS)


def test_phases_go_on_with_one_schedule_on_longer_rows(whole):
    run, manifest, said = whole
    assert manifest["counts"] == {"steps": 12, "examples": 8 * BATCH + 4 * 2}
    assert [phase["steps"] for phase in manifest["phases"]] == [8, 4]
    lines = read_metrics(run / "metrics.jsonl")
    rates = [line["learning_rate"] for line in lines if line["split"] == "train"]
    assert rates[1:] == pytest.approx([1e-4 * (12 - step) / 11 for step in range(1, 12)])
    assert [line["step"] for line in lines if line["split"] == "eval"] == [8, 12]
    assert (manifest["metrics"]["best"]["phase"], manifest["metrics"]["best"]["step"]) == (2, 12)
    assert "phase 2: 8 training records; 4 steps of 2 make 1.00 epochs" in said
    assert "phase 2 of 2 from step 8" in said


def test_a_run_stopped_between_phases_ends_as_one_that_was_not(
    whole, phases, model_config, tmp_path, monkeypatch
):
    """To the last bit, averaged weights included."""
    keep_if_best = training.BestModelKeeper.keep_if_best

    def keep_and_stop(self, found, metrics, notes):
        keep_if_best(self, found, metrics, notes)
        if found["step"] == 8:
            os.kill(os.getpid(), signal.SIGTERM)

    keys = {"model_config": model_config, "phases": phases, **PHASE_KEYS}
    monkeypatch.setattr(training.BestModelKeeper, "keep_if_best", keep_and_stop)
    with pytest.raises(StoppedEarly, match="stopped at step 8 of 12"):
        train(None, tmp_path / "parts", **keys)
    train(None, tmp_path / "parts", **keys)
    assert losses(tmp_path / "parts") == losses(whole[0])
    ours, theirs = (read_model_directory(run).tensors for run in (tmp_path / "parts", whole[0]))
    for name in theirs:
        np.testing.assert_array_equal(ours[name], theirs[name])


def test_phases_that_do_not_fit_are_refused(phases, model_config, tmp_path):
    other = write_data(tmp_path / "other", vocab=[*VOCAB[:-1], "another"])
    wrong = [phases[0], {"data": str(other), "steps": 4}]
    with pytest.raises(UsageError, match="made with another vocabulary or casing than those in"):
        train(None, tmp_path / "run", model_config=model_config, phases=wrong)
    odd = [phases[0], {**phases[1], "batch_size": 3}]
    with pytest.raises(UsageError, match="phase 2: --batch-size 3 cannot be divided .* use 4"):
        train(None, tmp_path / "run", model_config=model_config, phases=odd)


def test_a_run_without_progress_stops_early(data, model_config, tmp_path):
    keys = {"learning_rate": 1e-30, "eval_every": 2, "early_stop_evals": 2}
    manifest, said = train(data, tmp_path / "run", model_config=model_config, **keys)
    assert manifest["counts"]["steps"] == 6
    assert manifest["stopped_early"] == "no better evaluation in 2 since step 2"
    assert "stopped early at step 6: no better evaluation in 2 since step 2" in said
    empty = write_data(tmp_path / "empty", eval_records=0)
    with pytest.raises(UsageError, match=r"early_stop_evals: .* has no eval shards; set it to 0"):
        train(empty, tmp_path / "other", model_config=model_config, **keys)


def damage(path, records, *, is_flipped):
    """Flips a bit of the last record, or puts records of another length behind all others."""
    content = bytearray(path.read_bytes())
    content[-20] ^= is_flipped
    path.write_bytes(bytes(content) + (b"" if is_flipped else encoded(records, LENGTH + 1)))


@pytest.mark.parametrize("is_flipped", [True, False])
@pytest.mark.parametrize("shard", ["eval-0", "train-0"])
def test_the_shard_and_record_that_cannot_be_read_are_named(
    shard, is_flipped, model_config, tmp_path
):
    data = write_data(tmp_path / "data")
    damage(data / shard, RECORDS, is_flipped=is_flipped)
    expected = f"{RECORDS - 1} is damaged" if is_flipped else f"{RECORDS} is not as the manifest"
    keys = {"model_config": model_config, "batch_size": 1, "packing": "off", "steps": 24}
    with pytest.raises(InputError, match=f"{shard}: record {expected}"):
        train(data, tmp_path / "run", **keys)
