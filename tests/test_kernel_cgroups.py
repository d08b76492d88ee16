"""Cgroups of a job file in Linux itself: bfq shares a disk among them by weight."""

from __future__ import annotations

import pytest

import blklab
from blklab.rigs.kernel import DRIVERS
from tests import real_kernel

SEQUENTIAL = "rw=read\nbs=128k"
RANDOM = "rw=randread\nbs=4k"


@pytest.fixture(scope="module", autouse=True)
def _kernel() -> None:
    real_kernel.image()


def shares(load: str, jobs: str, scheduler: str, driver: str) -> dict[str, float]:
    """Each job's share of all bytes read from a hard disk."""
    head = f"[global]\n{load}\ndirect=1\nsize=1g\nruntime=10\ntime_based\n"
    result = blklab.simulate(
        head + jobs, disk="wd10ezrx", scheduler=scheduler, rig="kernel", driver=driver
    )
    total = sum(job.read.bytes for job in result.jobs)
    return {job.name: job.read.bytes / total for job in result.jobs}


TWO = "[light]\ncgroup=l\ncgroup_weight=100\n[heavy]\ncgroup=h\ncgroup_weight=300\n"


@pytest.mark.parametrize("driver", DRIVERS)
def test_under_bfq_a_cgroup_of_three_times_the_weight_gets_three_times_as_much(driver: str) -> None:
    assert shares(SEQUENTIAL, TWO, "bfq", driver)["light"] == pytest.approx(1 / 4, rel=0.04)
    # Switching from one to the other costs a seek that belongs to neither: a little is lost. How
    # much depends on chance: 27 to 30 %, by what the host's CPU work costs.
    assert shares(RANDOM, TWO, "bfq", driver)["light"] == pytest.approx(0.28, rel=0.1)


@pytest.mark.parametrize("driver", DRIVERS)
def test_without_cgroups_and_under_mq_deadline_all_are_equal(driver: str) -> None:
    alone = "[light]\n[heavy]\n"
    assert shares(SEQUENTIAL, alone, "bfq", driver)["light"] == pytest.approx(1 / 2, rel=0.04)
    assert shares(RANDOM, TWO, "mq-deadline", driver)["light"] == pytest.approx(1 / 2, rel=0.04)


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_cgroup_within_another_shares_what_that_gets(driver: str) -> None:
    jobs = (
        "[maker]\ncgroup=outer\ntime_based=0\nsize=4k\nbs=4k\n"
        "[one]\ncgroup=outer/one\ncgroup_weight=100\n"
        "[three]\ncgroup=outer/three\ncgroup_weight=300\n"
        "[beside]\ncgroup=beside\ncgroup_weight=100\n"
    )
    found = shares(SEQUENTIAL, jobs, "bfq", driver)
    assert found["beside"] == pytest.approx(1 / 2, rel=0.04)
    assert found["one"] == pytest.approx(1 / 8, rel=0.08)
    assert found["three"] == pytest.approx(3 / 8, rel=0.08)
