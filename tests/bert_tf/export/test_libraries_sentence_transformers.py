"""The folder for sentence-transformers; tests/parity loads one with the library."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from bert_tf.base.console import Console
from bert_tf.base.errors import ConfigError
from bert_tf.config.embedding_recipe import RAW_CLS
from bert_tf.config.section import build_section
from bert_tf.config.sections import ExportConfig
from bert_tf.export.registry import recognize_format
from bert_tf.weights.sentence_transformers import read_recipe
from pipeline.jobs import exporting
from pipeline.outputs.job_spec import RunOptions

MODELS = Path(__file__).parents[2] / "golden" / "models"


def export(source: str, output: Path, **values) -> dict:
    given = {"run": str(MODELS / source), "output": str(output), "format": "sentence-transformers"}
    config = build_section(ExportConfig, {**given, **values})
    return exporting.run(config, RunOptions(console=Console(io.StringIO())))


def test_the_folder_has_the_modules_and_their_files(tmp_path):
    manifest = export("encoder", tmp_path / "m", pooling="max", normalize=True)
    assert manifest["notes"] == []
    assert recognize_format(tmp_path / "m").name == "sentence-transformers"
    modules = json.loads((tmp_path / "m" / "modules.json").read_text())
    assert [(each["path"], each["type"]) for each in modules] == [
        ("", "sentence_transformers.models.Transformer"),
        ("1_Pooling", "sentence_transformers.models.Pooling"),
        ("2_Normalize", "sentence_transformers.models.Normalize"),
    ]
    pooling = json.loads((tmp_path / "m" / "1_Pooling" / "config.json").read_text())
    assert pooling == {
        "word_embedding_dimension": 8,
        "pooling_mode_mean_tokens": False,
        "pooling_mode_cls_token": False,
        "pooling_mode_max_tokens": True,
    }
    assert json.loads((tmp_path / "m" / "sentence_bert_config.json").read_text()) == {
        "max_seq_length": 24,
        "do_lower_case": False,
    }
    sums = (tmp_path / "m" / "SHA256SUMS").read_text()
    assert "  1_Pooling/config.json\n" in sums
    card = (tmp_path / "m" / "README.md").read_text()
    assert 'SentenceTransformer("THIS_FOLDER")' in card
    assert RAW_CLS in card
    assert manifest["next"].startswith(f"bert-pipeline embed --model {tmp_path / 'm'}")


def test_a_head_is_left_out_and_the_encoder_stays(tmp_path):
    manifest = export("pretraining", tmp_path / "m")
    assert manifest["notes"] == [
        "The model's head is left out; vectors are made of the encoder's states."
    ]
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    assert config["architectures"] == ["BertModel"]
    source = load_file(MODELS / "pretraining" / "model.safetensors")
    written = load_file(tmp_path / "m" / "model.safetensors")
    assert not [name for name in written if name.startswith("cls.")]
    for name, value in written.items():
        theirs = source[name if name in source else f"bert.{name}"]
        np.testing.assert_array_equal(value, theirs)


def test_raw_cls_is_noted_and_a_recipe_is_kept(tmp_path):
    manifest = export("encoder", tmp_path / "cls", pooling="cls")
    assert manifest["notes"] == [RAW_CLS]
    assert read_recipe(tmp_path / "cls", max_positions=24).is_raw_cls
    again = export("encoder", tmp_path / "again", run=str(tmp_path / "cls"))
    assert again["notes"] == [RAW_CLS]
    assert read_recipe(tmp_path / "again", max_positions=24).pooling == "cls"


def test_a_pooling_is_for_formats_that_state_one():
    with pytest.raises(ConfigError, match="pooling: does not apply to --format huggingface; it is"):
        build_section(
            ExportConfig, {"run": "r", "output": "m", "format": "huggingface", "pooling": "max"}
        )
