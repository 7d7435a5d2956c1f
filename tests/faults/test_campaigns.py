"""The harness of the campaigns, and a few cases of each campaign of faults."""

import itertools
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest
from faults.__main__ import table
from faults.campaigns import Campaign, all_campaigns, run_cases
from faults.crash_points import kill
from faults.job_chain import JOBS, Chain, shared_chain
from faults.job_forks import COMPILER, Fault
from faults.power_loss import lose_power
from faults.system_faults import fail
from faults.two_at_once import meet


def of_cases(case):
    @contextmanager
    def prepare(folder: Path):
        assert not list(folder.iterdir())
        yield case

    return Campaign("tosses", "", prepare)


def test_outcomes_are_counted():
    result = run_cases(of_cases(lambda random: random.choice("ab")), 1, cases=40)
    assert result.cases == 40 == sum(result.outcomes.values())
    assert set(result.outcomes) == {"a", "b"}
    same = run_cases(of_cases(lambda random: random.choice("ab")), 1, cases=40)
    assert same.outcomes == result.outcomes

    many = run_cases(of_cases(lambda random: Counter(seen=10)), 1, cases=3)
    assert many.outcomes == {"seen": 30}


def test_a_failure_names_the_case_that_repeats_it(capsys):
    def case(random):
        if (drawn := random.random()) < 0.3:
            raise AssertionError(drawn)
        return "passed"

    result = run_cases(of_cases(case), 7, cases=20)
    assert result.outcomes["FAILED"] == len(result.failures) > 0
    command, _, error = result.failures[0].partition(": ")
    number = int(command.removeprefix("python tests/faults tosses --seed 7 --case "))
    assert command in capsys.readouterr().err
    (again,) = run_cases(of_cases(case), 7, cases=1, first=number).failures
    assert again.endswith(error)
    assert table([result]).splitlines()[1].split()[:2] == ["tosses", "20"]


def test_a_campaign_ends_in_time(monkeypatch):
    seconds = itertools.count()
    clock = SimpleNamespace(monotonic=lambda: next(seconds))
    monkeypatch.setattr("faults.campaigns.time", clock)
    assert run_cases(of_cases(lambda random: "passed"), 0, minutes=0.5).cases == 30


@pytest.mark.parametrize("name", all_campaigns())
def test_campaigns_say_what_they_do(name):
    assert all_campaigns()[name].says


# Cases of the job that starts quickly.


def runs_jobs(test):
    """Mark a test that starts jobs under the shim."""
    needs_compiler = pytest.mark.skipif(COMPILER is None, reason="the shim is written in C")
    return pytest.mark.slow(needs_compiler(test))


@pytest.fixture(scope="module")
def chain() -> Chain:
    return shared_chain(["vocab"])


@runs_jobs
def test_the_shim_kills_at_the_call_that_it_is_told(chain):
    job = JOBS["vocab"]
    chain.remove(job.output)
    assert chain.forks.run(job.command, fault=Fault(kill_at=3)).is_killed
    assert not chain.is_complete(job)
    chain.forks.run(job.command).succeeded()
    chain.check_undisturbed(job)


@runs_jobs
@pytest.mark.parametrize("case", [kill, lose_power, meet], ids=lambda case: case.__name__)
def test_a_disturbed_job_has_the_same_output_after_a_rerun(chain, case):
    assert case(chain, Random(0))


@runs_jobs
def test_a_full_disk_is_one_line_or_without_effect(chain):
    assert "equal" in fail(chain, Random(0), "disk full")
