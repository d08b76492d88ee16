"""The kept tables of `blklab verify`, which the documentation shows.

``python -m tests.kept_tables`` simulates every cell of both tables again, and where a figure of the
simulator has changed, measures this cell in a guest, too, and writes the table. A change of the
simulator that changes a tenth of the cells needs a tenth of `make verify`. It is no substitute
after a change of the guest or of its kernel: then the other cells' measurements would be old.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

from blklab.agreement import laid_out, matrix, run, verdict
from blklab.agreement.laid_out import Layout
from blklab.agreement.measure import RIGS, Cell, Figures, Uncompared, figures
from blklab.agreement.run import Planned
from blklab.base.files import write_whole
from blklab.base.limits import JOBS_DEFAULT
from blklab.base.plain import plain
from blklab.domain import core
from blklab.domain.defaults import LOCAL
from blklab.domain.experiment import Experiment, Journal, LaidOut
from blklab.errors import InputError, RunError
from blklab.execute import opened
from blklab.rigs.kernel import cache as kernels
from blklab.rigs.kernel import file_systems
from blklab.rigs.sim import SimRig

DATA = Path(__file__).parents[1] / "docs/data"
NAMES = ("verify", "verify-files")
IN_FILE_SYSTEMS = ("ext4", "xfs")
"""Those of `make verify`."""

Key = tuple[str, str, str]
"""Place, load and scheduler."""


@dataclass(frozen=True)
class Table:
    """A kept table beside the cells that `blklab verify` plans for it."""

    name: str
    kept: dict[str, Any]

    @classmethod
    def read(cls, name: str) -> Table:
        """The table in ``docs/data``."""
        return cls(name, json.loads((DATA / f"{name}.json").read_text()))

    @cached_property
    def planned(self) -> dict[Key, Planned]:
        """All cells in their order."""
        in_files = self.name == "verify-files"
        places = matrix.FILE_SYSTEM_PLACES if in_files else matrix.PLACES
        loads = matrix.smaller(matrix.LOADS) if in_files else matrix.LOADS
        every = run.plan(places, (), loads)
        if in_files:
            every = run.in_files(every, IN_FILE_SYSTEMS)
        return {(cell.place, cell.job.name, cell.scheduler): cell for cell in every}

    @property
    def cells(self) -> list[Cell]:
        """Those that are kept, in the order of the file."""
        derived = ("off", "meets_bar")
        return [
            _cell({n: value for n, value in row.items() if n not in derived})
            for row in self.kept["cells"]
        ]

    def simulated(self, cell: Cell) -> Figures:
        """The figures of today's simulator, with the files at the places that the table has."""
        one = self.planned[key(cell)]
        host = run.as_in_guest(self.kept["host"], one.job)
        asked = replace(one.experiment(self.kept["seed"]), host=host)
        return figures(SimRig().run(self._placed(asked, one)))

    def _placed(self, asked: Experiment, cell: Planned) -> Experiment:
        if cell.file_system is None:
            return asked
        [one] = (one for one in self.kept["layouts"] if _of_layout(one) == self._layout_of(cell))
        places = tuple(tuple(map(tuple, file)) for file in one["places"])
        journal = Journal(
            **one["journal"] | {"extents": tuple(map(tuple, one["journal"]["extents"]))}
        )
        files = LaidOut(cell.file_system, "", places, "", journal)
        return replace(asked, files=files, host=run.in_file_system(asked.host, files))

    def _layout_of(self, cell: Planned) -> tuple[str, str, tuple[int, ...]]:
        """The layout that has a cell's files."""
        assert cell.file_system is not None, "only cells in a file system have one"
        job = core.describe_job(cell.job, ignore_unsupported=False)
        sizes = job.file_sizes(core.disk_model(cell.disk), self.kept["seed"])
        return cell.file_system, cell.disk.label, tuple(sizes)

    def written(self, cells: Sequence[Cell], layouts: Sequence[Layout] = ()) -> dict[str, Any]:
        """The table with these cells, and these layouts of files in place of kept ones."""
        kept = self.kept
        new = {_of_layout(one): one for one in plain(layouts)}
        found = verdict.exported(
            cells,
            (),
            verdict.judge(cells),
            kept["kernel"],
            kept["host"],
            kept["seed"],
            [new.get(_of_layout(one), one) for one in kept.get("layouts", ())],
        )
        return found | {"planned": kept["planned"]}

    def measured(self, changed: Sequence[Cell]) -> tuple[list[Cell], tuple[Layout, ...]]:
        """Measures these cells on both rigs, and all others that have files at new places. Returns
        the cells and the layouts of their files. BlklabError if a run fails."""
        every, seed = list(self.planned.values()), self.kept["seed"]
        numbers = {where: number for number, where in enumerate(self.planned)}
        again = {numbers[key(cell)] for cell in changed}
        needed = file_systems.needs(IN_FILE_SYSTEMS) if self.kept.get("layouts") else ()
        kernel = kernels.chosen(None, needed)
        if kernel.text != self.kept["kernel"]:
            raise InputError(f"{self.name}: measured in {self.kept['kernel']}; found {kernel.text}")
        files: dict[int, laid_out.Found] = {}
        if needed:
            wholes = laid_out.layouts_of(every, seed)
            wanted = [one for one in wholes if not again.isdisjoint(one.cells)]
            files = laid_out.lay_out(wanted, kernel.key, JOBS_DEFAULT, lambda _: None)
        layouts = laid_out.layouts(every, files, seed)
        kept = {_of_layout(one): one for one in self.kept.get("layouts", ())}
        moved = {_of_layout(one) for one in plain(layouts) if one != kept[_of_layout(one)]}
        again |= {number for number in files if self._layout_of(every[number]) in moved}
        chosen = sorted(again)
        found: list[Cell | Uncompared] = []
        with opened(LOCAL, JOBS_DEFAULT, print) as local:
            run.run(
                [every[number] for number in chosen],
                kernel.key,
                local.executor(),
                seed,
                lambda _, cell: found.append(cell),
                host=self.kept["host"],
                files={place: files[number] for place, number in enumerate(chosen) if files},
            )
        failed = [cell.text for cell in found if isinstance(cell, Uncompared)]
        if failed:
            raise RunError("; ".join(failed))
        return [cell for cell in found if isinstance(cell, Cell)], layouts


def key(cell: Cell) -> Key:
    """Where a cell is in its table."""
    return cell.place, cell.load, cell.scheduler


def _cell(row: dict[str, Any]) -> Cell:
    return Cell(**row | {rig: Figures(**row[rig]) for rig in RIGS})


def _of_layout(layout: Mapping[str, Any]) -> tuple[str, str, tuple[int, ...]]:
    return layout["file_system"], layout["disk"], tuple(layout["sizes"])


_table = cache(Table.read)


def _as_kept(name: str, cell: Cell) -> bool:
    return _table(name).simulated(cell) == cell.sim


def main() -> int:
    """Bring both tables up to date: exit code 1 if one misses the bar then."""
    good = True
    for name in NAMES:
        table = _table(name)
        with ProcessPoolExecutor() as pool:
            same = list(pool.map(partial(_as_kept, name), table.cells, chunksize=20))
        changed = [cell for cell, is_same in zip(table.cells, same, strict=True) if not is_same]
        print(f"{name}: {len(changed)} of {len(table.cells)} cells are simulated differently")
        if not changed:
            continue
        cells, layouts = table.measured(changed)
        new = {key(cell): cell for cell in cells}
        found = table.written([new.get(key(cell), cell) for cell in table.cells], layouts)
        write_whole(DATA / f"{name}.json", verdict.text(found))
        print(f"{len(cells)} measured: {found['met']} in the bar, worst {found['worst']:.1%}")
        good &= found["good"]
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
