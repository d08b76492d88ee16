"""Disturbances during a run: other I/O, other programs, heat."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from blklab.base.text import shown
from blklab.domain.conditions import DeviceState, FrequencyData
from blklab.domain.result import Job
from blklab.host.roots import HERE, Roots
from blklab.rigs.live.counters import Counters, of
from blklab.rigs.live.target import Target

_OTHERS_PART = 0.05
"""A larger share of other programs' use of a disk or of the CPUs may affect the result."""
_OTHERS_BYTES_MIN = 1 << 20
# Steps, so that many runs have few distinct lines.
_CPU_STEPS = (_OTHERS_PART, 0.1, 0.25, 0.5)
_MILLI = 1000.0


@dataclass(frozen=True)
class Snapshot:
    """The machine's state at one moment."""

    disks: Counters
    device: Counters
    """Counters of the target's own device, which may be a partition of a disk."""
    busy_s: float
    """CPU time that all programs have used since the start, over all CPUs."""
    total_s: float
    """Total CPU time, busy and idle."""
    load: float
    """Load average of the last minute."""
    temperatures: Mapping[str, float]
    """Temperature of the disks in °C, if they report it."""

    def to_json(
        self, settings: Mapping[str, Mapping[str, str]], cpu_khz: FrequencyData | None = None
    ) -> DeviceState:
        """The form in results, with the `settings` of each disk at that moment, and the CPUs'
        frequency if it is known."""
        state: DeviceState = {
            "settings": settings,
            "counters": asdict(self.disks),
            "temperatures_c": self.temperatures,
            "load": self.load,
        }
        if cpu_khz is not None:
            state["cpu_khz"] = cpu_khz
        return state


def snapshot(target: Target, roots: Roots = HERE) -> Snapshot:
    """The state of the target's disks and the machine."""
    busy_s, total_s = _cpu_s(roots)
    load = float((roots.proc / "loadavg").read_text().split()[0])
    disks = of(target.disks, roots)
    device = disks if target.device is None else of([target.device], roots)
    heat = {name: temperature(name, roots) for name in target.disks}
    known = {name: value for name, value in heat.items() if value is not None}
    return Snapshot(disks, device, busy_s, total_s, load, known)


def notes(
    target: Target,
    before: Snapshot,
    after: Snapshot,
    jobs: Sequence[Job],
    *,
    direct: bool,
    own_cpu_s: float,
    roots: Roots = HERE,
) -> list[str]:
    """A line for each thing that may have disturbed the run."""
    found = _other_io(before, after, jobs, direct=direct)
    total_s = after.total_s - before.total_s
    others_s = after.busy_s - before.busy_s - own_cpu_s
    part = others_s / total_s if total_s > 0 else 0.0
    if passed := [step for step in _CPU_STEPS if part >= step]:
        found.append(f"other programs used over {max(passed):.0%} of the CPUs meanwhile")
    if before.load > (os.cpu_count() or 1):
        found.append("the load before the run was larger than the number of CPUs")
    for disk in target.disks:
        found += _heat(disk, roots)
    return found


def _other_io(before: Snapshot, after: Snapshot, jobs: Sequence[Job], *, direct: bool) -> list[str]:
    """Bytes on the disks that the jobs do not explain: on other partitions, and for direct I/O in
    total."""
    disks = after.disks.since(before.disks)
    device = after.device.since(before.device)
    found = []
    for name in ("read", "write"):
        moved = getattr(disks, f"{name}_bytes")
        asked = sum(job.direction(name).bytes for job in jobs)
        others = moved - getattr(device, f"{name}_bytes")
        if direct:
            others = max(others, moved - asked)
        if others > max(_OTHERS_PART * moved, _OTHERS_BYTES_MIN):
            what = {"read": "read from", "write": "written to"}[name]
            found.append(
                f"other programs have {what} the disk meanwhile, over {_OTHERS_PART:.0%} of all"
            )
    return found


def _heat(disk: str, roots: Roots) -> list[str]:
    """Whether the disk is at its temperature limit, at which it may slow down."""
    for sensor in _sensors(disk, roots):
        now, most = _number(sensor), _number(sensor.with_name("temp1_max"))
        if now is not None and most is not None and now >= most > 0:
            return [f"{shown(disk)} is at {now / _MILLI:.0f} °C, its limit: it may slow down"]
    return []


def temperature(disk: str, roots: Roots = HERE) -> float | None:
    """In °C, if the disk has a sensor that the kernel reads (nvme; drivetemp)."""
    for sensor in _sensors(disk, roots):
        if (value := _number(sensor)) is not None:
            return value / _MILLI
    return None


def _sensors(disk: str, roots: Roots) -> list[Path]:
    place = roots.sys / "block" / disk / "device"
    # For nvme before and since 5.17; for drivetemp.
    patterns = ("hwmon*/temp1_input", "hwmon/hwmon*/temp1_input", "device/hwmon/*/temp1_input")
    return sorted(path for pattern in patterns for path in place.glob(pattern))


def governors(roots: Roots = HERE) -> list[str]:
    """The CPU frequency governor: ``performance``, ``schedutil``; empty if there is none."""
    files = (roots.sys / "devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor")
    return sorted(
        {shown(file.read_text(encoding="utf-8", errors="replace").strip()) for file in files}
    )


def _cpu_s(roots: Roots) -> tuple[float, float]:
    """Busy and total CPU time of ``/proc/stat``; waiting for I/O does not count as busy."""
    row = (roots.proc / "stat").read_text().split("\n", 1)[0].split()[1:9]
    ticks = [int(value) for value in row]
    idle = ticks[3] + ticks[4]
    hz = os.sysconf("SC_CLK_TCK")
    return (sum(ticks) - idle) / hz, sum(ticks) / hz


def _number(path: Path) -> float | None:
    try:
        return float(path.read_text())
    except (OSError, ValueError):
        return None
