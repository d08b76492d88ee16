"""The machine's programs that apply settings: udev, modprobe, tuned.

No shell is used. Tests replace `HERE`.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from blklab.host.roots import Roots

_SECONDS_MAX = 60


class Programs(Protocol):
    """Run one and wait for it."""

    def has(self, name: str) -> bool:
        """Whether it is installed."""

    def run(self, words: Sequence[str]) -> str:
        """Empty on success, otherwise the error in one line."""


@dataclass(frozen=True)
class OfMachine:
    """The programs of this machine."""

    def has(self, name: str) -> bool:
        """Whether it is installed."""
        return shutil.which(name) is not None

    def run(self, words: Sequence[str]) -> str:
        """Empty on success, otherwise the error in one line."""
        if not self.has(words[0]):
            return f"{words[0]} is not installed"
        try:
            done = subprocess.run(
                words, check=False, capture_output=True, encoding="utf-8", errors="replace",
                stdin=subprocess.DEVNULL, timeout=_SECONDS_MAX,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"{words[0]} did not end within {_SECONDS_MAX} s"
        if done.returncode == 0:
            return ""
        said = (done.stderr or done.stdout).strip().splitlines()
        return f"{words[0]}: {said[-1] if said else f'exit code {done.returncode}'}"


HERE = OfMachine()


def udev_runs(roots: Roots) -> bool:
    """Whether a udev daemon listens; in containers there is none."""
    return (roots.run / "udev/control").exists()
