"""``blklab.verify``: does the simulator agree with the real kernel?"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blklab.agreement import matrix, run, verdict
from blklab.agreement.measure import Cell
from blklab.agreement.verdict import Verdict, judge
from blklab.api.listener import SILENT, Listener
from blklab.base.files import check_files, write_whole
from blklab.base.limits import JOBS_DEFAULT
from blklab.execute import Local
from blklab.rigs.kernel import cache


@dataclass(frozen=True)
class Agreement:
    """The same workloads on the simulator and in a kernel."""

    cells: tuple[Cell, ...]
    """A workload under a scheduler on a disk each, with both figures."""
    verdict: Verdict
    kernel: str
    """For a person."""
    seed: int

    @property
    def text(self) -> str:
        """The verdict in one sentence."""
        return self.verdict.text(self.kernel)

    def exported(self) -> dict[str, Any]:
        """Plain data: every cell, how far it is off, the bar and whether it meets it."""
        return verdict.exported(self.cells, self.verdict, self.kernel, self.seed)


def verify(
    *,
    workloads: Sequence[str] = (),
    schedulers: Sequence[str] = (),
    disks: Sequence[str] = (),
    quick: bool = False,
    kernel: str | None = None,
    seed: int = 1,
    out: str | os.PathLike[str] | None = None,
    max_parallel: int = JOBS_DEFAULT,
    listener: Listener = SILENT,
) -> Agreement:
    """Run the matrix, or a part of it, on the simulator and in a kernel.

    Args:
        workloads, schedulers, disks: only these; none is all of the matrix.
        quick: a few workloads, some seconds.
        kernel: of ``blklab kernel list``; None is the last one built without changes.
        out: a file for `Agreement.exported` as JSON.

    Raises:
        blklab.errors.InputError: a name is wrong, or no kernel is built.
        blklab.errors.RunError: a run failed.
    """
    file = None if out is None else Path(out)
    if file is not None:
        check_files(file)
    places = matrix.places(disks)
    loads = matrix.quick() if quick and not workloads else matrix.chosen(workloads)
    wanted = run.plan(places, tuple(schedulers), loads)
    tested = cache.chosen(kernel)
    with listener.runs(len(wanted), "each on the simulator and in a guest") as ended:
        cells = run.run(wanted, tested.key, Local(max_parallel), seed, ended)
    found = Agreement(tuple(cells), judge(cells), tested.text, seed)
    if file is not None:
        write_whole(file, verdict.text(found.exported()))
    return found
