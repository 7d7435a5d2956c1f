"""`deploy/multi-worker.sh` gives each worker its place in the cluster."""

import json
import os
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "deploy" / "multi-worker.sh"
FAKE = """#!/bin/sh
printf '%s\\n' "$TF_CONFIG" "$@"
"""


@pytest.fixture
def start(tmp_path):
    """Run the script where `bert-pipeline` prints TF_CONFIG and its arguments."""
    command = tmp_path / "bert-pipeline"
    command.write_text(FAKE)
    command.chmod(0o755)

    def run(*arguments, **environment):
        path = f"{tmp_path}:{os.environ['PATH']}"
        return subprocess.run(
            [SCRIPT, *arguments],
            env={"PATH": path, **environment},
            capture_output=True,
            text=True,
        )

    return run


@pytest.mark.parametrize(
    ("place", "environment"), [(["1"], {}), ([], {"JOB_COMPLETION_INDEX": "1"})]
)
def test_a_worker_knows_all_and_its_own_index(start, place, environment):
    found = start("a:1,b.c:22", *place, "train", "--data", "my data", **environment)
    config, *arguments = found.stdout.splitlines()
    assert json.loads(config) == {
        "cluster": {"worker": ["a:1", "b.c:22"]},
        "task": {"type": "worker", "index": 1},
    }
    assert arguments == ["train", "--strategy", "multi-worker", "--data", "my data"]


@pytest.mark.parametrize("arguments", [[], ["a:1"], ["a:1", "0"]])
def test_wrong_usage_is_explained(start, arguments):
    found = start(*arguments)
    assert found.returncode == 2
    assert "multi-worker.sh HOST:PORT,HOST:PORT" in found.stderr


def test_without_an_index_outside_of_kubernetes_it_says_so(start):
    found = start("a:1,b:2", "train")
    assert found.returncode != 0
    assert "no index is given" in found.stderr


def test_the_kubernetes_job_has_a_host_for_every_pod():
    service, job = yaml.safe_load_all((ROOT / "deploy/kubernetes/train.yaml").read_text())
    (container,) = job["spec"]["template"]["spec"]["containers"]
    port = service["spec"]["ports"][0]["port"]
    name, subdomain = job["metadata"]["name"], job["spec"]["template"]["spec"]["subdomain"]
    assert subdomain == service["metadata"]["name"]
    assert container["args"][0].split(",") == [
        f"{name}-{index}.{subdomain}:{port}" for index in range(job["spec"]["completions"])
    ]
    assert job["spec"]["parallelism"] == job["spec"]["completions"]
