"""The schema accepts the configs of the repository, and refuses the values that resolving does."""

from pathlib import Path

import jsonschema
import pytest
import yaml

from bert_tf.config.json_schema import config_schema
from bert_tf.config.sections import SECTIONS
from bert_tf.tasks.registry import TASKS

CONFIGS = sorted((Path(__file__).parents[3] / "configs").rglob("*.yaml"))
SCHEMA = config_schema(
    SECTIONS, {"finetune": ("task", {name: task.options for name, task in TASKS.items()})}
)
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def is_valid(text):
    return VALIDATOR.is_valid(yaml.safe_load(text))


def test_it_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_ready_configs_are_valid(path):
    VALIDATOR.validate(yaml.safe_load(path.read_text()))


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("train: {steps: 10}", True),
        ("train: {stepz: 10}", False),
        ("train: {steps: ten}", False),
        ("train: {steps: 0}", False),
        ("trains: {}", False),
        ("vocab: {header: no}", True),
        ("score: {engine: openvino}", True),
        ("score: {engine: openvinos}", False),
        ("score: {text_column: 2024}", True),
        ("finetune: {task: classification, label_column: no}", True),
        ("finetune: {epochs: 2}", True),
        ("finetune: {task: qa, doc_stride: 64}", True),
        ("finetune: {task: classification, doc_stride: 64}", False),
        ("finetune: {task: chess}", False),
    ],
)
def test_keys_and_values_are_checked(text, valid):
    assert is_valid(text) == valid


def test_every_default_is_valid():
    for name, section in SECTIONS.items():
        values = {key: value for key, value in section().as_dict().items() if value is not None}
        VALIDATOR.validate({name: values})
