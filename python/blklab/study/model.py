"""A study as plain data: the contents of its file, and the results."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from blklab.base import homes
from blklab.base.catalogue import Entry
from blklab.domain.results_file import Results
from blklab.errors import InputError
from blklab.study.places import KeyPath, line_of


@dataclass(frozen=True)
class Kernel:
    """A kernel to build; ``SCHEDULER@NAME`` runs on it."""

    name: str
    summary: str
    source: str | None
    """Version, tarball or directory; None for the default version."""
    patches: tuple[str, ...]
    """Paths relative to the study's file."""
    added: tuple[str, ...]
    """C files for ``block/``, relative to the study's file."""
    config: tuple[str, ...]
    """``NAME=VALUE`` of the kernel's configuration."""
    late_disk: str
    """The reason why the disk may be late in its guests; empty if a late disk makes a run invalid,
    as it does by default."""


@dataclass(frozen=True)
class Claim:
    """A published statement, of one of the kinds in `blklab.study.keys.CLAIMS`."""

    kind: str
    text: str
    metric: str
    job: str | None
    """The job of the figure; None: all jobs together."""
    workloads: tuple[str, ...]
    disks: tuple[str, ...]
    """It is judged on each disk under each of these workloads ..."""
    summed: bool
    """... or once, for the sum of the figures under all of them."""
    schedulers: tuple[str, ...]
    """The compared schedulers; for an order: the best first; for a ratio: numerator, then
    denominator."""
    values: Mapping[str, tuple[float, ...]]
    """Published figures by scheduler, one for each published run; in `metric`'s unit."""
    value: float
    """For a ratio: the first figure divided by the second; for a difference: the first minus the
    second."""
    tolerance: float
    """Relative: 0.1 for 10 %."""
    least: float | None
    """For a bound: the least value of the figure ..."""
    most: float | None
    """... and the largest."""
    source: str
    ranked: bool
    """Whether the order of the published figures is judged, too."""
    not_reproduced: str
    """Known reasons why it may not be reproduced here."""


@dataclass(frozen=True)
class Part:
    """One comparison of the study."""

    name: str
    question: str
    note: str
    """Differences from the published set-up: another disk, another workload."""
    rigs: tuple[str, ...]
    """The rigs on which it can run; the first is the default."""
    disks: tuple[str, ...]
    workloads: tuple[str, ...]
    schedulers: tuple[str, ...]
    repeats: int
    objective: str
    """The objective that ranks the schedulers."""
    host: Mapping[str, int]
    weights: Mapping[str, float]
    """The intended share of each job, by name; 1 by default."""
    claims: tuple[Claim, ...]
    recorded_under: str | None = None
    """Schedulers that the kernel rig lacks are simulated: a job file as it is, a program by its
    recording under this scheduler. None: they are left out."""
    scale: float = 1.0
    """The published workload is so many times as large."""
    quick: tuple[str, ...] = ()
    """The workloads of a quick run, in the order of `workloads`; empty: the same ones."""
    quick_scale: float = 1.0
    """As `scale`, for the quick run."""
    quick_host: Mapping[str, int] = field(default_factory=dict)
    """As `host`, for the quick run."""
    vary_disk: bool = False
    """Whether each repeat has a disk drawn from the ranges of the estimates."""
    tune: tuple[str, ...] = ()
    """Those of the schedulers whose tunables are each tried at both ends of the range."""
    kernel: str | None = None
    """The study's kernel for schedulers that name none; None: blklab's own."""


@dataclass(frozen=True)
class Study:
    """A whole study file."""

    file: Entry
    title: str
    question: str
    source: str
    seed: int
    kernels: tuple[Kernel, ...]
    parts: tuple[Part, ...]
    system: str = ""
    """The system of the published figures, in words."""

    @property
    def name(self) -> str:
        """The name in commands."""
        return self.file.name

    def wrong(self, path: KeyPath, message: str) -> InputError:
        """The error for the value at `path` in the file."""
        return wrong(self.file, path, message)


def wrong(
    file: Entry,
    path: KeyPath,
    message: str,
    *,
    found: str | None = None,
    expected: str | None = None,
    nearest: str | None = None,
) -> InputError:
    """One line: file, line, key, and the error."""
    keys = [str(step) for step in path if isinstance(step, str)][-1:]
    return InputError(
        " ".join(": ".join([*keys, message]).split()),
        str(file.path),
        line_of(file.text, path),
        option=keys[0] if keys else None,
        found=found,
        expected=expected,
        nearest=nearest,
    )


@dataclass(frozen=True)
class Skipped:
    """An omission of a part."""

    what: str
    """A scheduler, or the part's name for the whole part."""
    why: str


@dataclass(frozen=True)
class Outcome:
    """The result of one part."""

    part: str
    rig: str
    results: Results | None
    """None if the whole part was left out."""
    skipped: tuple[Skipped, ...]
    simulated: Results | None = None
    """The same workloads on the simulator, if the part has `recorded_under`."""
    scale: float = 1.0
    """The published workload is so many times as large."""


def beside(folder: Path, spec: str, suffix: str) -> str:
    """`spec` unchanged if it is a name, else the path relative to `folder`."""
    names_a_file = os.sep in spec or spec.endswith(suffix) or f"{suffix}:" in spec
    return str(folder / homes.expanded(spec)) if names_a_file else spec
