"""Help lists what most people need first, and all keys where it is asked to."""

import dataclasses
import re

import pytest

from bert_tf.config.sections import SECTIONS
from pipeline.cli.main import COMMANDS

OTHERS = ("init", "try", "inspect", "report", "verify", "lineage", "schema", "demo", "doctor")
JOB_COMMANDS = [name for name in COMMANDS if name not in OTHERS]


@pytest.mark.parametrize("name", JOB_COMMANDS)
@pytest.mark.parametrize("flag", ["--help", "--help-all"])
def test_help_lists_input_output_and_model_first_within_100_columns(name, flag, help_of):
    shown = help_of(name, flag)
    titles = [line for line in shown.splitlines() if re.fullmatch(r"[A-Z].*:", line)]
    assert titles[0] == "Input, output and model:"
    assert titles[-1] == "General:" or flag == "--help-all"
    first = shown.partition("Input, output and model:")[2].partition("\n\n")[0]
    assert re.findall(r"^  (\S+)", first, re.M)[-1] == "--output"
    assert not [line for line in shown.splitlines() if len(line) > 100]


@pytest.mark.parametrize(
    ("name", "sections"), [("train", ["train", "storage"]), ("score", ["score", "runner"])]
)
def test_help_all_adds_the_keys_without_a_flag(name, sections, help_of):
    short, long = help_of(name, "--help"), help_of(name, "--help-all")
    keys = [
        f"{section}.{field.name}"
        for section in sections
        for field in dataclasses.fields(SECTIONS[section])
        if field.metadata["advanced"]
    ]
    assert keys
    assert f"Use --help-all to list {len(keys)} more keys, for --config and --set." in short
    assert not [key for key in keys if key in short]
    assert not [key for key in keys if f"\n  {key}" not in long]
    assert "Use --help-all" not in long


def test_help_all_of_a_command_without_further_keys_is_its_help(help_of):
    assert help_of("export", "--help-all") == help_of("export", "--help")
