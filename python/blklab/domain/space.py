"""The settings that are tried: schedulers, their tunables and the queue's, each with a few values.

All come from the core's one table of tunables. A tunable is tried at its default, at a half, a
quarter, an eighth and a sixteenth of it, and at 2 to 16 times; also at 0 where that is allowed. A
flag has both values. Where the default means the kernel's own choice, powers of four are tried
beside it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from blklab import _core
from blklab.domain import core, plugins
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

    @property
    def ends(self) -> tuple[int, ...]:
        """Both ends of its range. A default of 0 or -1 is the kernel's own choice and none of them:
        it comes first if there are values on both sides of what it stands for."""
        if self.default > 0 or len(self.values) <= len((0, 1)):
            return tuple(dict.fromkeys((self.values[0], self.values[-1])))
        own = [value for value in self.values if value != self.default]
        return tuple(dict.fromkeys((self.default, own[0], own[-1])))


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
        return replace(self.base, settings=tuple(sorted((own | changed).items())))

    def all(self) -> Iterator[SchedulerSpec]:
        """All its settings."""
        names = [knob.name for knob in self.knobs]
        for values in itertools.product(*(knob.values for knob in self.knobs)):
            yield self.spec(dict(zip(names, values, strict=True)))

    def values(self, spec: SchedulerSpec) -> dict[str, int]:
        """The value of each knob in a scheduler of `spec`."""
        told = dict(spec.settings)
        return {knob.name: int(told.get(knob.name, knob.default)) for knob in self.knobs}

    def ends(self, spec: SchedulerSpec) -> list[tuple[str, int, SchedulerSpec]]:
        """From a scheduler of `spec`, each knob at each other end of its range, alone: the name
        of the knob, its value and the scheduler."""
        values = self.values(spec)
        return [
            (knob.name, end, self.spec({**values, knob.name: end}))
            for knob in self.knobs
            for end in knob.ends
            if end != values[knob.name]
        ]

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


def ends_of(scheduler: SchedulerSpec) -> list[tuple[str, int, SchedulerSpec]]:
    """Each tunable that `scheduler` does not set, and each of the queue's, at both ends of its
    range, alone; see `Space.ends`. InputError as of `spaces`."""
    [space] = spaces([scheduler])
    return space.ends(scheduler)


def _space(spec: SchedulerSpec) -> Space:
    if spec.kernel is not None:
        raise InputError(f"--scheduler {spec.label}: the search is on the simulator; leave out '@'")
    in_core(spec)
    tables = {info.name: info.tunables for info in core.schedulers() + plugins.infos()}
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
