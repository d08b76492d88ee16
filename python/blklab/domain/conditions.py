"""The conditions of a run, as plain data: the rig's, its kernel's, and the device's state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NotRequired, TypedDict


class RigData(TypedDict):
    """What each rig says of itself."""

    text: str
    """For display; may be empty."""


class KernelData(TypedDict):
    """A kernel of the kernel rig."""

    text: str
    label: str
    key: str
    version: str
    source: str
    patches: tuple[str, ...]
    added: tuple[str, ...]
    config: tuple[str, ...]


class KernelRigData(RigData):
    """The kernel rig."""

    kernel: KernelData
    driver: str
    time_travel: str


class StudyKernelData(RigData):
    """The rig of one of a study's kernels, with all that it says of itself."""

    name: str
    summary: str
    late_disk: str


class StudyKernelsData(RigData):
    """The kernel rig with all of a study's kernels."""

    kernels: list[StudyKernelData]


class LiveRigData(RigData):
    """The live rig: this machine."""

    linux: str
    cpus: int
    cpu: str
    memory_bytes: int | None
    governors: list[str]
    fio: str | None
    cache: str


class FrequencyData(TypedDict):
    """The lowest and the highest frequency of the fastest CPU."""

    min: int
    max: int


class DeviceState(TypedDict):
    """A device of the live rig before or after a run."""

    settings: Mapping[str, Mapping[str, str]]
    """The settings of each disk below the device."""
    counters: Mapping[str, int]
    temperatures_c: Mapping[str, float]
    load: float
    cpu_khz: NotRequired[FrequencyData]
    """After a run, if the CPUs report it."""
