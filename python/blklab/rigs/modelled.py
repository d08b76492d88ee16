"""The common part of rigs with disk models, which change nothing that must be restored."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from blklab.base.plain import plain
from blklab.base.text import shown
from blklab.domain import core, specs
from blklab.domain.experiment import Disk, Experiment, RigSpec
from blklab.domain.setup import DiskData
from blklab.errors import InputError


class ModelledDisks:
    """Part of a :class:`blklab.rigs.Rig`."""

    spec: RigSpec
    at_once = sys.maxsize

    def alone(self, experiment: Experiment) -> tuple[RigSpec, Experiment]:
        """A model needs no preparation; see :class:`blklab.rigs.Rig`."""
        return self.spec, experiment

    def find_disk(self, spec: str) -> Disk:
        """A disk model; see :class:`blklab.rigs.Rig`."""
        try:
            return specs.disk(spec)
        except InputError as error:
            if Path(spec).is_dir() or Path(spec).is_block_device():
                raise InputError(
                    f"--disk: {shown(spec)} is not a model; to measure it: --rig live"
                ) from error
            raise

    def put_right(self) -> None:
        """A model leaves nothing to undo; see :class:`blklab.rigs.Rig`."""

    def describe_disk(self, disk: Disk) -> DiskData:
        """The data of its file; see :class:`blklab.rigs.Rig`."""
        described: DiskData = plain(core.disk_model(disk))
        return described

    @contextlib.contextmanager
    def prepared(
        self, experiments: Sequence[Experiment], tell: Callable[[str], None]
    ) -> Iterator[None]:
        """Nothing to do; see :class:`blklab.rigs.Rig`."""
        yield
