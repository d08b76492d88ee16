"""Plans a study: each part becomes a comparison on a rig, or is left out with the reason."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from blklab import rigs
from blklab.domain import core, defaults, scheduler, specs
from blklab.domain.comparison import Setup
from blklab.domain.defaults import LINUX
from blklab.domain.experiment import SchedulerSpec
from blklab.errors import InputError, nearest
from blklab.rigs.kernel import tools
from blklab.study import live
from blklab.study.model import Part, Skipped, Study, beside

_Found = TypeVar("_Found")


@dataclass(frozen=True)
class PlannedPart:
    """One part on one rig."""

    part: Part
    rig: str
    setup: Setup | None
    """None if the whole part is left out."""
    skipped: tuple[Skipped, ...]
    options: Mapping[str, str | None] = field(default_factory=dict)
    """The rig's options."""


@dataclass(frozen=True)
class Asked:
    """The user's choices for a study; None: as in its file."""

    rig: str | None = None
    repeats: int | None = None
    seed: int | None = None
    disk: str | None = None
    """On the rig `live`: the directory or device that replaces all disks."""
    options: Mapping[str, str | None] = field(default_factory=dict)
    """The options of that rig."""


def plan(study: Study, asked: Asked | None = None) -> list[PlannedPart]:
    """Every part, on its own first rig or on the requested one.

    InputError if a disk, a workload or a scheduler does not exist, or if no part can run.
    """
    asked = asked or Asked()
    if asked.rig is not None:
        rigs.check(asked.rig)
    real = _real_disk(study, asked)
    planned = [_part(study, number, asked, real) for number in range(len(study.parts))]
    if not any(part.setup for part in planned):
        reasons = dict.fromkeys(skip.why for part in planned for skip in part.skipped)
        raise InputError(f"nothing to run: {'; '.join(reasons)}", str(study.file.path))
    return planned


def _real_disk(study: Study, asked: Asked) -> live.RealDisk | None:
    """The real disk that replaces the modelled disks of a part."""
    if live.RIG in ({asked.rig} if asked.rig else {part.rigs[0] for part in study.parts}):
        return live.real_disk(asked.disk or defaults.disks(live.RIG)[0], asked.options)
    for option, value in {"disk": asked.disk, **asked.options}.items():
        if value is not None:
            own = "; elsewhere a study has disks of its own" if option == "disk" else ""
            raise InputError(f"--{option}: only with --rig {live.RIG}{own}")
    return None


def _part(study: Study, number: int, asked: Asked, real: live.RealDisk | None) -> PlannedPart:
    part = study.parts[number]
    rig = asked.rig or part.rigs[0]
    if rig not in part.rigs:
        why = f"needs --rig {' or '.join(part.rigs)}"
        return PlannedPart(part, rig, None, (Skipped(part.name, why),))
    if rig == "kernel" and not asked.rig and (absent := tools.missing()):
        why = f"building a kernel needs {', '.join(absent)}"
        return PlannedPart(part, rig, None, (Skipped(part.name, why),))
    place = ("part", number)

    def found(key: str, names: Iterable[str], find: Callable[[str], _Found]) -> list[_Found]:
        having = []
        for which, name in enumerate(names):
            try:
                having.append(find(name))
            except InputError as error:
                raise study.wrong((*place, key, which), str(error)) from error
        return having

    folder = study.file.path.parent
    there = real if rig == live.RIG else None
    disks = (
        [there.disk]
        if there
        else found("disks", part.disks, lambda name: specs.disk(beside(folder, name, ".toml")))
    )
    loads = found("workloads", part.workloads, lambda n: specs.workload(beside(folder, n, ".fio")))
    asked_for = found("schedulers", part.schedulers, specs.scheduler)
    reasons = found(
        "schedulers",
        part.schedulers,
        lambda text: _missing(study, specs.scheduler(text), rig, there),
    )
    skipped = [
        Skipped(spec.label, why) for spec, why in zip(asked_for, reasons, strict=True) if why
    ]
    schedulers = [spec for spec, why in zip(asked_for, reasons, strict=True) if not why]
    if not schedulers:
        return PlannedPart(part, rig, None, tuple(skipped))
    try:
        host, not_there = _host(part, rig)
        setup = Setup(
            tuple(disks),
            tuple(loads),
            tuple(schedulers),
            asked.repeats or part.repeats,
            study.seed if asked.seed is None else asked.seed,
            host,
            vary_disk=part.vary_disk and rig != live.RIG,
        )
    except InputError as error:
        raise study.wrong((*place, "host") if part.host else place, str(error)) from error
    options = there.options if there else {}
    return PlannedPart(part, rig, setup, (*skipped, *not_there), options)


def _missing(study: Study, spec: SchedulerSpec, rig: str, real: live.RealDisk | None) -> str:
    """The reason if the scheduler cannot run there; else empty.

    InputError if there is no such scheduler. Schedulers from a kernel's patches, files or own
    source are checked only by that kernel.
    """
    simulated = [info.name for info in core.schedulers()]
    kernel = spec.kernel
    changed = any(
        one.name == kernel and (one.patches or one.added or one.source) for one in study.kernels
    )
    name = scheduler.parse(spec).name
    if not changed and name not in {*simulated, *LINUX}:
        raise InputError(f"no scheduler '{name}'{nearest(name, {*simulated, *LINUX})}")
    if rig != "kernel" and kernel is not None:
        return "needs --rig kernel: it runs on a kernel that is built for it"
    if real is not None:
        return real.lacks(name)
    if not changed and name not in (simulated if rig == "sim" else LINUX):
        return f"the rig '{rig}' has no '{name}'"
    if rig == "sim":
        scheduler.simulated(spec)
    return ""


def _host(part: Part, rig: str) -> tuple[dict[str, int], list[Skipped]]:
    """The values of the part's host that the rig supports, and the others."""
    host = specs.host(f"{name}={value}" for name, value in part.host.items())
    if rig == live.RIG:
        why = f"with --rig {live.RIG} the host is this machine"
        return {}, [Skipped(f"host {name}={value}", why) for name, value in host.items()]
    if rig != "kernel":
        return host, []
    from blklab.rigs.kernel.rig import host_that_counts

    counts = host_that_counts("fio")
    skipped = [
        Skipped(f"host {name}={value}", "a guest of the kernel rig has no such setting")
        for name, value in host.items()
        if name not in counts
    ]
    return {name: value for name, value in host.items() if name in counts}, skipped


def count(planned: Iterable[PlannedPart]) -> int:
    """The number of runs."""
    setups = [part.setup for part in planned if part.setup is not None]
    return sum(
        len(s.disks) * len(s.workloads) * len(s.schedulers) * s.repeats for s in setups
    )  # fmt: skip
