"""The registry of formats: recognized folders, and the values that a config may have."""

import pytest

from bert_tf.base.errors import ConfigError
from bert_tf.config.section import build_section
from bert_tf.config.sections import ExportConfig
from bert_tf.export.registry import FORMATS, FormatEntry, recognize_format

GIVEN = {"run": "r", "output": "m"}


def test_a_folder_is_known_by_its_files(tmp_path):
    assert recognize_format(tmp_path) is None
    (tmp_path / "config.json").touch()
    assert recognize_format(tmp_path) is None
    (tmp_path / "model.safetensors").touch()
    assert recognize_format(tmp_path).name == "huggingface"
    (tmp_path / "saved_model.pb").touch()
    assert recognize_format(tmp_path).name == "savedmodel"
    assert recognize_format(tmp_path / "absent") is None


def test_a_registered_format_is_a_value_of_the_config(monkeypatch):
    entry = FormatEntry(
        name="toy",
        implementation="toy:Toy",
        title="toy",
        config_file="toy.json",
        model_file="toy.bin",
    )
    with pytest.raises(
        ConfigError, match="expected one of savedmodel, onnx, .*, huggingface, .*, got 'toy'"
    ):
        build_section(ExportConfig, {**GIVEN, "format": "toy"})
    monkeypatch.setitem(FORMATS, "toy", entry)
    assert build_section(ExportConfig, {**GIVEN, "format": "toy"}).format == "toy"
    assert build_section(ExportConfig, GIVEN).format == "savedmodel"


@pytest.mark.parametrize(("key", "value"), [("layout", "serving"), ("inputs", "ids")])
def test_what_only_some_formats_follow_is_refused_for_others(key, value):
    given = {**GIVEN, key: value}
    assert getattr(build_section(ExportConfig, given), key) == value
    with pytest.raises(ConfigError, match=f"{key}: does not apply to --format keras-hub; it is"):
        build_section(ExportConfig, {**given, "format": "keras-hub"})
