"""``elevator=`` on the kernel's command line, which kernels since 5.0 ignore."""

from __future__ import annotations

import re
from collections.abc import Iterator

from blklab.host import reading
from blklab.host.devices import modules
from blklab.host.devices.deciders.influence import Influence
from blklab.host.devices.queue import Queue
from blklab.host.roots import Roots

# "block: remove legacy IO schedulers", in Linux 5.0, made the option print that it has no effect.
_IGNORED_SINCE = 5


def influences(_: Queue, roots: Roots) -> Iterator[Influence]:
    """One influence for each ``elevator=``."""
    release = modules.release(roots)
    major = re.match(r"\d+", release)
    ignored = major is None or int(major[0]) >= _IGNORED_SINCE
    why = f"Linux {release} ignores elevator=, as all since 5.0 do" if ignored else ""
    for word in reading.value(roots.proc / "cmdline").split():
        if word.startswith("elevator="):
            value = word.removeprefix("elevator=")
            file = str(roots.proc / "cmdline")
            yield Influence("kernel command line", file, 0, "scheduler", value, not why, why)
