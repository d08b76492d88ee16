"""The place that the user names: this process, or a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from blklab.domain.defaults import LOCAL
from blklab.errors import InputError
from blklab.execute.cluster import address
from blklab.execute.interface import Executor, Place
from blklab.execute.local import Local
from blklab.rigs import Rig

if TYPE_CHECKING:
    from blklab.execute.cluster.executor import Cluster

_NEEDED = "distributed"


@dataclass(frozen=True)
class Here:
    """This process."""

    max_parallel: int
    takes_over: bool = False

    def executor(self, rig: Rig | None = None) -> Executor:
        """See `Place`."""
        return Local(self.max_parallel, rig)


@dataclass(frozen=True)
class _OnCluster:
    name: str
    cluster: Cluster
    max_parallel: int
    takes_over: bool = True

    def executor(self, rig: Rig | None = None) -> Executor:
        """See `Place`."""
        if rig is not None and rig.name == "live":
            raise InputError(
                f"--on: {self.name}: --rig live measures a disk of this machine; expected --on "
                f"{LOCAL}"
            )
        return self.cluster


@contextmanager
def opened(on: str, max_parallel: int, tell: Callable[[str], None]) -> Iterator[Place]:
    """The place; its connection ends with the ``with``. `tell` receives notes for the user.
    InputError if there is no such place."""
    where = address.parse(on)
    if where is None:
        yield Here(max_parallel)
        return
    try:
        from blklab.execute.cluster.connection import Connection
        from blklab.execute.cluster.executor import Cluster
    except ModuleNotFoundError as error:
        if error.name != _NEEDED:
            raise
        raise InputError(
            f"--on: {on}: needs Dask, which is not installed: pip install 'blklab[cluster]'"
        ) from None
    connection = Connection(where, on)
    try:
        yield _OnCluster(on, Cluster(connection, tell), max_parallel)
    finally:
        connection.close()
