"""The command that schedulers run every night, and the exit codes that are tried again."""

import runpy
import subprocess
import sys
import types
from pathlib import Path

import pytest
import yaml

from pipeline.cli.jobs import JOBS

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "airflow_score.py"


class FailedForGoodError(Exception):
    """Stands for AirflowFailException."""


def pod():
    document = yaml.safe_load((ROOT / "deploy/kubernetes/score.yaml").read_text())
    job = document["spec"]["jobTemplate"]["spec"]
    (container,) = job["template"]["spec"]["containers"]
    return job, container


def run_example(monkeypatch, code):
    """Run the DAG's task, and return its command."""
    ran = []
    airflow = {
        "airflow": types.ModuleType("airflow"),
        "airflow.sdk": types.SimpleNamespace(
            dag=lambda **_: lambda function: function, task=lambda **_: lambda function: function
        ),
        "airflow.exceptions": types.SimpleNamespace(AirflowFailException=FailedForGoodError),
    }
    for name, module in airflow.items():
        monkeypatch.setitem(sys.modules, name, module)

    def run(command, check):
        ran.append(list(command))
        return subprocess.CompletedProcess(command, code)

    monkeypatch.setattr(subprocess, "run", run)
    runpy.run_path(str(EXAMPLE))
    return ran[0]


def test_both_update(monkeypatch):
    program, command, *options = run_example(monkeypatch, 0)
    assert (program, command) == ("bert-pipeline", "score")
    _, container = pod()
    command, *of_pod = container["args"]
    assert command == "score"
    for given in (options, of_pod):
        context = JOBS["score"].command().make_context("score", given)
        assert context.params["update"] and not context.params["overwrite"]
        assert context.params["input"] == ("/data/new/*.csv",)


@pytest.mark.parametrize("code", [2, 3])
def test_what_is_the_same_again_is_not_tried_again(monkeypatch, code):
    with pytest.raises(FailedForGoodError, match=f"exit code {code}"):
        run_example(monkeypatch, code)
    job, container = pod()
    (rule,) = job["podFailurePolicy"]["rules"]
    assert rule["action"] == "FailJob"
    codes = rule["onExitCodes"]
    assert (codes["containerName"], codes["operator"]) == (container["name"], "In")
    assert code in codes["values"]
    assert job["template"]["spec"]["restartPolicy"] == "Never", "which podFailurePolicy needs"


def test_a_killed_run_is_tried_again(monkeypatch):
    with pytest.raises(RuntimeError, match="exit code 137"):
        run_example(monkeypatch, 137)
    job, _ = pod()
    (rule,) = job["podFailurePolicy"]["rules"]
    assert 137 not in rule["onExitCodes"]["values"] and job["backoffLimit"] > 0
