"""The short form of the campaigns: a few cases of the job that starts quickly."""

from random import Random

import pytest
from faults.crash_points import kill
from faults.job_chain import JOBS, Chain, shared_chain
from faults.job_forks import COMPILER, Fault
from faults.power_loss import lose_power
from faults.system_faults import fail
from faults.two_at_once import meet

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(COMPILER is None, reason="the shim is written in C"),
]


@pytest.fixture(scope="module")
def chain() -> Chain:
    return shared_chain(["vocab"])


def test_the_shim_kills_at_the_call_that_it_is_told(chain):
    job = JOBS["vocab"]
    chain.remove(job.output)
    assert chain.forks.run(job.command, fault=Fault(kill_at=3)).is_killed
    assert not chain.is_complete(job)
    chain.forks.run(job.command).succeeded()
    chain.check_undisturbed(job)


@pytest.mark.parametrize("case", [kill, lose_power, meet], ids=lambda case: case.__name__)
def test_a_disturbed_job_has_the_same_output_after_a_rerun(chain, case):
    assert case(chain, Random(0))


def test_a_full_disk_is_one_line_or_without_effect(chain):
    assert "equal" in fail(chain, Random(0), "disk full")
