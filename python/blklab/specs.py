"""What users write for disks, workloads and schedulers, taken apart."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from blklab import programs
from blklab.catalogue import Entry
from blklab.disks import DISKS
from blklab.errors import InputError, nearest
from blklab.rigs import Disk
from blklab.workloads import WORKLOADS


def disk(spec: str | os.PathLike[str]) -> Disk:
    """``name``, ``file.toml``, either with ``:key=value,key=value`` behind it."""
    text = os.fspath(spec)
    if Path(text).is_file():
        return Disk(DISKS.read(Path(text)))
    what, colon, changes = text.rpartition(":") if ":" in text else (text, "", "")
    overrides = []
    for change in changes.split(",") if colon else []:
        key, equals, value = change.partition("=")
        if not (key.strip() and equals and value.strip()):
            raise InputError(f"disk '{text}': expected key=value behind ':', found '{change}'")
        overrides.append((key.strip(), value.strip()))
    return Disk(DISKS.find(what), tuple(overrides))


def host(changes: Iterable[str]) -> dict[str, int]:
    """``name=value`` or several with commas: tunables of the host and its page cache."""
    from blklab.rigs import sim

    values = {}
    for change in ",".join(changes).split(","):
        name, _, value = change.partition("=")
        if not change:
            continue
        try:
            values[name.strip()] = int(value)
        except ValueError:
            raise InputError(
                f"--host: expected name=number, found '{change}'; see: blklab host"
            ) from None
    sim.check_host(values)
    return values


def workload(spec: str | os.PathLike[str]) -> Entry:
    """A workload's name, a job file's path, or ``program:parameter=value,...``."""
    text = os.fspath(spec)
    if Path(text).is_file():
        return WORKLOADS.read(Path(text))
    name = text.partition(":")[0]
    paths = WORKLOADS.paths()
    if name in programs.NAMES and text not in paths:
        return programs.entry(text)
    if text in paths or text.endswith(WORKLOADS.suffix) or os.sep in text:
        return WORKLOADS.find(text)
    raise InputError(f"no workload '{text}'{nearest(name, [*paths, *programs.NAMES])}")


def on_kernel(scheduler: str) -> tuple[str, str | None]:
    """``name:tunable=value@kernel`` as what the scheduler is told, and the kernel's name."""
    spec, at, kernel = scheduler.rpartition("@")
    return (spec, kernel) if at else (scheduler, None)
