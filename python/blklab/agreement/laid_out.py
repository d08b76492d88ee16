"""Files of cells in file systems, laid out before the cells run: the same disk for both rigs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from blklab.agreement.run import Planned
from blklab.base import pool
from blklab.domain import core
from blklab.domain.experiment import LaidOut
from blklab.errors import BlklabError, InputError
from blklab.rigs.kernel.rig import KernelRig

_Key = tuple[str, str, tuple[int, ...]]

Found = LaidOut | BlklabError
"""Files at their places, or the reason why there are none."""


def lay_out(cells: Sequence[Planned], kernel: str, seed: int, threads: int) -> dict[int, Found]:
    """The files of each cell in a file system, by the cell's number.

    Cells whose files have the same sizes on the same disk share them. KeyboardInterrupt ends all
    guests first.
    """
    keys = {n: _key(cell, seed) for n, cell in enumerate(cells) if cell.file_system is not None}
    wanted: dict[_Key, Planned] = {}
    for number, key in keys.items():
        wanted.setdefault(key, cells[number])
    rig = KernelRig(kernel)
    every = list(wanted.items())
    found: dict[_Key, Found] = {}

    def one(number: int) -> tuple[_Key, Found]:
        key, cell = every[number]
        try:
            if not key[2]:
                raise InputError(f"--fs: {cell.job.name} has no file, only the disk itself")
            return key, rig.lay_out(key[0], cell.disk, key[2])
        except BlklabError as error:
            return key, error

    def done(pair: tuple[_Key, Found]) -> None:
        found[pair[0]] = pair[1]

    if every:
        pool.run_all(one, range(len(every)), threads, done, rig.cancel)
    return {number: found[key] for number, key in keys.items()}


@dataclass(frozen=True)
class Layout:
    """The places of files that cells share."""

    file_system: str
    mounted: str
    """The options of its mount, as the kernel tells them."""
    disk: str
    sizes: tuple[int, ...]
    """Of each file, in bytes."""
    places: tuple[tuple[tuple[int, int], ...], ...]
    """Of each file: its extents, each with the first sector on the disk and the number of
    sectors."""


def layouts(cells: Sequence[Planned], found: Mapping[int, Found], seed: int) -> tuple[Layout, ...]:
    """All that was laid out, each once."""
    every: dict[_Key, LaidOut] = {
        _key(cells[number], seed): one for number, one in found.items() if isinstance(one, LaidOut)
    }
    return tuple(
        Layout(name, one.mounted, disk, sizes, one.places)
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
