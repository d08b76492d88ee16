"""What users write for disks, workloads and schedulers, taken apart."""

from __future__ import annotations

import os
from pathlib import Path

from blklab.catalogue import Entry
from blklab.disks import DISKS
from blklab.errors import InputError
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


def workload(spec: str | os.PathLike[str]) -> Entry:
    """A workload's name, or a job file's path."""
    text = os.fspath(spec)
    return WORKLOADS.read(Path(text)) if Path(text).is_file() else WORKLOADS.find(text)
