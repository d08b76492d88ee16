"""How much of the CPUs other programs use during a measurement.

The device's own work is done by threads of the kernel; what they and fio do not account for is of
other programs.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_IDLE = (3, 4)
_FIELDS = 8


@dataclass(frozen=True)
class Moment:
    """CPU time so far, in s."""

    all_s: float
    busy_s: float
    kernel_s: float
    """Spent by the kernel's threads."""

    @classmethod
    def now(cls) -> Moment:
        """Read from /proc."""
        words = Path("/proc/stat").read_text().split("\n", 1)[0].split()
        spent = [int(word) / _TICKS_PER_S for word in words[1 : _FIELDS + 1]]
        busy = sum(value for place, value in enumerate(spent) if place not in _IDLE)
        return cls(sum(spent), busy, _kernel_s())

    def others(self, since: Moment, own_s: float) -> float:
        """The share of all CPU time since then that neither the programs with `own_s` nor the
        kernel's threads used."""
        all_s = self.all_s - since.all_s
        used = self.busy_s - since.busy_s - own_s - (self.kernel_s - since.kernel_s)
        return min(max(used / all_s, 0.0), 1.0) if all_s > 0 else 0.0


def _kernel_s() -> float:
    total = 0
    for directory in Path("/proc").iterdir():
        if not directory.name.isdigit():
            continue
        try:
            if not (directory / "cmdline").read_bytes():
                total += int((directory / "schedstat").read_text().split()[0])
        except (OSError, ValueError, IndexError):
            continue
    return total / 1e9
