"""The settings that are tried: schedulers, their tunables and the queue's, each with a few values.

All come from the core's one table of tunables. A tunable is tried at its default, at a half, a
quarter, an eighth and a sixteenth of it, and at 2 to 16 times; also at 0 where that is allowed. A
flag has both values. Where the default means the kernel's own choice, powers of four are tried
beside it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from blklab import _core
from blklab.domain import core
from blklab.domain.experiment import SchedulerSpec
from blklab.domain.scheduler import in_core
from blklab.errors import InputError

_STEPS = 4
"""Doublings to each side of a default."""
_POWERS = (4, 16, 64, 256, 1024, 4096)
"""Tried where the default of a tunable, 0 or -1, means the kernel's choice."""
_LONGER = (16_384, 65_536, 262_144)
"""Also tried for such a time in microseconds."""
_FINER = "_us"
"""A tunable of this ending is another one in microseconds."""


@dataclass(frozen=True)
class Knob:
    """A tunable and the values that are tried, in rising order."""

    name: str
    values: tuple[int, ...]
    default: int


@dataclass(frozen=True)
class Space:
    """A scheduler with the tunables that a search may change."""

    base: SchedulerSpec
    """With the settings that the user fixed."""
    knobs: tuple[Knob, ...]

    @property
    def name(self) -> str:
        """The scheduler's name."""
        return self.base.name

    @property
    def points(self) -> int:
        """The number of settings."""
        count = 1
        for knob in self.knobs:
            count *= len(knob.values)
        return count

    def spec(self, values: Mapping[str, int]) -> SchedulerSpec:
        """The scheduler with these values of its knobs; the default of a knob is not named."""
        defaults = {knob.name: knob.default for knob in self.knobs}
        changed = {name: str(value) for name, value in values.items() if value != defaults[name]}
        own = dict(self.base.settings)
        return SchedulerSpec(self.name, tuple(sorted((own | changed).items())))

    def all(self) -> Iterator[SchedulerSpec]:
        """All its settings."""
        names = [knob.name for knob in self.knobs]
        for values in itertools.product(*(knob.values for knob in self.knobs)):
            yield self.spec(dict(zip(names, values, strict=True)))

    def values(self, spec: SchedulerSpec) -> dict[str, int]:
        """The value of each knob in a scheduler of `spec`."""
        told = dict(spec.settings)
        return {knob.name: int(told.get(knob.name, knob.default)) for knob in self.knobs}

    def only(self, names: Iterable[str]) -> Space:
        """With no other knobs than these."""
        kept = frozenset(names)
        return Space(self.base, tuple(knob for knob in self.knobs if knob.name in kept))


def spaces(schedulers: Sequence[SchedulerSpec]) -> tuple[Space, ...]:
    """A space for each scheduler; what it sets already is fixed. InputError for an unknown
    scheduler or tunable, or two of one name."""
    names = [spec.name for spec in schedulers]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"--scheduler: '{name}' is given twice; its settings are searched")
    return tuple(map(_space, schedulers))


def _space(spec: SchedulerSpec) -> Space:
    if spec.kernel is not None:
        raise InputError(f"--scheduler {spec.label}: the search is on the simulator; leave out '@'")
    in_core(spec)
    tables = {info.name: info.tunables for info in _core.schedulers()}
    rows = [*tables[spec.name], *core.environment()["queue"]]
    names = {row.name for row in rows}
    fixed = dict(spec.settings)
    knobs = [
        Knob(row.name, ladder(row), row.default)
        for row in rows
        if row.name not in fixed
        and not (row.name.endswith(_FINER) and row.name.removesuffix(_FINER) in names)
    ]
    return Space(spec, tuple(knobs))


def ladder(row: _core.Tunable) -> tuple[int, ...]:
    """The values of a tunable that are tried, with its default."""
    if row.words:
        return tuple(sorted(number for _, number in row.words))
    if (row.min, row.max) == (0, 1):
        return (0, 1)
    if row.default <= 0:
        tried = {row.default, 0, *_POWERS, *(_LONGER if row.unit == "us" else ())}
    else:
        tried = {row.default << step for step in range(_STEPS + 1)}
        tried |= {row.default >> step for step in range(_STEPS + 1) if row.default >> step}
        tried.add(0)
    return tuple(sorted(value for value in tried if row.min <= value <= row.max))
