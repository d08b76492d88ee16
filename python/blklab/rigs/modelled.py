"""What rigs before disk models have in common: they take nothing that has to be given back."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from blklab.rigs import Disk, Experiment


class ModelledDisks:
    """Part of a :class:`blklab.rigs.Rig`."""

    at_once = sys.maxsize

    def find_disk(self, spec: str) -> Disk:
        """A disk model; see :class:`blklab.rigs.Rig`."""
        from blklab import specs

        return specs.disk(spec)

    def describe_disk(self, disk: Disk) -> dict[str, Any]:
        """What its file says; see :class:`blklab.rigs.Rig`."""
        from blklab.rigs import sim

        return sim.describe_disk(disk)

    @contextlib.contextmanager
    def prepared(
        self, experiments: Sequence[Experiment], tell: Callable[[str], None]
    ) -> Iterator[None]:
        """Nothing to do; see :class:`blklab.rigs.Rig`."""
        yield
