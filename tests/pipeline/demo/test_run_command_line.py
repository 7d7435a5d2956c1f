"""The demo prints commands that the command line takes."""

from click.testing import CliRunner

from bert_tf.config.sections.data import PreprocessConfig
from pipeline.cli import command as cli_command
from pipeline.cli.main import bert_pipeline
from pipeline.demo.plan import make_plan
from pipeline.demo.run import command_line


def test_a_command_names_what_differs_from_the_defaults():
    section = PreprocessConfig(
        input=("a b/*.txt",),
        vocab="vocab.txt",
        output="data",
        lowercase=False,
        whole_word_mask=True,
        pool_megabytes=1.5,
    )
    assert command_line(section) == (
        "bert-pipeline preprocess --input 'a b/*.txt' --vocab vocab.txt --output data --cased "
        "--max-predictions-per-seq 20 --whole-word-mask --set preprocess.pool_megabytes=1.5"
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
        ("vocabulary", plan.vocab),
        ("pretraining_examples", plan.preprocess),
        ("pretraining", plan.train),
    ]
    for task in (plan.complaints, plan.cities):
        stages += [
            ("finetuning", task.finetune),
            ("evaluation", task.evaluate),
            ("exporting", task.export),
            ("scoring", task.score),
        ]
    for module, section in stages:
        monkeypatch.setitem(sys.modules, f"pipeline.jobs.{module}", fake)
        monkeypatch.setattr(cli_command, "check_request", lambda *request, **options: None)
        words = shlex.split(command_line(section))
        outcome = CliRunner().invoke(bert_pipeline, words[1:])
        assert outcome.exit_code == 0, outcome.output
        assert given.pop() == section
