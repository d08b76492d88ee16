"""The steady state of a disk."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from blklab.base.catalogue import Entry
from blklab.domain.experiment import Disk, Experiment, SchedulerSpec
from blklab.rigs.live import steady
from blklab.rigs.live.rig import LiveRig
from tests import plausible


@pytest.mark.parametrize(
    ("rates", "found"),
    [
        ([100, 100, 100, 100, 100], None),
        ([100, 104, 98, 102, 99], None),
        ([300, 200, 150, 120, 110], "became slower by more than 10%"),
        ([100, 103, 106, 109, 112], "became faster by more than 10%"),
        ([100, 88, 112, 88, 100], "differ by more than 20%"),
        # Only the last five count.
        ([300, 200, 100, 100, 100, 100, 100], None),
        ([300, 200, 150, 100], None),
        ([0, 0, 0, 0, 0], None),
    ],
)
def test_the_steady_state_follows_snias_definition(rates: list[float], found: str | None) -> None:
    said = steady.unsteady(rates)
    assert (said is None) == (found is None)
    assert found is None or (said and said.endswith(found))


def test_each_load_under_each_scheduler_is_judged_by_its_own_runs() -> None:
    rig = LiveRig()
    one = Experiment(
        Entry("j", Path("j"), ""), Disk(Entry("d", Path("d"), "")), SchedulerSpec("none"), 1
    )
    said = []
    for run in range(5):
        steady_run = plausible.result(1, mean_ns=1e6, duration_ns=10**9)
        slower = plausible.result(1, mean_ns=1e6, duration_ns=10**9 * (run + 1))
        assert rig._unsteady(one, steady_run) is None
        said.append(rig._unsteady(replace(one, scheduler=SchedulerSpec("bfq")), slower))
    assert said[:4] == [None] * 4
    assert said[4] == "not in a steady state: its last 5 runs became slower by more than 10%"
