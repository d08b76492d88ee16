"""The tables of `blklab verify` in the documentation are of today's simulator."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from random import Random
from typing import Any

import pytest

from blklab.agreement import verdict
from blklab.agreement.measure import deviation
from blklab.agreement.verdict import BAR, SHARE, WIDE, WORST
from blklab.rigs.kernel.cache import chosen
from tests.kept_tables import DATA, NAMES, Table, key

_SAMPLE = 150


@pytest.fixture(scope="module", params=NAMES)
def table(request: pytest.FixtureRequest) -> Table:
    return Table.read(request.param)


def test_it_has_every_cell_of_the_matrix(table: Table) -> None:
    assert table.kept["planned"] == len(table.planned)
    assert [key(cell) for cell in table.cells] == list(table.planned)


def test_its_verdict_follows_from_its_figures(table: Table) -> None:
    kept = table.kept

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
    worst = max((off(cell, what) for cell in kept["cells"] for what in BAR), default=0)
    assert kept["met"] == len(meeting)
    assert kept["worst"] == pytest.approx(worst, abs=1e-6)
    assert kept["good"] == (len(meeting) >= SHARE * len(kept["cells"]) and worst <= WORST)


def test_the_simulator_still_gives_the_figures_of_the_table(table: Table) -> None:
    """A sample, another one each day."""
    for cell in Random(date.today().toordinal()).sample(table.cells, _SAMPLE):
        assert table.simulated(cell) == cell.sim, key(cell)


def test_a_table_in_which_nothing_has_changed_is_written_as_it_is(table: Table) -> None:
    written = verdict.text(table.written(table.cells))
    assert written == (DATA / f"{table.name}.json").read_text()
    assert json.loads(written) == table.kept


def test_a_cell_that_is_measured_again_has_the_figures_that_are_kept(kernel: str) -> None:
    """As after a change of the simulator, but nothing has changed."""
    assert kernel == chosen(None).key
    table = Table.read("verify")
    [cell] = Random(date.today().toordinal()).sample(
        [cell for cell in table.cells if cell.load == "read-seq"], 1
    )
    assert table.measured([cell]) == ([cell], ())
