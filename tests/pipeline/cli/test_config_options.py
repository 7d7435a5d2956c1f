"""The options of config sections: their order, defaults and values in help."""

import dataclasses
import re

import pytest

from bert_tf.config.sections import SECTIONS, TrainConfig
from bert_tf.tasks.registry import TASKS
from pipeline.cli.main import COMMANDS


@pytest.mark.parametrize(
    ("arguments", "flags"),
    [
        (["vocab"], ["--input", "--extend", "--output"]),
        (["train"], ["--data", "--size", "--model-config", "--init", "--output"]),
        (["finetune", "qa"], ["qa", "--train", "--eval", "--init", "--output"]),
        (["score"], ["--model", "--input", "--output"]),
        (["import-weights"], ["SOURCE", "--vocab", "--output"]),
    ],
)
def test_what_is_read_is_listed_before_what_is_written(arguments, flags, help_of):
    first = help_of(*arguments, "--help").partition("Input, output and model:")[2]
    assert re.findall(r"^  (\S+)", first.partition("\n\n")[0], re.M) == flags


def test_the_options_of_a_command_come_before_those_it_shares(help_of):
    shown = help_of("train", "--help")
    flags = ("--data", "--size", "--output", "--steps", "--strategy", "--config", "--help-all")
    places = [shown.index(f"\n  {flag} ") for flag in flags]
    assert places == sorted(places)


def test_options_are_grouped_and_ordered_by_need(help_of):
    shown = help_of("finetune", "classification", "--help")
    listed = (
        *("Input, output and model:", "Files and columns:", "  --text-column", "  --label-column"),
        *("  --encoding", "  --header", "Training:", "  --epochs", "  --batch-size"),
        *("  --learning-rate", "  --max-seq-length", "  --long-texts", "Evaluation:"),
        *("  --eval-fraction", "  --best-metric", "  --seeds", "  --grid"),
        *("Loss and probabilities:", "  --class-weights", "  --label-smoothing", "  --calibration"),
        *("Distillation:", "  --teacher", "Machine:", "  --strategy", "  --seed N", "General:"),
    )
    places = [shown.index(f"\n{line}") for line in listed]
    assert places == sorted(places)
    assert "\nOptions:" not in shown
    assert "\nFiles and columns:" not in help_of("export", "--help")


@pytest.mark.parametrize(("task", "length"), [("classification", 128), ("qa", 384)])
def test_a_default_of_the_task_is_shown_as_such(task, length, help_of):
    shown = " ".join(help_of("finetune", task, "--help").split())
    assert f"including [CLS] and [SEP] [default: {length} for this task]" in shown
    assert "(default: " not in shown


def test_a_list_that_is_empty_by_default_shows_no_default(help_of):
    shown = " ".join(help_of("score", "--help").split())
    assert "column of the model's task; repeatable --rename" in shown


@pytest.mark.parametrize("name", [name for name in SECTIONS if name not in ("runner", "storage")])
def test_defaults_are_as_a_command_line_takes_them(help_of, name):
    variants = [[task] for task in TASKS] if name == "finetune" else [[]]
    for variant in variants:
        text = help_of(name.replace("_", "-"), *variant, "--help-all")
        assert "default: [" not in text and "=[" not in text


def test_all_keys_are_listed_with_the_values_to_choose_from(help_of):
    text = " ".join(help_of("train", "--help-all").split())
    assert "train.schedule=linear {linear|constant|cosine|polynomial|trapezoidal}" in text
    fields = [field for field in dataclasses.fields(TrainConfig) if field.metadata["choices"]]
    assert {"optimizer", "precision", "xla"} <= {field.name for field in fields}
    for field in fields:
        values = "|".join(field.metadata["choices"])
        assert f"{{{values}}}" in text or f"[{values}]" in text, field.name


# Help lists what most people need first, and all keys where it is asked to.
OTHERS = ("init", "try", "inspect", "report", "verify", "lineage", "schema", "demo", "doctor")
JOB_COMMANDS = [name for name in COMMANDS if name not in OTHERS]


@pytest.mark.parametrize("name", JOB_COMMANDS)
@pytest.mark.parametrize("flag", ["--help", "--help-all"])
def test_help_lists_input_output_and_model_first_within_100_columns(name, flag, help_of):
    shown = help_of(name, flag)
    titles = [line for line in shown.splitlines() if re.fullmatch(r"[A-Z].*:", line)]
    assert titles[0] == "Input, output and model:"
    assert titles[-1] == "General:" or flag == "--help-all"
    first = shown.partition("Input, output and model:")[2].partition("\n\n")[0]
    assert re.findall(r"^  (\S+)", first, re.M)[-1] == "--output"
    assert not [line for line in shown.splitlines() if len(line) > 100]


@pytest.mark.parametrize(
    ("name", "sections"), [("train", ["train", "storage"]), ("score", ["score", "runner"])]
)
def test_help_all_adds_the_keys_without_a_flag(name, sections, help_of):
    short, long = help_of(name, "--help"), help_of(name, "--help-all")
    keys = [
        f"{section}.{field.name}"
        for section in sections
        for field in dataclasses.fields(SECTIONS[section])
        if field.metadata["advanced"]
    ]
    assert keys
    assert f"Use --help-all to list {len(keys)} more keys, for --config and --set." in short
    assert not [key for key in keys if key in short]
    assert not [key for key in keys if f"\n  {key}" not in long]
    assert "Use --help-all" not in long


def test_help_all_of_a_command_without_further_keys_is_its_help(help_of):
    assert help_of("export", "--help-all") == help_of("export", "--help")
