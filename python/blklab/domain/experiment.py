"""One experiment as plain data: a workload on a disk under a scheduler, with a seed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from blklab.base.catalogue import Entry
from blklab.base.text import utf8


def environment_variables() -> dict[str, str]:
    """What a job file's ``${NAME}`` stands for."""
    return {utf8(name): utf8(value) for name, value in os.environ.items()}


@dataclass(frozen=True)
class Disk:
    """A disk model and what was changed on it."""

    file: Entry
    overrides: tuple[tuple[str, str], ...] = ()

    @property
    def label(self) -> str:
        """As on the command line: ``name:key=value,key=value``."""
        changes = ",".join(f"{key}={value}" for key, value in self.overrides)
        return f"{self.file.name}:{changes}" if changes else self.file.name


@dataclass(frozen=True)
class Window:
    """A stretch of a run of which every request and decision is to be kept."""

    from_ns: int = 0
    until_ns: int = 2**63 - 1
    requests: int = 1000
    """Most that are kept; so many decisions as go with them."""


@dataclass(frozen=True)
class Experiment:
    """One job file on one disk under one scheduler, with one seed."""

    job: Entry
    disk: Disk
    scheduler: str
    """As on the command line: ``mq-deadline:fifo_batch=1``."""
    seed: int
    host: Mapping[str, int] = field(default_factory=dict)
    """Costs and sizes of the modelled host; empty for the defaults."""
    ignore_unsupported: bool = False
    window: Window | None = None
    """What the result's ``detail`` and ``decisions`` are of."""
