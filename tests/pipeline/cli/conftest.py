"""Runs command lines against jobs that are stand-ins, and shows help."""

import sys

import pytest
from click.testing import CliRunner

from pipeline.cli import command
from pipeline.cli.main import bert_pipeline, main


class FakeJob:
    """Stands in for a job's module: returns a manifest, fails, or does something first."""

    def __init__(self, outcome):
        self.outcome = outcome
        self.calls = []

    def run(self, *arguments):
        self.calls.append(arguments)
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome() if callable(self.outcome) else self.outcome


@pytest.fixture
def run(monkeypatch, capsys):
    """Run a command line against a fake job, and give exit code, stdout, stderr and the job."""

    def run_command(arguments, outcome=None, module="pretraining"):
        job = FakeJob(outcome if outcome is not None else {"counts": {}})
        monkeypatch.setitem(sys.modules, f"pipeline.jobs.{module}", job)
        monkeypatch.setattr(command, "check_request", lambda *request, **options: None)
        with pytest.raises(SystemExit) as exited:
            main(arguments)
        captured = capsys.readouterr()
        return exited.value.code, captured.out, captured.err, job

    return run_command


@pytest.fixture
def help_of():
    """Return the output of a command line that asks for help on a wide terminal."""

    def show(*arguments):
        result = CliRunner(env={"COLUMNS": "200"}).invoke(bert_pipeline, [*arguments])
        assert result.exit_code == 0
        return result.output

    return show
