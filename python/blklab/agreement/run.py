"""Run cells, each on the simulator and in a guest, several at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from blklab.agreement.chance import disturbed
from blklab.agreement.matrix import DiskCase, Load
from blklab.agreement.measure import Cell, Uncompared, figures, order
from blklab.base.catalogue import Entry
from blklab.domain import core, recordings, specs
from blklab.domain.experiment import Disk, Experiment, LaidOut, RigSpec
from blklab.domain.result import Result
from blklab.domain.task import Task
from blklab.errors import BlklabError, InputError, RunError
from blklab.execute import Ended, Executor, Failed
from blklab.rigs.kernel import cache

MEMORY = "memory_kb=1048576"
"""The memory of a guest: two such guests run at a time."""


def in_file_system(host: Mapping[str, int], files: LaidOut) -> dict[str, int]:
    """The simulator's host where files are in that file system, and no partitions."""
    name, _, option = files.file_system.partition(":")
    has_journal, lazytime = int(files.journal is not None), int(option == "lazytime")
    given = specs.host(
        [f"partitions=0,file_system={name},journal={has_journal},lazytime={lazytime}"]
    )
    return {**host, **given}


def as_in_guest(host: Mapping[str, int], job: Entry) -> dict[str, int]:
    """The host of both rigs for this job. Its files are partitions if it has I/O that a guest
    cannot send as from files in a file system."""
    if recordings.is_recording(job):
        return dict(host)
    described = core.describe_job(job, ignore_unsupported=False)
    return {**host, "partitions": 1} if core.on_partitions(described) else dict(host)


def host(kernel: cache.Kernel, changed: Mapping[str, int] | None = None) -> dict[str, int]:
    """The host of both rigs: the default one with the values in `changed`, and with what a guest of
    that kernel cannot have otherwise. InputError."""
    own = specs.guest(kernel.as_guest)
    wanted = changed or {}
    if wanted.get("journal"):
        raise InputError("--host: journal=1: that of --fs ext4 or --fs xfs is always compared")
    given = wanted.get("kernel", own["kernel"])
    if given != own["kernel"]:
        told = core.host_text("kernel", given)
        raise InputError(f"--host: kernel={told}, but the kernel is Linux {kernel.version}")
    return specs.host([MEMORY]) | dict(wanted) | specs.fixed(kernel.as_guest)


@dataclass(frozen=True)
class Planned:
    """One cell to run."""

    place: str
    """The disk's name in the table."""
    disk: Disk
    scheduler: str
    job: Entry
    file_system: str | None = None
    """The file system that has its files; None is a bare disk."""

    def experiment(self, seed: int) -> Experiment:
        """Its experiment, on the default host and the bare disk."""
        return Experiment(self.job, self.disk, specs.scheduler(self.scheduler), seed)


def in_files(cells: Sequence[Planned], file_systems: Sequence[str]) -> list[Planned]:
    """The same cells in each of these file systems; the bare disk's if there are none."""
    return [
        replace(cell, place=f"{cell.place}, {name}", file_system=name)
        for name in file_systems
        for cell in cells
    ] or list(cells)


def plan(
    places: Sequence[DiskCase], schedulers: Sequence[str], loads: Sequence[Load]
) -> list[Planned]:
    """All combinations, in the order of the table; without `schedulers`, those of each workload."""
    return [
        Planned(place.name, specs.disk(place.disk), scheduler, load.entry(place.seconds))
        for place in places
        for load in loads
        for scheduler in schedulers or load.schedulers
    ]


def tasks_of(
    planned: Planned,
    kernel: str | None,
    seed: int,
    host: Mapping[str, int],
    files: LaidOut | None,
) -> list[Task]:
    """The two runs of a cell, for their whole results: on the simulator, and in a guest of that
    kernel. `files` are those of a cell in a file system."""
    real = replace(planned.experiment(seed), host=as_in_guest(host, planned.job), files=files)
    ours = real
    if files is not None:
        ours = replace(real, host=in_file_system(host, files))
    guest = RigSpec("kernel", kernel=kernel, driver="native")
    return [Task(RigSpec("sim"), ours, "result"), Task(guest, real, "result")]


def run(
    cells: Sequence[Planned],
    kernel: str | None,
    executor: Executor,
    seed: int,
    done: Callable[[int, Cell | Uncompared], None],
    *,
    host: Mapping[str, int],
    files: Mapping[int, LaidOut | BlklabError] | None = None,
    chance: bool = False,
) -> None:
    """Every cell on that host: `done` is called after each, in this thread, with its number in
    `cells`. `files` has the files of cells in file systems by number, or why there are none. With
    `chance` also on a disturbed disk.

    A cell of which a run fails is `Uncompared`, and the others go on. KeyboardInterrupt ends all
    guests first.
    """

    laid_out = files or {}

    def runs(number: int) -> list[Task]:
        """The results of one cell. They follow each other, so that few results wait for others."""
        planned, where = cells[number], laid_out.get(number)
        assert not isinstance(where, BlklabError), "only cells with files are run"
        found = tasks_of(planned, kernel, seed, host, where)
        if chance:
            ours = found[0].experiment
            slower = replace(ours, disk=disturbed(planned.disk))
            found.append(replace(found[0], experiment=slower))
        return found

    numbers = [n for n in range(len(cells)) if not isinstance(laid_out.get(n), BlklabError)]
    tasks = [task for number in numbers for task in runs(number)]
    of_cell = len(tasks) // max(len(numbers), 1)
    results: dict[int, dict[int, Result]] = {}
    lost: set[int] = set()

    def ended(events: Sequence[Ended]) -> None:
        for event in events:
            one_ended(event)

    def one_ended(event: Ended) -> None:
        assert isinstance(event.found, Result), "whole results were asked for"
        place, run_of_it = divmod(event.number, of_cell)
        number = numbers[place]
        if number in lost:
            return
        runs_of_it = results.setdefault(number, {})
        runs_of_it[run_of_it] = event.found
        if len(runs_of_it) < of_cell:
            return
        del results[number]
        try:
            cell = _cell(cells[number], *(found for _, found in sorted(runs_of_it.items())))
        except RunError as error:
            lose(number, error)
        else:
            done(number, cell)

    def lose(number: int, error: BlklabError) -> None:
        results.pop(number, None)
        if number not in lost:
            lost.add(number)
            done(number, _uncompared(cells[number], error))

    def failed(event: Failed) -> None:
        lose(numbers[event.number // of_cell], event.error)

    for number, found in laid_out.items():
        if isinstance(found, BlklabError):
            lose(number, found)
    executor.run(tasks, ended, failed)


def _uncompared(planned: Planned, error: BlklabError) -> Uncompared:
    return Uncompared(
        place=planned.place,
        disk=planned.disk.label,
        scheduler=planned.scheduler,
        load=planned.job.name,
        file_system=planned.file_system,
        reason=" ".join(str(error).split()),
    )


def _cell(planned: Planned, ours: Result, real: Result, other: Result | None = None) -> Cell:
    return Cell(
        place=planned.place,
        disk=planned.disk.label,
        scheduler=planned.scheduler,
        load=planned.job.name,
        sim=figures(ours),
        kernel=figures(real),
        order=order(ours, real),
        disturbed=None if other is None else figures(other),
        file_system=planned.file_system,
    )
