"""Rigs: where an experiment runs. Each is one file with a `Rig`, and one line below."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Protocol

from blklab.catalogue import Entry
from blklab.errors import InputError, nearest
from blklab.result import Result


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


class Rig(Protocol):
    """A place where experiments run; one object is used from several threads."""

    name: str

    def run(self, experiment: Experiment) -> Result:
        """Run it to the end. InputError for bad input, RunError if it fails."""

    def position(self) -> tuple[float, float | None]:
        """Seconds of its own clock that the run under way has come, and by when it will have
        ended, if that is known."""

    def cancel(self) -> None:
        """Make every run that is under way end soon, with KeyboardInterrupt."""


_RIGS = {"sim": "blklab.rigs.sim:SimRig"}


NAMES = tuple(_RIGS)
"""All that there are."""


def check(name: str) -> None:
    """InputError if there is no such rig."""
    if name not in NAMES:
        raise InputError(f"no rig '{name}'{nearest(name, NAMES)}")


def rig(name: str) -> Rig:
    """A fresh rig of that name. InputError if there is none."""
    check(name)
    module, kind = _RIGS[name].split(":")
    make: Callable[[], Rig] = getattr(import_module(module), kind)
    return make()
