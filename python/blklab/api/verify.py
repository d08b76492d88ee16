"""``blklab.verify``: does the simulator agree with the real kernel?"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from blklab.agreement import jobs as own_jobs
from blklab.agreement import laid_out, matrix, parted, run, shares, verdict
from blklab.agreement.laid_out import Layout
from blklab.agreement.measure import Cell, Uncompared
from blklab.agreement.parted import Parted
from blklab.agreement.shares import Shares
from blklab.agreement.verdict import Verdict, judge
from blklab.api.listener import SILENT, Listener
from blklab.base.catalogue import Entry
from blklab.base.files import check_files, write_whole
from blklab.base.limits import JOBS_DEFAULT, VERIFY_JOBS_MAX
from blklab.base.plain import plain
from blklab.base.signals import Signals
from blklab.domain import recordings, specs
from blklab.domain.defaults import LOCAL
from blklab.domain.experiment import RigSpec
from blklab.errors import InputError, StoppedError
from blklab.execute import Executor, opened
from blklab.rigs import check_workload
from blklab.rigs.kernel import cache
from blklab.rigs.kernel import file_systems as file_systems_of


@dataclass(frozen=True)
class Agreement:
    """The same workloads on the simulator and in a kernel."""

    cells: tuple[Cell, ...]
    """Each cell: a workload under a scheduler on a disk, with the figures of both rigs."""
    verdict: Verdict
    kernel: str
    """For a person."""
    host: Mapping[str, int]
    """That of both rigs."""
    seed: int
    jobs: Mapping[str, str] = field(default_factory=dict)
    """The text of each job file by name; empty for the matrix."""
    uncompared: tuple[Uncompared, ...] = ()
    """The cells without figures, because a run has failed."""
    planned: int = 0
    """All cells; more than there are in `cells` and `uncompared` after an interrupt."""
    layouts: tuple[Layout, ...] = ()
    """The files in file systems: options of the mount, and places; empty on bare disks."""
    differences: tuple[Parted, ...] = ()
    """Where the rigs part, in the cells that are furthest off, if that was requested."""

    @property
    def shares(self) -> tuple[Shares, ...]:
        """The share of figures within 2, 5 and 10 per cent, by disk and scheduler."""
        return shares.shares(self.cells)

    @property
    def text(self) -> str:
        """The verdict in one sentence."""
        return self.verdict.text(self.kernel)

    def exported(self) -> dict[str, Any]:
        """Plain data: every cell with its deviation, the bar, and whether the cell meets it."""
        data = verdict.exported(
            self.cells,
            self.uncompared,
            self.verdict,
            self.kernel,
            self.host,
            self.seed,
            self.layouts,
        )
        data["planned"] = self.planned
        if self.differences:
            data["differences"] = plain(self.differences)
        return data | shares.exported(self.cells, self.jobs) if self.jobs else data


def verify(
    *,
    jobs: Sequence[str | os.PathLike[str]] = (),
    random: int = 0,
    workloads: Sequence[str] = (),
    schedulers: Sequence[str] = (),
    disks: Sequence[str] = (),
    quick: bool = False,
    sample: int = 0,
    kernel: str | None = None,
    seed: int = 1,
    out: str | os.PathLike[str] | None = None,
    misses: str | os.PathLike[str] | None = None,
    chance: bool = False,
    buffered: bool = False,
    differences: int = 0,
    host: Mapping[str, int] | None = None,
    file_systems: Sequence[str] = (),
    max_parallel: int = JOBS_DEFAULT,
    on: str = LOCAL,
    listener: Listener = SILENT,
) -> Agreement:
    """Run jobs on the simulator and in a kernel: job files, drawn ones, or the matrix.

    Args:
        jobs: job files, workloads' names or traces.
        random: number of jobs to draw by `seed` for each disk.
        workloads, schedulers, disks: only these of the matrix; empty means all. `schedulers` and
            `disks` also apply to `jobs` and `random`.
        quick: only a few workloads and disks of the matrix; takes some seconds.
        sample: only this many cells of the matrix, drawn by `seed`; 0 means all.
        kernel: a kernel of ``blklab kernel list``; None is the newest one without changes.
        seed: seed of all runs and of drawn jobs.
        out: a file for `Agreement.exported` as JSON; after an interrupt it has the cells that
            were compared until then.
        misses: a directory for the job files of the cells that miss the bar or cannot be compared.
        chance: also run the simulator on a disk that is slower by almost nothing, to show the
            effect of chance; for `jobs` and `random`.
        buffered: half of the processes of drawn jobs use the page cache.
        differences: of this many cells, those that are furthest off, the first request that the
            rigs do not issue alike; they run once more for it.
        host: values of the modelled host on both rigs in place of the default ones.
        file_systems: ``ext4``, ``xfs``, ``btrfs``, ``btrfs:nodatacow`` or ``f2fs``: files are in
            each of them, laid out before, at the same places of the disk on both rigs; the matrix
            has three disks then. Empty means the bare disk.
        max_parallel, on: as of `compare`; files are laid out on this machine.

    Raises:
        blklab.errors.InputError: a name is wrong, or no kernel is built.
        blklab.errors.StoppedError: an interrupt; `out` and `misses` are written.
        KeyboardInterrupt: an interrupt, and there is nothing to write.

    A cell of which a run fails is in `Agreement.uncompared`; the others are compared all the same.
    """
    own = bool(jobs or random)
    file = None if out is None else Path(out)
    if file is not None:
        check_files(file)
    kinds = [file_systems_of.find(name, "--fs").kind for name in file_systems]
    _check(
        bool(jobs),
        random,
        matrix_chosen=bool(workloads or quick or sample),
        only_own={"--misses": misses is not None, "--chance": chance},
    )
    _check_buffered(buffered, random)
    wanted = _plan(
        jobs,
        random,
        workloads,
        schedulers,
        disks,
        quick,
        sample,
        seed,
        file_systems,
        buffered=buffered,
    )
    job_files = [cell.job for cell in wanted if not recordings.is_recording(cell.job)]
    tested = cache.chosen(kernel, file_systems_of.needs(file_systems))
    for kind in kinds:
        # Otherwise each of its cells would fail.
        file_systems_of.check(kind, tested, "--fs")
    both = run.host(tested, host)
    ended: dict[int, Cell | Uncompared] = {}
    files: dict[int, laid_out.Found] = {}
    where_parted: list[Parted] = []

    def found() -> Agreement:
        in_order = [ended[number] for number in sorted(ended)]
        cells = tuple(cell for cell in in_order if isinstance(cell, Cell))
        uncompared = tuple(cell for cell in in_order if isinstance(cell, Uncompared))
        return Agreement(
            cells,
            judge(cells, uncompared),
            tested.text,
            both,
            seed,
            {job.name: job.text for job in job_files} if own else {},
            uncompared,
            len(wanted),
            laid_out.layouts(wanted, files, seed),
            tuple(where_parted),
        )

    def keep() -> Agreement:
        agreement = found()
        if file is not None:
            write_whole(file, verdict.text(agreement.exported()))
        if misses is not None:
            _keep(agreement, Path(misses))
        return agreement

    # From here on a signal ends the guests and writes what was compared.
    with opened(on, max_parallel, listener.note) as place, Signals.guarding():
        try:
            if file_systems:
                wholes = laid_out.layouts_of(wanted, seed)
                with listener.runs(len(wholes), "layouts of files, which the cells share") as tell:
                    files.update(laid_out.lay_out(wholes, tested.key, max_parallel, tell))
            with listener.runs(len(wanted), "each on the simulator and in a guest") as tell:

                def done(number: int, cell: Cell | Uncompared) -> None:
                    ended[number] = cell
                    if isinstance(cell, Uncompared):
                        listener.note(cell.text)
                    tell(cell)

                run.run(
                    wanted,
                    tested.key,
                    place.executor(),
                    seed,
                    done,
                    host=both,
                    files=files,
                    chance=chance,
                )
            again = parted.Again(wanted, ended, tested.key, seed, both, files)
            where_parted += _compared(again, differences, place.executor(), listener)
        except (KeyboardInterrupt, SystemExit) as stop:
            if not ended or (file is None and misses is None):
                raise
            keep()
            if isinstance(stop, SystemExit):
                raise
            where = f"{misses} has the misses" if file is None else f"{file} has the figures"
            count = f"{len(ended)} of {len(wanted)} cells"
            raise StoppedError(f"interrupted; {where} of {count}") from None
        return keep()


def _compared(
    again: parted.Again, count: int, executor: Executor, listener: Listener
) -> list[Parted]:
    """The `count` cells that are furthest off, request by request."""
    numbers = parted.furthest(again.ended, count)
    if not numbers:
        return []
    with listener.runs(len(numbers), "cells once more, request by request") as tell:
        return parted.parted(again, numbers, executor, tell)


def drawn_jobs(
    count: int, *, disks: Sequence[str] = (), seed: int = 1, buffered: bool = False
) -> dict[str, str]:
    """The job files that `verify` draws, by name, without running them.

    Raises:
        blklab.errors.InputError: a name is wrong.
    """
    _check(False, count, matrix_chosen=False, only_own={})
    _check_buffered(buffered, count)
    cells = own_jobs.plan_drawn(disks, (), seed, count, buffered=buffered)
    return {cell.job.name: cell.job.text for cell in cells}


def _plan(
    jobs: Sequence[str | os.PathLike[str]],
    random: int,
    workloads: Sequence[str],
    schedulers: Sequence[str],
    disks: Sequence[str],
    quick: bool,
    sample: int,
    seed: int,
    file_systems: Sequence[str],
    *,
    buffered: bool,
) -> list[run.Planned]:
    if random or jobs:
        entries = _entries(jobs)
        for job in entries:
            if file_systems and recordings.is_recording(job):
                raise InputError(f"--fs: {job.name} is replayed on the disk itself, below files")
        cells = (
            own_jobs.plan_drawn(disks, schedulers, seed, random, buffered=buffered)
            if random
            else own_jobs.plan(disks, schedulers, entries)
        )
        return run.in_files(cells, file_systems)
    places = matrix.places(disks, in_files=bool(file_systems))
    loads = matrix.chosen(workloads)
    if file_systems:
        loads = matrix.smaller(loads)
    if quick:
        of_quick, loads_of_quick = matrix.quick()
        places, loads = places if disks else of_quick, loads if workloads else loads_of_quick
        loads = matrix.smaller(loads) if file_systems else loads
    cells = run.in_files(run.plan(places, tuple(schedulers), loads), file_systems)
    if sample > len(cells):
        raise InputError(f"--sample: {sample} of {len(cells)} cells")
    return Random(seed).sample(cells, sample) if sample else cells


def _entries(jobs: Sequence[str | os.PathLike[str]]) -> list[Entry]:
    found = [specs.workload(job) for job in jobs]
    names = [job.name for job in found]
    for job in found:
        check_workload(RigSpec("kernel"), job)
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{name}: two jobs have this name")
    return found


def _check(jobs: bool, random: int, *, matrix_chosen: bool, only_own: Mapping[str, bool]) -> None:
    if not 0 <= random <= VERIFY_JOBS_MAX:
        raise InputError(f"--random: {random} is out of range (1 to {VERIFY_JOBS_MAX})")
    if sum((jobs, random > 0, matrix_chosen)) > 1:
        raise InputError(
            "expected one of: job files, --random, or the matrix's --load, --quick and --sample"
        )
    for option, given in only_own.items():
        if given and not (jobs or random):
            raise InputError(f"{option}: only works with job files and --random")


def _check_buffered(buffered: bool, random: int) -> None:
    if buffered and not random:
        raise InputError("--buffered: only works with --random")


def _keep(found: Agreement, directory: Path) -> None:
    """The job file of each cell that misses the bar or could not be compared; a recording is a file
    already."""
    directory.mkdir(parents=True, exist_ok=True)
    missed = {cell.load for cell in found.verdict.missed}
    for name in missed | {cell.load for cell in found.uncompared}:
        if name in found.jobs:
            write_whole(directory / f"{name}.fio", found.jobs[name])
