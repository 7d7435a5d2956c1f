"""The options of config sections: their order, defaults and values in help."""

import dataclasses
import re

import pytest

from bert_tf.config.sections import SECTIONS, TrainConfig
from bert_tf.tasks.registry import TASKS


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
