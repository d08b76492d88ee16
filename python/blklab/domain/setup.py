"""The set-up that `blklab.experiment.describe` makes: as types for checking a file, and as the
mapping that is stored, which may have more keys: those of each rig, and of other versions of
blklab.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NotRequired, TypedDict

import msgspec

from blklab.base.limits import REPEATS_MAX
from blklab.domain.conditions import KernelData, RigData

_LABEL_MAX = 8192
"""A disk may be a directory; Linux allows paths of 4096 bytes."""

Label = Annotated[str, msgspec.Meta(min_length=1, max_length=_LABEL_MAX)]
Value = str | int | float | bool | None


@dataclass(frozen=True)
class Parameter:
    """A key of a disk."""

    key: str
    value: Value
    unit: str
    help: str
    source: str | None
    range: tuple[float, float] | None = None


@dataclass(frozen=True)
class ValidationSetup:
    """The result of the checked figures for a disk model."""

    validated: bool
    text: str


@dataclass(frozen=True)
class DiskSetup:
    """The checked fields of a set-up's disk."""

    label: Label
    text: str
    summary: str
    parameters: tuple[Parameter, ...]
    limits: dict[str, Value]
    overrides: tuple[tuple[str, str], ...] = ()
    name: str = ""
    validation: ValidationSetup | None = None


@dataclass(frozen=True)
class LoadSetup:
    """A load of a set-up."""

    name: Label
    summary: str
    text: str
    ignored: tuple[str, ...]


@dataclass(frozen=True)
class Tunable:
    """A tunable of a scheduler."""

    name: str
    value: Value
    unit: str
    changed: bool
    help: str


@dataclass(frozen=True)
class SchedulerSetup:
    """A scheduler of a set-up."""

    label: Label
    name: str
    summary: str
    follows: str
    tunables: tuple[Tunable, ...]


@dataclass(frozen=True)
class LeftOutSetup:
    """An omitted run."""

    disk: str
    scheduler: str
    why: str


@dataclass(frozen=True)
class VersionsSetup:
    """The versions of the programs."""

    blklab: str
    python: str


@dataclass(frozen=True)
class RigSetup:
    """A rig's description."""

    text: str


@dataclass(frozen=True)
class StoppingSetup:
    """The end of a comparison with a budget."""

    text: str


@dataclass(frozen=True)
class SetupDocument:
    """The checked fields of the whole set-up."""

    rig: str
    rig_setup: RigSetup
    seed: Annotated[int, msgspec.Meta(ge=0)]
    repeats: Annotated[int, msgspec.Meta(ge=1, le=REPEATS_MAX)]
    host: dict[str, int]
    versions: VersionsSetup
    disks: Annotated[tuple[DiskSetup, ...], msgspec.Meta(min_length=1)]
    workloads: Annotated[tuple[LoadSetup, ...], msgspec.Meta(min_length=1)]
    schedulers: Annotated[tuple[SchedulerSetup, ...], msgspec.Meta(min_length=1)]
    left_out: tuple[LeftOutSetup, ...] = ()
    stopping: StoppingSetup | None = None
    drawn_disks: bool = False


class ParameterData(TypedDict):
    """See :class:`Parameter`."""

    key: str
    value: Value
    unit: str
    help: str
    source: str | None
    range: NotRequired[list[float] | None]
    """Only of a model."""


class ValidationData(TypedDict):
    """See `_core.Validation`."""

    validated: bool
    independent: int
    met: int
    needed: int
    text: str


class DiskData(TypedDict):
    """What a rig says of a disk."""

    name: str
    summary: str
    kind: str
    transport: str
    limits: dict[str, Value]
    parameters: list[ParameterData]
    longest_wait_ms: NotRequired[dict[str, int] | None]
    """Only of a model, as the next two."""
    validation: NotRequired[ValidationData]
    published: NotRequired[list[dict[str, str | float | None]]]
    """Each has the fields of `_core.PublishedFigure`."""


class NamedDiskData(DiskData):
    """See :class:`DiskSetup`."""

    label: str
    overrides: list[list[str]]
    text: str


class LoadData(TypedDict):
    """See :class:`LoadSetup`."""

    name: str
    summary: str
    text: str
    ignored: list[str]


class TunableData(TypedDict):
    """See :class:`Tunable`."""

    name: str
    value: Value
    unit: str
    changed: bool
    help: str


class SchedulerData(TypedDict):
    """See :class:`SchedulerSetup`."""

    label: str
    name: str
    summary: str
    kernel: KernelData | None
    follows: str
    tunables: list[TunableData]


class LeftOutData(TypedDict):
    """See :class:`LeftOutSetup`."""

    disk: str
    scheduler: str
    why: str


class StoppingData(TypedDict):
    """Why a comparison with a budget stopped; only `text` until it has."""

    budget_s: NotRequired[float]
    repeats: NotRequired[int]
    why: NotRequired[str]
    text: str


class SetupData(TypedDict):
    """See :class:`SetupDocument`."""

    rig: str
    rig_setup: RigData
    """With what each rig has besides."""
    seed: int
    repeats: int
    host: dict[str, int]
    ignore_unsupported: bool
    versions: dict[str, str]
    disks: list[NamedDiskData]
    workloads: list[LoadData]
    schedulers: list[SchedulerData]
    left_out: list[LeftOutData]
    stopping: NotRequired[StoppingData]
    drawn_disks: NotRequired[bool]
