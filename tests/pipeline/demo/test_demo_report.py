"""What the demo prints: commands that the command line takes."""

import doctest
import io

import pytest
from click.testing import CliRunner

from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError
from bert_tf.config.sections.data import PreprocessConfig
from pipeline.cli.main import bert_pipeline
from pipeline.demo import prose
from pipeline.demo import run as demo
from pipeline.demo.command_line import command_line
from pipeline.demo.plan import make_plan
from pipeline.outputs.job import RunOptions


def test_the_worked_example_is_right():
    outcome = doctest.testmod(prose)
    assert outcome.attempted and not outcome.failed


def test_a_command_names_what_differs_from_the_defaults():
    section = PreprocessConfig(
        input=("a b/*.txt",),
        vocab="vocab.txt",
        output="data",
        lowercase=False,
        whole_word_mask=True,
        pool_megabytes=1.5,
    )
    assert command_line("preprocess", section) == (
        "bert-pipeline preprocess --input 'a b/*.txt' --vocab vocab.txt --output data --cased "
        "--whole-word-mask --set preprocess.pool_megabytes=1.5"
    )


def test_the_printed_commands_mean_the_same_config(tmp_path, monkeypatch):
    import shlex
    import sys
    import types

    given = []
    fake = types.ModuleType("recorder")
    fake.run = lambda section, *rest: given.append(section) or {}
    plan = make_plan(tmp_path / "demo", tmp_path / "weights")
    stages = [
        ("vocab", "vocabulary", plan.vocab),
        ("preprocess", "pretraining_examples", plan.preprocess),
        ("train", "pretraining", plan.train),
    ]
    for task in (plan.complaints, plan.cities):
        stages += [
            ("finetune", "finetuning", task.finetune),
            ("evaluate", "evaluation", task.evaluate),
            ("export", "exporting", task.export),
            ("score", "scoring", task.score),
        ]
    for command, module, section in stages:
        monkeypatch.setitem(sys.modules, f"pipeline.jobs.{module}", fake)
        words = shlex.split(command_line(command, section))
        outcome = CliRunner().invoke(bert_pipeline, words[1:])
        assert outcome.exit_code == 0, outcome.output
        assert given.pop() == section


def test_a_file_in_place_of_the_demo_folder_is_refused(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("mine")
    with pytest.raises(UsageError, match=r"--output .*notes\.txt: is a file; name a folder$"):
        demo.run(str(path), None, RunOptions(console=Console(io.StringIO())))
    assert path.read_text() == "mine"
