"""A copy of the checkout, in which faults are planted: the checkout itself is only read."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.mutants.faults import Fault

_BUILT = (
    "python/blklab/_core.abi3.so",
    *(
        f"python/blklab/bin/{name}"
        for name in ("blklab-confine", "blklab-disk", "blklab-guest", "blklab-replay")
    ),
)
"""Files that Python's tests need and that git does not have."""


class Tree:
    """Copies the present files of the checkout at `root` into the directory `place`."""

    def __init__(self, root: Path, place: Path) -> None:
        self.place = place
        files = {*_listed(root), *(name for name in _BUILT if (root / name).exists())}
        for name in files:
            _copy(root / name, place / name)
        for path in [*place.rglob("*")]:
            if path.is_file() and str(path.relative_to(place)) not in files:
                path.unlink()

    @contextmanager
    def planted(self, fault: Fault) -> Iterator[None]:
        """The tree with the fault; without it again at the end."""
        path = self.place / fault.file
        source = path.read_text(encoding="utf-8")
        # Read before the build that follows, so that the compiler sees a later time of change.
        path.write_text(fault.planted(source), encoding="utf-8")
        try:
            yield
        finally:
            path.write_text(source, encoding="utf-8")


def _listed(root: Path) -> list[str]:
    """All files that git has or would add."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return [name for name in listed.split("\0") if name and (root / name).is_file()]


def _copy(source: Path, target: Path) -> None:
    """Writes the file unless it has this content: a written file is built again."""
    data = source.read_bytes()
    if target.exists() and target.read_bytes() == data:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    target.chmod(source.stat().st_mode)
