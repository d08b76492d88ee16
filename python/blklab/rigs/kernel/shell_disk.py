"""What `shell_init` is told of the disk that is to be there."""

from __future__ import annotations

import contextlib
import json

from blklab.base import binaries
from blklab.base.text import shown
from blklab.domain import core, scheduler
from blklab.domain.experiment import Disk
from blklab.errors import RunError
from blklab.rigs.kernel.rundir import RunDirectory

_SERVER = "blklab-disk"
_REASON_BYTES_MAX = 4096


def order(disk: Disk, spec: str, version: str) -> dict[str, bytes | None]:
    """What is in the run directory of a guest with a disk of the model `disk` under the scheduler
    `spec`, for a kernel of that `version`. InputError if one is wrong.
    """
    depth = core.disk_model(disk).limits.queue_depth
    changes = [*disk.overrides]
    if depth > scheduler.GUEST_TAGS:
        changes.append(("queue_depth", str(scheduler.GUEST_TAGS)))
    serve = [f"./{_SERVER}", "create", "--disk", "disk.toml"]
    for key, value in changes:
        serve += ["--set", f"{key}={value}"]
    document = {"serve": serve, **scheduler.parse(spec).for_guest({}, version)}
    return {
        # Where the guest has directories of its own, it would not see the server.
        _SERVER: binaries.find(_SERVER).read_bytes(),
        "disk.toml": disk.file.text.encode(),
        "disk.json": json.dumps(document).encode(),
    }


def check(run: RunDirectory) -> None:
    """RunError if the guest of this directory, which has ended, could not have its disk."""
    with contextlib.suppress(FileNotFoundError):
        why = run.read("failed", _REASON_BYTES_MAX).decode(errors="replace")
        raise RunError(f"in the guest: {shown(why)}")
