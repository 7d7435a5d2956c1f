"""A run of the tests passes or fails by the code alone; `make fuzz` looks further."""

from hypothesis import settings


def test_examples_are_the_same_in_every_run(pytestconfig):
    asked = pytestconfig.getoption("--hypothesis-profile")
    assert settings.get_current_profile_name() == (asked or "repeatable")
    profile = settings.get_profile("repeatable")
    assert profile.derandomize and profile.deadline is None and profile.database is None


def test_fuzzing_draws_new_examples_and_reports_how_to_repeat_them():
    profile = settings.get_profile("fuzz")
    assert not profile.derandomize and profile.deadline is None and profile.print_blob
    assert profile.max_examples > settings.get_profile("repeatable").max_examples
