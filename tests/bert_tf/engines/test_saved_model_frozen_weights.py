"""Processes that declare frozen weights set TensorFlow's variable for them, and no others do."""

import os
import subprocess
import sys

import pytest

from bert_tf.engines import registry, saved_model

NAME = "TF_ONEDNN_ASSUME_FROZEN_WEIGHTS"


@pytest.mark.parametrize("given", [None, "false"])
@pytest.mark.parametrize("is_declared", [True, False])
def test_the_setting_is_that_of_the_process(monkeypatch, given, is_declared):
    environment = {} if given is None else {NAME: given}
    monkeypatch.setattr(registry.os, "environ", environment)
    if is_declared:
        registry.declare_frozen_weights()
    saved_model.lay_out_weights_once()
    assert environment.get(NAME) == (given or ("true" if is_declared else None))


@pytest.mark.parametrize(
    ("arguments", "is_declared"),
    [("['score', '--help']", True), ("['finetune', '--help']", False), ("['--version']", False)],
)
def test_processes_of_score_declare_it(arguments, is_declared):
    code = (
        "import os, sys\n"
        "from pipeline.cli import main\n"
        "main._run = lambda given: print('BERT_PIPELINE_FROZEN_WEIGHTS' in os.environ)\n"
        f"sys.argv[1:] = {arguments}\n"
        "main.main()\n"
    )
    environment = {name: os.environ[name] for name in ("HOME", "PATH") if name in os.environ}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.strip() == str(is_declared)
