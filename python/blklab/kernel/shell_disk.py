"""What `shell_init` is told of the disk that is to be there."""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blklab import binaries
from blklab.errors import RunError
from blklab.kernel import scheduler
from blklab.rigs import Disk, sim

_SERVER = "blklab-disk"
_QUEUE_DEPTH_MAX = 128
"""See the facts about the guest in the notes for developers."""


@dataclass(frozen=True)
class Order:
    """A disk and its scheduler, for a guest."""

    model: str
    """The disk file's text."""
    document: dict[str, Any]
    """``disk.json``."""


def order(disk: Disk, spec: str, version: str) -> Order:
    """A disk of the model `disk` under the scheduler `spec`, for a kernel of that `version`.

    InputError if one is wrong.
    """
    depth: int = sim.describe_disk(disk)["limits"]["queue_depth"]
    changes = [*disk.overrides]
    if depth > _QUEUE_DEPTH_MAX:
        changes.append(("queue_depth", str(_QUEUE_DEPTH_MAX)))
    serve = [f"./{_SERVER}", "create", "--disk", "disk.toml"]
    for key, value in changes:
        serve += ["--set", f"{key}={value}"]
    document = {"serve": serve, **scheduler.parse(spec).for_guest({}, version)}
    return Order(disk.file.text, document)


def check(place: Path | None) -> None:
    """RunError if the guest of this directory, which has ended, could not have its disk."""
    if place is not None and (place / "failed").exists():
        raise RunError(f"in the guest: {(place / 'failed').read_text(encoding='utf-8')}")


@contextlib.contextmanager
def directory(told: Order | None) -> Iterator[Path | None]:
    """A guest's directory with the order in it; None if there is no disk."""
    if told is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="blklab-run-") as name:
        place = Path(name)
        # It may lie where a guest has a directory of its own.
        shutil.copy(binaries.find(_SERVER), place)
        (place / "disk.toml").write_text(told.model, encoding="utf-8")
        (place / "disk.json").write_text(json.dumps(told.document), encoding="utf-8")
        yield place
