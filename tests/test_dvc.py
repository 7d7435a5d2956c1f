"""The stages of deploy/dvc.yaml: commands that can be typed, and all that they read and write."""

import re
import shlex
import types
from pathlib import Path

import pytest
import yaml

from pipeline.cli import command as cli_command
from pipeline.cli.main import bert_pipeline

FILE = Path(__file__).parents[1] / "deploy/dvc.yaml"
RAW = {"corpus", "train.csv", "dev.csv", "new.csv"}
READS = ("input", "vocab", "data", "train", "eval", "init", "run", "model")


def interpolated(value, variables):
    """Fill `vars` into texts, lists and objects, as DVC does it."""
    if isinstance(value, str):
        return re.sub(r"\$\{(\w+)\}", lambda found: str(variables[found[1]]), value)
    if isinstance(value, list):
        return [interpolated(item, variables) for item in value]
    if isinstance(value, dict):
        return {key: interpolated(item, variables) for key, item in value.items()}
    return value


def stages():
    document = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return interpolated(document["stages"], document["vars"][0])


def paths(stage, key):
    return {next(iter(item)) if isinstance(item, dict) else item for item in stage[key]}


def section_of(command_line, monkeypatch):
    """Return the first section that the job of a command line is given."""
    given = []
    job = types.SimpleNamespace(run=lambda *sections: given.append(sections) or {})
    imports = types.SimpleNamespace(import_module=lambda name: job)
    monkeypatch.setattr(cli_command, "importlib", imports)
    monkeypatch.setattr(cli_command, "check_request", lambda *request, **options: None)
    program, name, *arguments = shlex.split(command_line)
    assert program == "bert-pipeline"
    command = bert_pipeline.get_command(None, name)
    with command.make_context(name, arguments) as context:
        assert command.invoke(context) == 0
    return given[0][0]


@pytest.mark.parametrize("name", stages())
def test_a_stage_names_what_its_command_reads_and_writes(name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # where no file of the environment's is
    stage = stages()[name]
    assert stage["cmd"].startswith(f"bert-pipeline {name} ")
    section = section_of(stage["cmd"], monkeypatch)
    read = set()
    for key in READS:
        value = getattr(section, key, None)
        read |= {value} if isinstance(value, str) else set(value or ())
    assert {path.removesuffix("/*") for path in read} == paths(stage, "deps")
    written = paths(stage, "outs")
    assert section.output in written
    assert written - {section.output} <= {f"{section.output}.manifest.json"}


def test_every_stage_reads_raw_files_or_what_an_earlier_one_writes():
    there = set(RAW)
    for stage in stages().values():
        assert paths(stage, "deps") <= there
        assert not paths(stage, "outs") & there
        there |= paths(stage, "outs")
    assert list(stages()) == ["vocab", "preprocess", "train", "finetune", "export", "score"]
