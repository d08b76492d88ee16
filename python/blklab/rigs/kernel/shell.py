"""A shell of this machine in a guest, with a modelled disk if requested."""

from __future__ import annotations

import contextlib
import json
import sys
import termios
from collections.abc import Callable, Sequence
from pathlib import Path

from blklab.base import binaries
from blklab.base.text import shown
from blklab.domain import core, scheduler
from blklab.domain.experiment import Disk
from blklab.errors import InputError, RunError
from blklab.rigs.kernel import shell_init
from blklab.rigs.kernel.boot import TimeTravel, boot
from blklab.rigs.kernel.cache import Kernel
from blklab.rigs.kernel.rundir import RunDirectory
from blklab.rigs.kernel.view import HERE, View, is_seen

_SERVER = "blklab-disk"
_REASON_BYTES_MAX = 4096


def _order(disk: Disk, spec: str, kernel: Kernel) -> dict[str, bytes | None]:
    """The files in the run directory of a guest with a disk of the model `disk` under the scheduler
    `spec`, on `kernel`. InputError if one is wrong.
    """
    depth = core.disk_model(disk).limits.queue_depth
    changes = [*disk.overrides]
    if depth > scheduler.GUEST_TAGS and not kernel.has_transports:
        changes.append(("queue_depth", str(scheduler.GUEST_TAGS)))
    serve = [f"./{_SERVER}", "create", "--driver", "own", "--disk", "disk.toml"]
    for key, value in changes:
        serve += ["--set", f"{key}={value}"]
    document = {"serve": serve, **scheduler.parse(spec).for_guest({}, kernel.version)}
    return {
        # In the guest's own directories, it would not see the server.
        _SERVER: binaries.find(_SERVER).read_bytes(),
        "disk.toml": disk.file.text.encode(),
        "disk.json": json.dumps(document).encode(),
    }


def _check(run: RunDirectory) -> None:
    """RunError if the guest of this directory, which has ended, could not have its disk."""
    with contextlib.suppress(FileNotFoundError):
        why = run.read("failed", _REASON_BYTES_MAX).decode(errors="replace")
        raise RunError(f"in the guest: {shown(why)}")


def run(
    kernel: Kernel,
    disk: Disk | None,
    spec: str,
    *,
    memory_mib: int,
    time_travel: TimeTravel,
    shared: Sequence[Path],
    timeout_s: float,
    tell: Callable[[str], None],
) -> None:
    """Start it on this process's terminal, and wait for its end. InputError without a terminal, or
    if the disk or its scheduler `spec` is wrong; RunError if the guest fails."""
    order = {} if disk is None else _order(disk, spec, kernel)
    if not sys.stdin.isatty():
        raise InputError("a shell needs a terminal as its standard input")
    terminal, size = termios.tcgetattr(sys.stdin), termios.tcgetwinsize(sys.stdin)
    tell(f"{kernel.text}; leave with: exit")
    init = HERE / "shell_init.py"
    python = Path(sys.executable).resolve()
    # Python may be installed anywhere, with its library.
    unseen = [path for path in (python, Path(sys.base_prefix)) if not is_seen(path)]
    try:
        with boot(
            kernel.image,
            [str(python), "-I", "-S", str(init), *map(str, size), "/bin/sh", "-i"],
            order,
            View({init.name: Path(shell_init.__file__)}, (*shared, *unseen)),
            memory_mib=memory_mib,
            time_travel=time_travel,
            timeout_s=timeout_s,
            interactive=True,
        ) as guest:
            guest.wait()
            _check(guest.run)
    finally:
        # A killed guest leaves its settings of the terminal.
        with contextlib.suppress(termios.error):
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, terminal)
