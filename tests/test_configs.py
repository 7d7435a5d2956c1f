"""Every ready YAML loads, and every section's defaults are allowed values."""

import dataclasses
from pathlib import Path

import pytest

from bert_tf.config.bert import SIZES, sized_config
from bert_tf.config.bert_file import read_bert_document
from bert_tf.config.plain_yaml import read_yaml, yaml_text
from bert_tf.config.resolve import read_yaml_sections
from bert_tf.config.section import build_section, plain_values
from bert_tf.config.sections import SECTIONS
from bert_tf.tasks.registry import TASKS

CONFIGS = Path(__file__).parent.parent / "configs"
PLACEHOLDERS = {"train": {"data": "data", "output": "run", "size": "tiny"}}


def required_values(section):
    """Return a value for each required key, so that a partial YAML can be built."""
    values = {}
    for field in dataclasses.fields(section):
        if field.metadata["required"]:
            values[field.name] = (field.metadata["choices"] or ["x"])[0]
    return values


@pytest.mark.parametrize("path", sorted(CONFIGS.rglob("*.yaml")), ids=lambda path: path.stem)
def test_yaml_builds_its_sections_and_shows_a_command(path):
    assert path.read_text(encoding="utf-8").startswith("# bert-pipeline "), "no command on top"
    sections = read_yaml_sections(str(path))
    assert sections
    for name, values in sections.items():
        defaults = {**required_values(SECTIONS[name]), **PLACEHOLDERS.get(name, {})}
        if any(values.get(key) for key in ("model_config", "init")):
            defaults.pop("size", None)
        if values.get("phases"):
            defaults.pop("data")
        section = TASKS[values["task"]].options if "task" in values else SECTIONS[name]
        build_section(section, {**defaults, **values})


@pytest.mark.parametrize("path", sorted(CONFIGS.rglob("*.json")), ids=lambda path: path.stem)
def test_model_json_is_a_published_size(path):
    config = read_bert_document(path).config
    assert config == sized_config(path.stem, config.vocab_size)


@pytest.mark.parametrize(
    "section",
    [*SECTIONS.values(), *(task.options for task in TASKS.values())],
    ids=lambda section: section.__name__,
)
def test_defaults_are_allowed_values(section):
    name = section.section_name
    built = build_section(section, {**required_values(section), **PLACEHOLDERS.get(name, {})})
    assert build_section(section, built.as_dict()) == built
    assert plain_values(section, read_yaml(yaml_text(built.as_dict()))) == built.as_dict()


@pytest.mark.parametrize(
    ("size", "parameters"),
    # Millions of encoder parameters as published (google-research/bert, README; Turc et al. 2019)
    [("tiny", 4.4), ("mini", 11.3), ("small", 29.1), ("medium", 41.7), ("base", 110.1)],
)
def test_sizes_are_the_published_ones(size, parameters):
    config = sized_config(size, 30_522)
    hidden, inner = config.hidden_size, config.intermediate_size
    embeddings = (config.vocab_size + config.max_position_embeddings + 2) * hidden + 2 * hidden
    layer = 4 * (hidden * hidden + hidden) + 2 * hidden * inner + inner + hidden + 4 * hidden
    pooler = hidden * hidden + hidden
    total = embeddings + config.num_hidden_layers * layer + pooler
    assert total / 1e6 == pytest.approx(parameters, rel=0.02)
    assert SIZES[size]["num_hidden_layers"] == config.num_hidden_layers
