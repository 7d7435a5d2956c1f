"""The help of the options of config sections: their order and defaults."""

import re

import pytest


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


def test_a_list_that_is_empty_by_default_shows_no_default(help_of):
    shown = " ".join(help_of("score", "--help").split())
    assert "that the model's task offers; repeatable --limit" in shown
