"""`export`: help and options follow the task."""

import pytest


@pytest.mark.parametrize("arguments", [["--task", "fill-mask", "--help"], ["--help"]])
def test_options_of_a_task_are_those_of_its_help_alone(help_of, arguments):
    shown = help_of("export", *arguments)
    assert ("--top-k N" in shown) == ("fill-mask" in arguments)
    assert "--task" in shown and "--format" in shown
