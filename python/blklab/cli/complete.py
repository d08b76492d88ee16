"""What the shell offers behind an option; nothing where nothing can be found."""

from __future__ import annotations

from collections.abc import Iterable

from blklab.disks import DISKS
from blklab.errors import BlklabError
from blklab.host import reading, roots
from blklab.programs import NAMES
from blklab.rigs import RIGS
from blklab.rigs.live.cache import CACHES
from blklab.studies import STUDIES
from blklab.workloads import WORKLOADS

EXPORT_FORMATS = ("json", "csv", "parquet")
"""Of ``blklab results export``."""


def disk(incomplete: str) -> list[str]:
    """Disks by name."""
    return _beginning(DISKS.names(), incomplete)


def workload(incomplete: str) -> list[str]:
    """Workloads by name."""
    return _beginning([*WORKLOADS.paths(), *NAMES], incomplete)


def study(incomplete: str) -> list[str]:
    """Studies by name."""
    return _beginning(STUDIES.paths(), incomplete)


def scheduler(incomplete: str) -> list[str]:
    """Schedulers by name, then their tunables."""
    from blklab.domain import core

    known = {info["name"]: info for info in core.schedulers()}
    name, colon, settings = incomplete.partition(":")
    if not colon:
        return _beginning(known, incomplete)
    given, comma, _ = settings.rpartition(",")
    tunables = known[name]["tunables"] + core.environment()["queue"] if name in known else []
    return _beginning(
        [f"{name}:{given}{comma}{tunable['name']}=" for tunable in tunables], incomplete
    )


def device(incomplete: str) -> list[str]:
    """This machine's block devices."""
    names = reading.names(roots.HERE.sys / "class/block")
    return _beginning([*names, *(f"/dev/{name}" for name in names)], incomplete)


def host(incomplete: str) -> list[str]:
    """Tunables of the host and its page cache."""
    from blklab.domain import core

    tables = core.environment()
    rows = [row for name, table in tables.items() if name != "queue" for row in table]
    return _beginning([f"{row['name']}=" for row in rows], incomplete)


def kernel(incomplete: str) -> list[str]:
    """Kernels in the cache, by name."""
    from blklab.rigs.kernel import cache

    names = (name for kernel in cache.kernels() for name in kernel.names)
    return _beginning(names, incomplete)


def rig(incomplete: str) -> list[str]:
    """Rigs."""
    return _beginning(RIGS, incomplete)


def driver(incomplete: str) -> list[str]:
    """Drivers of the kernel rig."""
    from blklab.rigs.kernel.rig import DRIVERS

    return _beginning(DRIVERS, incomplete)


def cache(incomplete: str) -> list[str]:
    """States of the page cache on the live rig."""
    return _beginning(CACHES, incomplete)


def objective(incomplete: str) -> list[str]:
    """Objectives."""
    from blklab.experiment.analyse import OBJECTIVES

    return _beginning(OBJECTIVES, incomplete)


def kept(incomplete: str) -> list[str]:
    """Numbers of comparisons in the store, the latest first."""
    from blklab.store import place, read
    from blklab.store.opening import exists, open_store

    try:
        where = place.find()
        rows = read.listed(open_store(where, make=False)) if exists(where) else []
    except BlklabError:
        return []
    return _beginning((str(row.id) for row in rows), incomplete)


def export_format(incomplete: str) -> list[str]:
    """Formats of an export."""
    return _beginning(EXPORT_FORMATS, incomplete)


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
