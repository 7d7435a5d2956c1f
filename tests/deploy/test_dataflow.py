"""The flex template: its parameters are those that its launcher reads."""

import importlib.util
import json
from pathlib import Path

import pytest

from bert_tf.config.section import build_section
from bert_tf.config.sections import PreprocessConfig, RunnerConfig
from pipeline.beam.runner import pipeline_options

FOLDER = Path(__file__).parents[2] / "deploy" / "dataflow"
GIVEN = {"input": "gs://b/corpus/*", "vocab": "gs://b/vocab.txt", "output": "gs://b/data"}
# As the launcher adds them, in its own order.
OPTIONS = [
    "--runner=DataflowRunner",
    "--project=my-project",
    "--region=europe-west4",
    "--temp_location=gs://b/temp",
    "--template_location=gs://b/staging/template_launches/1/job_object",
    "--sdk_container_image=europe-docker.pkg.dev/p/bert/bert-pipeline-dataflow:0.1.0",
]


@pytest.fixture(scope="module")
def launch():
    spec = importlib.util.spec_from_file_location("launch", FOLDER / "launch.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_parameters_make_a_config_of_preprocess(launch):
    parameters = [f"--{name}={value}" for name, value in GIVEN.items()]
    settings = "--settings={max_seq_length: 512, masking: dynamic}"
    config = launch.read_config([*OPTIONS[:3], *parameters, settings, *OPTIONS[3:]])
    preprocess = build_section(PreprocessConfig, config["preprocess"])
    assert (preprocess.input, preprocess.output) == (("gs://b/corpus/*",), "gs://b/data")
    assert (preprocess.max_seq_length, preprocess.masking) == (512, "dynamic")
    runner = build_section(RunnerConfig, config["runner"])
    name, options = pipeline_options(runner, input_bytes=1)
    assert name == "DataflowRunner"
    assert options == [*OPTIONS[1:], "--sdk_location=container"]


def test_settings_may_be_left_empty(launch):
    parameters = [f"--{name}={value}" for name, value in GIVEN.items()]
    config = launch.read_config([*parameters, "--settings="])
    assert config == launch.read_config(parameters)


def test_settings_that_are_none_are_refused(launch, capsys):
    with pytest.raises(SystemExit):
        launch.read_config(
            [*(f"--{name}={value}" for name, value in GIVEN.items()), "--settings=a"]
        )
    assert "--settings=a: expected a YAML mapping" in capsys.readouterr().err


def test_the_specification_has_the_parameters_that_are_read():
    spec = json.loads((FOLDER / "template.json").read_text())
    parameters = {each["name"]: each for each in spec["metadata"]["parameters"]}
    assert parameters.keys() == {*GIVEN, "settings", "sdk_container_image"}
    assert [name for name, each in parameters.items() if each.get("isOptional")] == ["settings"]
    assert spec["sdkInfo"] == {"language": "PYTHON"}
