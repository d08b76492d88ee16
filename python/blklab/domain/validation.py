"""Texts for disk models that are not validated."""

from __future__ import annotations

from blklab.domain import core
from blklab.domain.experiment import Disk
from blklab.domain.setup import DiskData, SetupData

_MARK = "not validated"


def note(disk: Disk) -> str:
    """One line if a disk's model is not validated, else empty. InputError if its file is wrong."""
    found = core.disk_model(disk).validation
    return "" if found.validated else f"{disk.label}: {found.text}"


def warning(setup: SetupData) -> str:
    """One line that lists the disks of a set-up that are not validated; empty without such
    disks."""
    found = {disk["label"]: _why(disk) for disk in setup["disks"]}
    texts = [f"{label} ({why.removeprefix(_MARK + ': ')})" for label, why in found.items() if why]
    return f"Not validated: {', '.join(texts)}." if texts else ""


def _why(described: DiskData) -> str:
    """Empty for a validated model, for a real disk, and for results of an older version."""
    found = described.get("validation") or {"validated": True, "text": ""}
    return "" if found["validated"] else str(found["text"])
