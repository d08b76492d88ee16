"""A study as plain data: what its file says, and what came of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
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
    """Files, relative to the study's."""
    added: tuple[str, ...]
    """C files for ``block/``, relative to the study's."""
    config: tuple[str, ...]
    """``NAME=VALUE`` of the kernel's configuration."""
    late_disk: str
    """Why the disk may be late in its guests; empty if that makes a run invalid, as it does
    otherwise."""


@dataclass(frozen=True)
class Claim:
    """Something that was published, in one of the ways of `blklab.study.keys.CLAIMS`."""

    kind: str
    text: str
    metric: str
    job: str | None
    """Whose figure it is; None: that of all together."""
    workloads: tuple[str, ...]
    disks: tuple[str, ...]
    """It is judged on each disk under each of these loads ..."""
    summed: bool
    """... or once, about the sum of the figures under all of them."""
    schedulers: tuple[str, ...]
    """The schedulers that are compared; of an order: the best first; of a ratio: numerator, then
    denominator."""
    values: Mapping[str, tuple[float, ...]]
    """Published figures by scheduler, one for each run that was published; in `metric`'s unit."""
    value: float
    """Of a ratio: how many times the second's figure the first's was; of a difference: by how much
    it was above."""
    tolerance: float
    """Relative: 0.1 for 10 %."""
    least: float | None
    """Of a bound: what the figure is at least ..."""
    most: float | None
    """... and at most."""
    source: str
    not_reproduced: str
    """Known reasons why it may not come out here."""


@dataclass(frozen=True)
class Part:
    """One comparison of the study."""

    name: str
    question: str
    note: str
    """What is not as it was published: another disk, another load."""
    rigs: tuple[str, ...]
    """Where it can run; the first unless another is asked for."""
    disks: tuple[str, ...]
    workloads: tuple[str, ...]
    schedulers: tuple[str, ...]
    repeats: int
    objective: str
    """What the schedulers are ranked by."""
    host: Mapping[str, int]
    weights: Mapping[str, float]
    """What share each job is to get, by name; 1 unless told."""
    claims: tuple[Claim, ...]
    vary_disk: bool = False
    """Whether each repeat has a disk drawn from the ranges of the estimates."""


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

    @property
    def name(self) -> str:
        """By which it is called."""
        return self.file.name

    def wrong(self, path: KeyPath, message: str) -> InputError:
        """The error to raise about what stands at `path` in the file."""
        return wrong(self.file, path, message)


def wrong(file: Entry, path: KeyPath, message: str) -> InputError:
    """One line: file, line, key, and what is wrong with it."""
    keys = [str(step) for step in path if isinstance(step, str)]
    where = f"{file.path}:{line_of(file.text, path)}: "
    return InputError(" ".join(f"{where}{': '.join([*keys[-1:], message])}".split()))


@dataclass(frozen=True)
class Skipped:
    """Something of a part that does not run."""

    what: str
    """A scheduler, or the part's name for all of it."""
    why: str


@dataclass(frozen=True)
class Outcome:
    """What came of one part."""

    part: str
    rig: str
    results: Results | None
    """None if all of it was left out."""
    skipped: tuple[Skipped, ...]


def beside(folder: Path, spec: str, suffix: str) -> str:
    """`spec` as it is if it is a name, otherwise the path from `folder`."""
    names_a_file = os.sep in spec or spec.endswith(suffix) or f"{suffix}:" in spec
    return str(folder / homes.expanded(spec)) if names_a_file else spec
