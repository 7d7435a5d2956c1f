"""The options of a task are those of `finetune` when it is given that task."""

from pathlib import Path

import pytest

from bert_tf.tasks.registry import TASKS

FINETUNE = ["--train", "t", "--init", "m", "--output", "o"]


def test_finetune_shows_the_tasks_and_what_they_have_in_common(help_of):
    shown = help_of("finetune", "--help")
    assert all(f"\n    {name} " in shown for name in TASKS)
    assert "--learning-rate" in shown
    assert "--label-column" not in shown
    assert "doc" not in shown
    assert "best/: a metric of the task, or loss [default: set by the task]" in " ".join(
        shown.split()
    )


@pytest.mark.parametrize("before", [[], ["--seed", "1"]])
def test_a_tasks_help_shows_its_own_options_alone(before, help_of):
    shown = help_of("finetune", *before, "qa", "--help-all")
    assert shown.startswith("Usage: bert-pipeline finetune [OPTIONS] qa\n")
    shown = " ".join(shown.split())
    assert "finetune.n_best_size=20" in shown
    assert "finetune.n_best_size" not in help_of("finetune", *before, "qa", "--help")
    for flag in ("--doc-stride", "--learning-rate", "exact_match", "[default: 384 for this task]"):
        assert flag in shown
    for flag in ("--label-column", "column of the text", "macro_f1", "classification"):
        assert flag not in shown


@pytest.mark.parametrize(
    ("arguments", "source"),
    [
        (["classification", "--doc-stride", "3"], "--doc-stride"),
        (["classification", "--set", "finetune.n_best_size=3"], "--set finetune.n_best_size"),
        (["--config", "run.yaml"], "run.yaml: finetune.doc_stride"),
    ],
)
def test_a_key_of_another_task_is_refused_with_its_task(
    run, arguments, source, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    Path("run.yaml").write_text("finetune: {task: classification, doc_stride: 3}\n")
    code, _, err, job = run(["finetune", *arguments, *FINETUNE])
    assert (code, job.calls) == (2, [])
    assert err == f"error: {source}: is only for qa; leave it out\n"


def test_the_command_line_names_the_task_over_the_file(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("run.yaml").write_text("finetune: {task: classification}\n")
    code, _, _, job = run(
        ["finetune", "qa", "--config", "run.yaml", "--doc-stride", "3", *FINETUNE],
        outcome={},
        module="finetuning",
    )
    assert code == 0
    config, _ = job.calls[0]
    assert (config.task, config.doc_stride, config.sequence_length) == ("qa", 3, 384)
    assert "label_column" not in config.as_dict()


# `export`: help and options follow the task.


@pytest.mark.parametrize("arguments", [["--task", "fill-mask", "--help"], ["--help"]])
def test_options_of_a_task_are_those_of_its_help_alone(help_of, arguments):
    shown = help_of("export", *arguments)
    assert ("--top-k N" in shown) == ("fill-mask" in arguments)
    assert "--task" in shown and "--format" in shown
