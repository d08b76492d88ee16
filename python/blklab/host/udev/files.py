"""The rules files in the order in which udev reads them.

All directories together are sorted by file name. Of files of one name only that of the first
directory counts; an empty one, or a link to /dev/null, takes the name away.
"""

from __future__ import annotations

from pathlib import Path

from blklab.host import reading
from blklab.host.roots import Roots

SUFFIX = ".rules"


def directories(roots: Roots) -> list[Path]:
    """Where udev looks, the first of which wins."""
    tops = (roots.etc, roots.run, roots.usr / "local/lib", roots.usr / "lib", roots.lib)
    return [top / "udev/rules.d" for top in tops]


def ordered(roots: Roots) -> list[Path]:
    """The files that count, in order."""
    found: dict[str, Path] = {}
    for directory in directories(roots):
        for name in reading.names(directory):
            if name.endswith(SUFFIX) and not name.startswith("."):
                found.setdefault(name, directory / name)
    return [found[name] for name in sorted(found, key=lambda name: name.encode(errors="replace"))]
