"""The import-weights job: its outputs; a wrong source leaves nothing."""

import io
import json
from pathlib import Path

import pytest

from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError
from bert_tf.config.sections import ImportWeightsConfig
from bert_tf.tasks.registry import task_from_settings
from bert_tf.weights.model_directory import read_model_directory
from pipeline.jobs.import_weights import run
from pipeline.outputs.job_spec import RunOptions

GOLDEN = Path(__file__).parents[2] / "golden" / "models"


def import_model(source, output, **keys):
    said = io.StringIO()
    config = ImportWeightsConfig(source=str(source), output=str(output), **keys)
    return run(config, RunOptions(console=Console(said))), said.getvalue()


def test_an_encoder_becomes_a_model_to_finetune(tmp_path):
    manifest, said = import_model(GOLDEN / "encoder", tmp_path / "model")
    assert manifest["architecture"] == "BertModel"
    assert manifest["counts"] == {"tensors": 39, "vocab_entries": 40}
    assert manifest["task"] is None
    assert f"--init {tmp_path / 'model'}" in said
    assert json.loads((tmp_path / "model" / "manifest.json").read_text())["next"] in said
    assert read_model_directory(tmp_path / "model").config.vocab_size == 40
    again, said = import_model(GOLDEN / "encoder", tmp_path / "model")
    assert again["already_done"]
    assert "nothing to do" in said


def test_a_model_may_grow_on_import(tmp_path):
    vocab = (GOLDEN / "encoder" / "vocab.txt").read_text()
    (tmp_path / "vocab.txt").write_text(vocab.rstrip("\n") + "\nnewpiece\n")
    manifest, said = import_model(
        GOLDEN / "encoder",
        tmp_path / "model",
        max_position_embeddings=600,
        vocab=str(tmp_path / "vocab.txt"),
    )
    assert manifest["model"]["max_position_embeddings"] == 600
    assert manifest["model"]["vocab_size"] == manifest["counts"]["vocab_entries"] == 41
    assert "interpolated to 600" in said
    assert "1 new entry" in said
    assert read_model_directory(tmp_path / "model").vocab[-1] == "newpiece"


def test_a_classifier_can_be_exported_at_once(tmp_path):
    import_model(GOLDEN / "classification", tmp_path / "model")
    directory = read_model_directory(tmp_path / "model")
    task = task_from_settings(directory.task, str(directory.path))
    assert task.labels == ("LABEL_0", "LABEL_1", "LABEL_2")
    assert task.max_seq_length == directory.config.max_position_embeddings


def test_a_wrong_source_leaves_nothing_behind(tmp_path):
    for source in (tmp_path / "nothing", tmp_path):
        with pytest.raises(UsageError, match="no such folder|no BERT model"):
            import_model(source, tmp_path / "out")
    assert not (tmp_path / "out").exists()
