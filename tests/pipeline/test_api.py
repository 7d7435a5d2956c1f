"""Commands as functions."""

import inspect
import io
import json
import os
import pydoc
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest

import pipeline
from bert_tf.base.console import Console
from bert_tf.base.errors import ConfigError, TooManyRejects, UsageError
from bert_tf.config.section import build_section
from bert_tf.config.sections import ScoreConfig
from bert_tf.tasks.registry import finetune_config
from pipeline.cli import command as cli_command
from pipeline.cli.main import COMMANDS

COUNTS = {"train": {"rows_in": 10, "rows_out": 8, "rows_rejected": 2}, "rejected": {"broken": 2}}


@pytest.fixture
def calls(monkeypatch):
    """Return the arguments of the jobs that are run."""
    found = []

    def run(*arguments):
        found.append(arguments)
        return {"counts": COUNTS}

    imports = types.SimpleNamespace(import_module=lambda name: types.SimpleNamespace(run=run))
    monkeypatch.setattr(cli_command, "importlib", imports)
    monkeypatch.setattr(cli_command, "check_request", lambda *request, **options: None)
    return found


def test_every_function_is_a_command():
    names = {name.replace("_", "-") for name in pipeline.__all__}
    assert names < set(COMMANDS)
    for name in pipeline.__all__:
        assert getattr(pipeline, name).name == name.replace("_", "-")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = pipeline.nothing


def test_the_documentation_names_every_command():
    text = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
    functions, _, others = text.partition("have no function")
    named = {name.replace("_", "-") for name in re.findall(r"`(\w+)`", functions)}
    named_others = set(re.findall(r"^\| (?:`(\w+)`, )?`(\w+)` \|", others, re.M))
    assert named & set(COMMANDS) == {name.replace("_", "-") for name in pipeline.__all__}
    rest = {name for pair in named_others for name in pair if name}
    assert rest == set(COMMANDS) - named


def test_arguments_are_config_keys(calls, tmp_path):
    manifest = pipeline.finetune(
        "classification", train=tmp_path / "t.csv", init="m", output="r", epochs=2, max_rejects=5
    )
    assert manifest == {"counts": COUNTS}
    ((config, options),) = calls
    keys = {"task": "classification", "train": str(tmp_path / "t.csv"), "init": "m", "output": "r"}
    assert config == finetune_config({**keys, "epochs": 2})
    assert not options.overwrite


def test_keys_of_the_runner_and_of_a_file_count_too(calls, tmp_path):
    (tmp_path / "c.yaml").write_text("score: {model: m, output: o.csv, block_rows: 7}\n")
    console = Console(io.StringIO())
    pipeline.score(
        config=tmp_path / "c.yaml", input=["a.csv"], output="b.csv", workers=3, console=console
    )
    ((config, runner, options),) = calls
    values = {"model": "m", "output": "b.csv", "block_rows": 7, "input": ["a.csv"]}
    assert config == build_section(ScoreConfig, values)
    assert runner.workers == 3
    assert options.console is console


def test_a_process_forked_after_tensorflow_ran_is_refused(calls, monkeypatch, tmp_path):
    keys = {"train": "t", "init": "m", "output": "r"}
    for was_used in (False, True):
        context = types.SimpleNamespace(_context=types.SimpleNamespace(_initialized=was_used))
        monkeypatch.setitem(sys.modules, "tensorflow.python.eager.context", context)
        told = tmp_path / str(was_used)
        child = os.fork()
        if child == 0:
            try:
                pipeline.finetune("qa", console=Console(io.StringIO()), max_rejects=9, **keys)
            except UsageError as error:
                told.write_text(str(error))
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        assert told.exists() == was_used
    assert "multiprocessing.get_context('spawn')" in told.read_text()
    pipeline.finetune("qa", console=Console(io.StringIO()), max_rejects=9, **keys)


def test_what_cannot_be_is_refused(calls):
    with pytest.raises(UsageError, match="finetune: no config key epoch; did you mean 'epochs'"):
        pipeline.finetune("classification", train="t", init="m", output="r", epoch=2)
    with pytest.raises(ConfigError, match="epochs: expected a number"):
        pipeline.finetune("classification", train="t", init="m", output="r", epochs="many")
    for limit in (-1, 1.5, "many"):
        with pytest.raises(UsageError, match=r"finetune: max_rejects: expected a number of rows"):
            pipeline.finetune("qa", train="t", init="m", output="r", max_rejects=limit)
    with pytest.raises(TypeError, match="finetune takes 1 arguments without a name, not 2"):
        pipeline.finetune("classification", "t.csv")
    assert not calls


def test_too_many_rejects_are_raised(calls):
    keys = {"train": "t.csv", "init": "m", "output": "r"}
    with pytest.raises(TooManyRejects, match="2 of 10 rows rejected"):
        pipeline.finetune("classification", **keys)  # 10% by default
    pipeline.finetune("classification", **keys, max_rejects=0.2)


@pytest.mark.parametrize("name", pipeline.__all__)
def test_the_signature_has_all_keys(name):
    signature = inspect.signature(
        getattr(pipeline, name)
    )  # raises if a key has the name of another
    assert "output" in signature.parameters
    assert signature.parameters["output"].default is inspect.Parameter.empty


@pytest.mark.parametrize("name", pipeline.__all__)
def test_help_lists_every_key_with_its_type_default_and_meaning(name):
    job = getattr(pipeline, name)
    text = pydoc.render_doc(job, renderer=pydoc.plaintext)
    assert max(map(len, text.splitlines())) < 110
    words = " ".join(text.split())
    for key, parameter in inspect.signature(job).parameters.items():
        if key in ("positional", "config", "overwrite", "max_rejects", "strict", "console"):
            continue
        is_required = parameter.default is inspect.Parameter.empty
        default = "" if is_required else f" = {parameter.default!r}"
        assert f"\n      {key}: {parameter.annotation}{default}\n" in text
    for _, field in job._keys():
        assert " ".join(field.metadata["doc"].split()) in words, field.name


def test_help_names_the_tasks_that_have_a_key():
    words = " ".join(pydoc.render_doc(pipeline.finetune, renderer=pydoc.plaintext).split())
    assert "column of the answer text (only qa)" in words
    assert "training rows: CSV, TSV, JSONL or Parquet eval:" in words  # of every task
    assert "lists its config keys" in (pipeline.api.Job.__doc__ or "")  # the class has its own


def test_nothing_heavy_is_imported_before_a_call():
    code = (
        "import json, sys\n"
        "from pipeline import preprocess, vocab, train, finetune, evaluate, export, score\n"
        "heavy = {'tensorflow', 'apache_beam', 'numpy', 'click'}\n"
        "print(json.dumps(sorted(heavy & set(sys.modules))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []
