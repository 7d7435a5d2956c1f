"""The train job with its records and its run on other storage."""

import pytest
from behavior.pretraining_runs import losses, train
from behavior.remote_outputs import forget_process, local_files, stored_files
from memory_storage import FAULTS, FILES

from bert_tf.base.errors import InputError, UsageError
from pipeline.beam.stored_path import path_of
from pipeline.outputs.manifest import read_manifest, write_manifest

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("files")]  # trains

DATA, RUN = "memory://bucket/data", "memory://bucket/run"
MODEL, METRICS = "best/model.safetensors", "metrics.jsonl"


def test_a_run_that_fails_while_it_is_published_resumes(data, model_config, tmp_path):
    """It has the losses, the model and the files of one on this machine."""
    for name, content in local_files(data).items():
        FILES[f"{DATA}/{name}"] = content
    keys = {"model_config": model_config, "eval_every": 3, "checkpoint_every": 3}
    whole, _ = train(data, tmp_path / "run", **keys)
    FAULTS.fails = ("close", 40)
    with pytest.raises(OSError, match="fails on purpose: 'memory://bucket/run/"):
        train(DATA, RUN, **keys)
    assert read_manifest(RUN) is None
    forget_process()
    manifest, said = train(DATA, RUN, **keys)
    assert "resumed from" in said
    assert losses(path_of(RUN)) == losses(tmp_path / "run")
    stored, local = stored_files(RUN), local_files(tmp_path / "run")
    assert stored[MODEL] == local[MODEL]
    working = ("tensorboard/", "config.yaml")
    assert [name for name in sorted(stored) if not name.startswith(working)] == [
        name for name in sorted(local) if not name.startswith(working)
    ]
    for key in ("outputs", "inputs"):
        made, expected = [
            {each["path"]: each["sha256"] for each in document[key] if each["path"] != METRICS}
            for document in (manifest, whole)
        ]
        assert list(made.values()) == list(expected.values())
    forget_process()
    assert train(DATA, RUN, **keys)[0]["already_done"]


def test_records_that_are_not_what_was_written_are_refused(data, model_config, tmp_path):
    for name, content in local_files(data).items():
        FILES[f"{DATA}/{name}"] = content
    outputs = [{"path": "train-0", "sha256": "0" * 64}]
    write_manifest(path_of(DATA), {**read_manifest(DATA), "outputs": outputs})
    with pytest.raises(
        InputError, match="memory://bucket/data/train-0: has changed since it was written"
    ):
        train(DATA, tmp_path / "run", model_config=model_config)
    with pytest.raises(UsageError, match="--data memory://bucket/none: no such folder"):
        train("memory://bucket/none", tmp_path / "run", model_config=model_config)
