"""The table of `blklab verify` in the documentation is of today's simulator."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from random import Random
from typing import Any

import pytest

from blklab.agreement import matrix
from blklab.agreement.measure import deviation, figures
from blklab.agreement.run import Planned, plan
from blklab.agreement.verdict import BAR, NARROW, SHARE, WORST
from blklab.rigs.sim import SimRig

_SAMPLE = 150
DATA = Path(__file__).parents[1] / "docs/data"


@pytest.fixture(scope="module", params=["verify", "verify-host"])
def kept(request: pytest.FixtureRequest) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DATA / f"{request.param}.json").read_text())
    found["takes_time"] = request.param == "verify-host"
    return found


def key(cell: dict[str, Any]) -> tuple[str, str, str]:
    return cell["place"], cell["load"], cell["scheduler"]


def planned() -> dict[tuple[str, str, str], Planned]:
    every = plan(matrix.PLACES, (), matrix.LOADS)
    return {(cell.place, cell.job.name, cell.scheduler): cell for cell in every}


def test_it_has_every_cell_of_the_matrix(kept: dict[str, Any]) -> None:
    every = planned()
    if kept["takes_time"]:
        # Of fio, CPU work takes no time in a guest.
        every = {key: cell for key, cell in every.items() if cell.driver == "native"}
    assert {key(cell) for cell in kept["cells"]} == every.keys()


def test_its_verdict_follows_from_its_figures(kept: dict[str, Any]) -> None:
    def off(cell: dict[str, Any], what: str) -> float:
        return deviation(what, cell["sim"][what], cell["kernel"][what])

    def within(bar: Mapping[str, float]) -> list[dict[str, Any]]:
        cells: list[dict[str, Any]] = kept["cells"]
        return [
            cell for cell in cells if all(off(cell, what) <= most for what, most in bar.items())
        ]

    meeting = within(BAR)
    assert kept["narrow"]["met"] == len(within(NARROW))
    assert kept["narrow"]["equal"] == sum(cell["sim"] == cell["kernel"] for cell in kept["cells"])
    worst = max(off(cell, what) for cell in kept["cells"] for what in BAR)
    assert kept["met"] == len(meeting)
    assert kept["worst"] == pytest.approx(worst, abs=1e-6)
    assert kept["good"] == (len(meeting) >= SHARE * len(kept["cells"]) and worst <= WORST)


def test_the_simulator_still_gives_the_figures_of_the_table(kept: dict[str, Any]) -> None:
    """A sample, another one each day."""
    of_matrix = planned()
    for cell in Random(date.today().toordinal()).sample(kept["cells"], _SAMPLE):
        one = of_matrix[key(cell)]
        run = SimRig().run(replace(one.experiment(kept["seed"]), host=kept["host"]))
        found = vars(figures(run))
        # With a page cache the percentiles are the disk's, of as many commands as Linux had.
        same = found if cell["driver"] == "native" else ("ios", "bytes_per_s")
        for what in same:
            assert found[what] == cell["sim"][what], f"{key(cell)}: {what}"
