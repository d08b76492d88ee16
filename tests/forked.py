"""blklab's commands as forks of one process of the tests' session: each without the half second in
which a new process loads its modules. What depends on the start itself needs a new process."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import blklab.api
import blklab.cli

TESTS = Path(__file__).parent
BLKLAB = str(Path(sys.executable).with_name("blklab"))


@contextmanager
def started(directory: Path) -> Iterator[list[str]]:
    """The words that stand for `blklab` while the server lives, whose socket is in `directory`."""
    place = directory / "forks"
    loaded = [
        f"{package.__name__}.{module.name}"
        for package in (blklab.api, blklab.cli)
        for module in pkgutil.iter_modules(package.__path__)
    ]
    server = subprocess.Popen([sys.executable, "-P", TESTS / "forks.py", place, *loaded])
    try:
        while not place.exists():
            assert server.poll() is None, "the server of forks ended"
            time.sleep(0.02)
        yield [sys.executable, "-IS", str(TESTS / "fork_client.py"), str(place), BLKLAB]
    finally:
        server.kill()
        server.wait()
