"""Names of everything that can be chosen, for the shell's completion and for other programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from blklab import programs
from blklab.disks import DISKS
from blklab.domain import core, plugins
from blklab.domain.comparison import OBJECTIVES
from blklab.errors import BlklabError
from blklab.host import reading, roots
from blklab.rigs import RIGS
from blklab.rigs.kernel import DEFAULT_VERSION, DRIVERS, cache
from blklab.rigs.live.cache import CACHES
from blklab.studies import STUDIES
from blklab.workloads import WORKLOADS

DEFAULT_KERNEL = DEFAULT_VERSION
"""The default version of `blklab.build_kernel`."""
EXPORT_FORMATS = ("json", "csv", "parquet")
"""The formats of `blklab.export`."""


def _workloads() -> list[str]:
    return [*WORKLOADS.paths(), *programs.NAMES]


def _schedulers() -> list[str]:
    return [info.name for info in core.schedulers() + plugins.infos()]


def _host() -> list[str]:
    tables = core.environment()
    return [row.name for name, table in tables.items() if name != "queue" for row in table]


def _devices() -> list[str]:
    return reading.names(roots.HERE.sys / "class/block")


def _kernels() -> list[str]:
    return [name for kernel in cache.kernels() for name in kernel.names]


def _comparisons() -> list[str]:
    from blklab.store import place, read
    from blklab.store.opening import exists, open_store

    try:
        where = place.find()
        rows = read.listed(open_store(where, make=False)) if exists(where) else []
    except BlklabError:
        return []
    return [str(row.id) for row in rows]


_KINDS: Mapping[str, Callable[[], Iterable[str]]] = {
    "disk": DISKS.names,
    "workload": _workloads,
    "study": STUDIES.paths,
    "scheduler": _schedulers,
    "host": _host,
    "device": _devices,
    "kernel": _kernels,
    "rig": lambda: RIGS,
    "driver": lambda: DRIVERS,
    "cache": lambda: CACHES,
    "objective": lambda: OBJECTIVES,
    "comparison": _comparisons,
    "export format": lambda: EXPORT_FORMATS,
    "trace format": lambda: [row.name for row in core.trace_formats()],
}


def rig_summaries() -> dict[str, str]:
    """The purpose of each rig, by its name."""
    return {name: known.summary for name, known in RIGS.items()}


def names(kind: str) -> list[str]:
    """The names of a kind: ``disk``, ``workload``, ``study``, ``scheduler``, ``host`` (its
    values), ``device`` (of this machine), ``kernel`` (built), ``rig``, ``driver`` (of the kernel
    rig), ``cache`` (states of the page cache), ``objective``, ``comparison`` (numbers in the
    default store, the latest first), ``export format``, ``trace format``. KeyError for another
    kind."""
    return list(_KINDS[kind]())


def tunables(scheduler: str) -> list[str]:
    """The tunables of a scheduler of the simulator, with the queue's; empty for other names."""
    own = [info.tunables for info in core.schedulers() + plugins.infos() if info.name == scheduler]
    queue = core.environment()["queue"]
    return [row.name for rows in own for row in rows + queue]
