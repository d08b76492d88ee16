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

from blklab.agreement import matrix, run
from blklab.agreement.measure import deviation, figures
from blklab.agreement.run import Planned, plan
from blklab.agreement.verdict import BAR, SHARE, WIDE, WORST
from blklab.domain import core
from blklab.domain.experiment import Experiment, Journal, LaidOut, SchedulerSpec
from blklab.rigs.sim import SimRig

_SAMPLE = 150
DATA = Path(__file__).parents[1] / "docs/data"


IN_FILE_SYSTEMS = ("ext4", "xfs")
"""Those of `make verify`."""


@pytest.fixture(scope="module", params=["verify", "verify-files"])
def kept(request: pytest.FixtureRequest) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DATA / f"{request.param}.json").read_text())
    found["table"] = request.param
    return found


def key(cell: dict[str, Any]) -> tuple[str, str, str]:
    return cell["place"], cell["load"], cell["scheduler"]


def planned(table: str) -> dict[tuple[str, str, str], Planned]:
    """The cells of a table, in their order."""
    in_files = table == "verify-files"
    places = matrix.FILE_SYSTEM_PLACES if in_files else matrix.PLACES
    loads = matrix.smaller(matrix.LOADS) if in_files else matrix.LOADS
    every = plan(places, (), loads)
    if in_files:
        every = run.in_files(every, IN_FILE_SYSTEMS)
    return {(cell.place, cell.job.name, cell.scheduler): cell for cell in every}


def test_it_has_every_cell_of_the_matrix_or_those_that_its_seed_draws(kept: dict[str, Any]) -> None:
    every = list(planned(kept["table"]))
    if kept["planned"] < len(every):
        every = Random(kept["seed"]).sample(every, kept["planned"])
    assert {key(cell) for cell in kept["cells"]} == set(every)


def placed(asked: Experiment, cell: Planned, kept: dict[str, Any]) -> Experiment:
    """With its files at the places that the table has."""
    if cell.file_system is None:
        return asked
    job = core.describe_job(cell.job, ignore_unsupported=False)
    sizes = job.file_sizes(core.disk_model(cell.disk), asked.seed)
    wanted = (cell.file_system, cell.disk.label, sizes)
    [one] = (
        one for one in kept["layouts"] if (one["file_system"], one["disk"], one["sizes"]) == wanted
    )
    places = tuple(tuple(map(tuple, file)) for file in one["places"])
    journal = Journal(**one["journal"] | {"extents": tuple(map(tuple, one["journal"]["extents"]))})
    files = LaidOut(cell.file_system, "", places, "", journal)
    return replace(asked, files=files, host=run.in_file_system(asked.host, files))


def measured_with(scheduler: SchedulerSpec, kept: dict[str, Any]) -> SchedulerSpec:
    """With the settings of the queue that both rigs had, if these were not the kernel's own."""
    settings = {name: str(value) for name, value in kept.get("queue", {}).items()}
    return replace(scheduler, settings=tuple((settings | dict(scheduler.settings)).items()))


def test_its_verdict_follows_from_its_figures(kept: dict[str, Any]) -> None:
    def off(cell: dict[str, Any], what: str) -> float:
        return deviation(what, cell["sim"][what], cell["kernel"][what])

    def within(bar: Mapping[str, float]) -> list[dict[str, Any]]:
        cells: list[dict[str, Any]] = kept["cells"]
        return [
            cell for cell in cells if all(off(cell, what) <= most for what, most in bar.items())
        ]

    meeting = within(BAR)
    assert kept["wide"]["met"] == len(within(WIDE))
    assert kept["equal"] == sum(cell["sim"] == cell["kernel"] for cell in kept["cells"])
    worst = max(off(cell, what) for cell in kept["cells"] for what in BAR)
    assert kept["met"] == len(meeting)
    assert kept["worst"] == pytest.approx(worst, abs=1e-6)
    assert kept["good"] == (len(meeting) >= SHARE * len(kept["cells"]) and worst <= WORST)


def test_the_simulator_still_gives_the_figures_of_the_table(kept: dict[str, Any]) -> None:
    """A sample, another one each day."""
    of_matrix = planned(kept["table"])
    for cell in Random(date.today().toordinal()).sample(
        kept["cells"], min(_SAMPLE, len(kept["cells"]))
    ):
        one = of_matrix[key(cell)]
        host = run.as_in_guest(kept["host"], one.job)
        asked = replace(one.experiment(kept["seed"]), host=host)
        asked = replace(asked, scheduler=measured_with(asked.scheduler, kept))
        found = vars(figures(SimRig().run(placed(asked, one, kept))))
        for what in found:
            assert found[what] == cell["sim"][what], f"{key(cell)}: {what}"
