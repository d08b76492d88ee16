"""Files of cells in file systems, laid out before the cells run: the same disk for both rigs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from blklab.agreement.run import Planned
from blklab.base import pool
from blklab.domain import core
from blklab.domain.experiment import Journal, LaidOut
from blklab.errors import BlklabError, InputError
from blklab.rigs.kernel.rig import KernelRig

_Key = tuple[str, str, tuple[int, ...]]

Found = LaidOut | BlklabError
"""Files at their places, or the reason why there are none."""


@dataclass(frozen=True)
class Wanted:
    """Files that cells share: on the same disk, and of the same sizes, or the first of them."""

    key: _Key
    cell: Planned
    """One of them."""
    cells: dict[int, int]
    """The numbers of all, each with its number of files."""


def layouts_of(cells: Sequence[Planned], seed: int) -> list[Wanted]:
    """What must be laid out for cells in file systems. InputError if a job is wrong."""
    keys = {n: _key(cell, seed) for n, cell in enumerate(cells) if cell.file_system is not None}
    found: list[Wanted] = []
    # The longest first: those of others may be its first files.
    for number, key in sorted(keys.items(), key=lambda row: -len(row[1][2])):
        shared = next((one for one in found if _has(one.key, key)), None)
        if shared is None:
            shared = Wanted(key, cells[number], {})
            found.append(shared)
        shared.cells[number] = len(key[2])
    return found


def _has(one: _Key, other: _Key) -> bool:
    return one[:2] == other[:2] and one[2][: len(other[2])] == other[2]


def lay_out(
    every: Sequence[Wanted], kernel: str, threads: int, tell: Callable[[object], None]
) -> dict[int, Found]:
    """The files of each cell in a file system, by the cell's number; `tell` is called after each
    layout. KeyboardInterrupt ends all guests first.
    """
    rig = KernelRig(kernel)
    found: dict[int, Found] = {}

    def one(wanted: Wanted) -> tuple[Wanted, Found]:
        name, _, sizes = wanted.key
        try:
            if not sizes:
                raise InputError(f"--fs: {wanted.cell.job.name} has no file, only the disk itself")
            return wanted, rig.lay_out(name, wanted.cell.disk, sizes)
        except BlklabError as error:
            return wanted, error

    def done(pairs: Sequence[tuple[Wanted, Found]]) -> None:
        for wanted, files in pairs:
            for number, count in wanted.cells.items():
                if isinstance(files, LaidOut):
                    found[number] = replace(files, places=files.places[:count])
                else:
                    found[number] = files
            tell(wanted)

    if every:
        pool.run_all(one, every, threads, done, rig.cancel)
    return found


@dataclass(frozen=True)
class Layout:
    """The places of files that cells share."""

    file_system: str
    mounted: str
    """The options of its mount, as the kernel tells them."""
    disk: str
    sizes: tuple[int, ...]
    """The size of each file, in bytes."""
    places: tuple[tuple[tuple[int, int], ...], ...]
    """The extents of each file, each with the first sector on the disk and the number of
    sectors."""
    journal: Journal | None
    """At rest, of file systems whose journals are modelled."""


def layouts(cells: Sequence[Planned], found: Mapping[int, Found], seed: int) -> tuple[Layout, ...]:
    """All that was laid out, each once."""
    every: dict[_Key, LaidOut] = {
        _key(cells[number], seed): one for number, one in found.items() if isinstance(one, LaidOut)
    }
    return tuple(
        Layout(name, one.mounted, disk, sizes, one.places, one.journal)
        for (name, disk, sizes), one in every.items()
    )


def _key(cell: Planned, seed: int) -> _Key:
    assert cell.file_system is not None
    disk = core.disk_model(cell.disk)
    job = core.describe_job(cell.job, ignore_unsupported=False)
    with core.core_types():
        sizes = tuple(job.file_sizes(disk, seed))
    # The layout depends on the disk's size, and on what mkfs learns of it.
    return cell.file_system, cell.disk.label, sizes
