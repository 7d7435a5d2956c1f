"""What the demo prints: commands that the command line takes, and a readable curve."""

import doctest

from click.testing import CliRunner

from bert_tf.config.sections.data import PreprocessConfig
from pipeline.cli.main import bert_pipeline
from pipeline.demo import loss_curve, prose
from pipeline.demo.command_line import command_line
from pipeline.demo.loss_curve import draw_curve, read_curve
from pipeline.demo.plan import make_plan


def test_the_worked_examples_are_right():
    for module in (loss_curve, prose):
        outcome = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
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
        ("vocab", "vocabulary", plan.vocab, ()),
        ("preprocess", "pretraining_examples", plan.preprocess, ()),
        ("train", "pretraining", plan.train, ()),
    ]
    for task in (plan.complaints, plan.cities):
        stages += [
            ("finetune", "finetuning", task.finetune, ("task",)),
            ("evaluate", "evaluation", task.evaluate, ()),
            ("export", "exporting", task.export, ()),
            ("score", "scoring", task.score, ()),
        ]
    for command, module, section, arguments in stages:
        monkeypatch.setitem(sys.modules, f"pipeline.jobs.{module}", fake)
        words = shlex.split(command_line(command, section, arguments=arguments))
        outcome = CliRunner().invoke(bert_pipeline, words[1:])
        assert outcome.exit_code == 0, outcome.output
        assert given.pop() == section


def test_curve_spans_its_values():
    lines = draw_curve(range(10, 1010, 10), [9.0 - step / 200 for step in range(10, 1010, 10)])
    assert lines[0].split("|")[0].strip() == "8.95"
    assert lines[9].split("|")[0].strip() == "4.00"
    assert lines[-1].strip() == "10 to 1000 steps"
    assert max(map(len, lines)) <= 72


def test_a_flat_curve_and_no_curve_are_drawn():
    assert "*" in draw_curve([1, 2], [2.0, 2.0], width=4, height=2)[0]
    assert draw_curve([], []) == []


def test_a_curve_is_read_by_split_and_key(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text(
        '{"step": 1, "split": "train", "loss": 2.0}\n'
        '{"step": 1, "split": "eval", "loss": 3.0, "mlm_loss": 1.0}\n'
        '{"step": 2, "split": "train", "loss": 1.5}\n'
    )
    assert read_curve(path, split="train", key="loss") == ([1, 2], [2.0, 1.5])
    assert read_curve(path, split="eval", key="mlm_loss") == ([1], [1.0])
