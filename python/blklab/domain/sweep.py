"""One workload at several sizes: ``name:number=4..256`` is 4, 8, 16 and so on up to 256.

For fio's options and the parameters of programs. The range is expanded before the text is parsed,
so that each size is a separate workload with the size in its name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from blklab.errors import InputError

_RANGE = re.compile(r"(?<=[:,])(\s*\w+\s*)=\s*(\d{1,18})\.\.(\d{1,18})\s*(?=,|$)")
_SPEC = re.compile(r"(.+?):(\s*\w+\s*=.*)", re.DOTALL)
_PAIR = re.compile(r"\s*(\w+)\s*=([^=]*?)\s*(?:,(?=\s*\w+\s*=)|$)")
_NUMBER = re.compile(r"\d{1,18}")
_FILE_SYSTEM = re.compile(r"(.+)( on (?:ext4|xfs|btrfs)(?::\S*)?)", re.DOTALL)


@dataclass(frozen=True)
class Sweep:
    """Workloads that differ in one number."""

    load: str
    """The common part of their names."""
    parameter: str
    """The option or parameter."""
    members: tuple[tuple[int, str], ...]
    """The number and the name of each workload, the smallest first."""


def expanded(spec: str) -> list[str]:
    """The workloads of `spec`; only itself without a range. InputError for two ranges, or for one
    that does not rise."""
    ranges = list(_RANGE.finditer(spec))
    if not ranges:
        return [spec]
    if len(ranges) > 1:
        raise InputError(f"--workload {spec}: expected one range, found {len(ranges)}")
    [found] = ranges
    name, low, high = found[1], int(found[2]), int(found[3])
    if not 0 < low < high:
        raise InputError(
            f"--workload {spec}: {name.strip()}: expected a range that goes up, from 1 or more, "
            f"found {low}..{high}"
        )
    head, tail = spec[: found.start()], spec[found.end() :]
    return [f"{head}{name}={number}{tail}" for number in _doubled(low, high)]


def taken_apart(spec: str) -> tuple[str, str]:
    """A workload's name or path, and its changes; empty without changes."""
    found = _SPEC.fullmatch(spec)
    return (found[1], found[2]) if found else (spec, "")


def sweeps(names: Sequence[str]) -> list[Sweep]:
    """The sweeps among workloads of these names; a workload may be in several, and each has at
    least two sizes."""
    groups: dict[tuple[str, str], dict[int, str]] = {}
    for name in names:
        found = _FILE_SYSTEM.fullmatch(name)
        spec, place = (found[1], found[2]) if found else (name, "")
        load, changes = taken_apart(spec)
        load += place
        values = {found[1]: found[2].strip() for found in _PAIR.finditer(changes)}
        for parameter, value in values.items():
            if _NUMBER.fullmatch(value):
                rest = ",".join(
                    f"{key}={values[key]}" for key in sorted(values) if key != parameter
                )
                group = groups.setdefault((f"{load}:{rest}" if rest else load, parameter), {})
                group.setdefault(int(value), name)
    return [
        Sweep(load, parameter, tuple(sorted(members.items())))
        for (load, parameter), members in groups.items()
        if len(members) > 1
    ]


def _doubled(low: int, high: int) -> list[int]:
    """Doubling values up to `high`, which is always the last."""
    numbers = []
    while low < high:
        numbers.append(low)
        low *= 2
    return [*numbers, high]
