"""Command lines that help and documentation show can be typed as they are."""

import re
import shlex
import types
from pathlib import Path

import pytest
from click.testing import CliRunner

from pipeline.cli import command as cli_command
from pipeline.cli.main import COMMANDS, bert_pipeline

ROOT = Path(__file__).parents[3]
DOCUMENTS = [
    *ROOT.glob("*.md"),
    *ROOT.glob("docs/*.md"),
    *ROOT.glob("deploy/**/*.md"),
    *ROOT.glob("configs/**/*.yaml"),
]


def commands_in(text):
    """Command lines at the start of a line, or after the mark of a prompt or comment."""
    names = "|".join(COMMANDS)
    return re.findall(rf"^[ #$]*(bert-pipeline (?:{names})\b.*)$", text.replace("\\\n", " "), re.M)


EXAMPLES = [
    *(
        (f"{name} --help", line)
        for name in COMMANDS
        for line in commands_in(bert_pipeline.get_command(None, name).help)
    ),
    *(
        (str(path.relative_to(ROOT)), line)
        for path in DOCUMENTS
        for line in commands_in(path.read_text(encoding="utf-8"))
    ),
]


def test_every_command_has_an_example():
    assert {shlex.split(line)[1] for _, line in EXAMPLES} == set(COMMANDS)
    shown = {place.removesuffix(" --help") for place, _ in EXAMPLES if place.endswith("--help")}
    assert shown == set(COMMANDS)


@pytest.mark.parametrize(("place", "line"), EXAMPLES, ids=[line for _, line in EXAMPLES])
def test_examples_are_understood(place, line, monkeypatch):
    """Their flags are known, nothing is missing, and every value may be one of its key's."""
    monkeypatch.chdir(ROOT)  # where the ready configs are
    given = []
    job = types.SimpleNamespace(run=lambda *sections: given.append(sections) or {})
    imports = types.SimpleNamespace(import_module=lambda name: job)
    monkeypatch.setattr(cli_command, "importlib", imports)
    monkeypatch.setattr(cli_command, "check_request", lambda *request, **options: None)
    name, *arguments = shlex.split(line, comments=True)[1:]
    command = bert_pipeline.get_command(None, name)
    with command.make_context(name, arguments) as context:
        if name not in (
            "init",
            "try",
            "inspect",
            "report",
            "verify",
            "lineage",
            "schema",
            "demo",
            "doctor",
        ):
            assert command.invoke(context) == 0
            assert len(given) == 1


# `--max-rejects`, and which commands have it.
VOCAB = ["vocab", "--input", "a.txt", "--output", "v.txt"]


def test_a_limit_that_is_none_is_refused(run):
    code, _, err, job = run([*VOCAB, "--max-rejects", "1.5"], module="vocabulary")
    assert (code, job.calls) == (2, [])
    assert "expected a number of rows (10) or a fraction of them (0.1 or 10%), got '1.5'" in err


@pytest.mark.parametrize("name", COMMANDS)
def test_the_limit_is_for_commands_that_read_rows(name):
    shown = CliRunner().invoke(bert_pipeline, [name, "--help"]).output
    labeled = ("finetune", "label-errors", "evaluate")
    assert ("--max-rejects" in shown) == (
        name in (*labeled, "vocab", "preprocess", "score", "embed", "summarize")
    )
    assert ("[default: 10%]" in " ".join(shown.split())) == (name in labeled)
