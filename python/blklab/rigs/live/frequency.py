"""The CPUs' frequency during a run, where the kernel reports it (``cpufreq``).

A CPU that slows down (heat, a power limit, a power-saving governor) makes every I/O take longer. An
idle CPU is always slow, so only the fastest counts.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

from blklab.domain.conditions import FrequencyData
from blklab.host.roots import HERE, Roots

_INTERVAL_S = 1.0
_CPUS_MAX = 64
"""Only these first CPUs are read: the kernel may have to wake each."""
# Steps, so that many runs have few distinct lines.
_STEPS = (0.1, 0.25, 0.5)


class Frequency:
    """Samples it during the ``with``, in a separate thread."""

    def __init__(self, roots: Roots = HERE, interval_s: float = _INTERVAL_S) -> None:
        files = (roots.sys / "devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_cur_freq")
        self._files = sorted(files)[:_CPUS_MAX]
        self._interval_s = interval_s
        self._seen_khz: list[int] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="blklab-frequency", daemon=True)

    def __enter__(self) -> Frequency:
        if self._files:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._files:
            self._thread.join()

    def _watch(self) -> None:
        self.look()
        while not self._ended.wait(self._interval_s):
            self.look()

    def look(self) -> None:
        """Take one more sample."""
        if (khz := _fastest_khz(self._files)) is not None:
            self._seen_khz.append(khz)

    def seen(self) -> FrequencyData | None:
        """The form in results; None if no CPU reports it."""
        seen = self._seen_khz
        return {"min": min(seen), "max": max(seen)} if seen else None

    def notes(self) -> list[str]:
        """A line if it has changed."""
        seen = self._seen_khz
        slower = 1 - min(seen) / max(seen) if seen else 0.0
        if passed := [step for step in _STEPS if slower >= step]:
            return [f"the CPUs' frequency fell or rose by over {max(passed):.0%} meanwhile"]
        return []


def _fastest_khz(files: Sequence[Path]) -> int | None:
    """The frequencies of the CPUs that report one; a removed CPU does not."""
    found = []
    for file in files:
        try:
            khz = int(file.read_text())
        except (OSError, ValueError):
            continue
        if khz > 0:
            found.append(khz)
    return max(found, default=None)
