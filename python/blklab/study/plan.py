"""Plans a study: each part becomes a comparison on a rig, or is left out with the reason."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from blklab import programs, rigs
from blklab.base.catalogue import Entry
from blklab.domain import core, defaults, scheduler, specs
from blklab.domain.comparison import Setup
from blklab.domain.defaults import LINUX
from blklab.domain.experiment import SchedulerSpec
from blklab.domain.space import ends_of
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
    simulated: Setup | None = None
    """What is simulated beside it; its host is that of a guest."""
    scale: float = 1.0
    """The published workload is so many times as large."""


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
    quick: bool = False
    """The small workloads, each once."""


def plan(study: Study, asked: Asked | None = None) -> list[PlannedPart]:
    """Every part, on its own first rig or on the requested one.

    InputError if a disk, a workload or a scheduler does not exist, or if no part can run.
    """
    asked = asked or Asked()
    if asked.rig is not None:
        rigs.check(asked.rig)
    if asked.quick and not any(part.quick for part in study.parts):
        raise InputError("--quick: this study has no quick version", str(study.file.path))
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
    names = part.quick if asked.quick and part.quick else part.workloads
    key = "workloads" if names is part.workloads else "quick"
    loads = found(key, names, lambda n: specs.workload(beside(folder, n, ".fio")))
    if why := _not_runnable(rig, loads):
        return PlannedPart(part, rig, None, (Skipped(part.name, why),))
    asked_for = found("schedulers", part.schedulers, specs.scheduler)
    reasons = found(
        "schedulers",
        part.schedulers,
        lambda text: _missing(study, specs.scheduler(text), rig, there),
    )
    beside_it = _simulated(part, rig, asked_for)
    skipped = [
        Skipped(spec.label, why)
        for spec, why in zip(asked_for, reasons, strict=True)
        if why and spec not in beside_it
    ]
    schedulers = [spec for spec, why in zip(asked_for, reasons, strict=True) if not why]
    if rig == "sim":
        schedulers += _moved(part, schedulers)
    elif part.tune:
        skipped.append(Skipped(f"tunables of {', '.join(part.tune)}", "needs --rig sim"))
    if not schedulers:
        return PlannedPart(part, rig, None, tuple(skipped))
    repeats = asked.repeats or (1 if asked.quick else part.repeats)
    try:
        values = part.quick_host if asked.quick else part.host
        host, not_there = _host(values, rig, loads)
        setup = Setup(
            tuple(disks),
            tuple(loads),
            tuple(schedulers),
            repeats,
            study.seed if asked.seed is None else asked.seed,
            host,
            vary_disk=part.vary_disk and rig != live.RIG,
        )
    except InputError as error:
        raise study.wrong((*place, "host") if part.host else place, str(error)) from error
    options = there.options if there else {}
    simulated = None
    if beside_it:
        of_guest = {**specs.GUEST, **setup.host}
        simulated = replace(setup, schedulers=tuple(beside_it), host=of_guest)
    scale = part.quick_scale if asked.quick else part.scale
    return PlannedPart(part, rig, setup, (*skipped, *not_there), options, simulated, scale)


def _moved(part: Part, there: Iterable[SchedulerSpec]) -> list[SchedulerSpec]:
    """Each tunable of the schedulers that are tuned at both ends of its range, alone."""
    tuned = [spec for spec in there if spec in map(specs.scheduler, part.tune)]
    return [moved for spec in tuned for _, _, moved in ends_of(spec)]


def _not_runnable(rig: str, loads: Iterable[Entry]) -> str:
    """The reason if a real program cannot run on that rig of this machine; else empty."""
    for load in filter(programs.is_program, loads):
        program = programs.chosen(load).program
        if rig not in program.rigs:
            return f"{program.name} does not run on the rig '{rig}'"
        if why := program.missing():
            return why
    return ""


def _simulated(part: Part, rig: str, specs_asked: Iterable[SchedulerSpec]) -> list[SchedulerSpec]:
    """The schedulers that are simulated beside the kernel's."""
    if rig != "kernel" or part.recorded_under is None:
        return []
    known = {info.name for info in core.schedulers()}
    return [spec for spec in specs_asked if spec.kernel is None and spec.name in known]


def _missing(study: Study, spec: SchedulerSpec, rig: str, real: live.RealDisk | None) -> str:
    """The reason if the scheduler cannot run there; else empty.

    InputError if there is no such scheduler. Schedulers from a kernel's patches, files or own
    source are checked only by that kernel.
    """
    if spec.plugin is not None:
        scheduler.simulated(spec)
        return "" if rig == "sim" else "is a plug-in, which needs --rig sim"
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


def _host(
    values: Mapping[str, int], rig: str, loads: Iterable[Entry]
) -> tuple[dict[str, int], list[Skipped]]:
    """Those of the host's values that the rig supports with these loads, and the others."""
    host = specs.host(f"{name}={value}" for name, value in values.items())
    if rig == live.RIG:
        why = f"with --rig {live.RIG} the host is this machine"
        return {}, [Skipped(f"host {name}={value}", why) for name, value in host.items()]
    if rig != "kernel":
        return host, []
    from blklab.rigs.kernel import modelled_host

    of_jobs = modelled_host.that_counts("native")
    counts = modelled_host.that_counts("fio") if any(map(programs.is_program, loads)) else of_jobs

    def why_not(name: str) -> str:
        if name in of_jobs:
            return "a real program runs on the guest's own CPU and file system"
        return "a guest of the kernel rig has no such setting"

    skipped = [
        Skipped(f"host {name}={value}", why_not(name))
        for name, value in host.items()
        if name not in counts
    ]
    return {name: value for name, value in host.items() if name in counts}, skipped


def count(planned: Iterable[PlannedPart]) -> int:
    """The number of runs."""
    planned = list(planned)
    setups = [part.setup for part in planned if part.setup is not None]
    beside = [part.simulated for part in planned if part.simulated is not None]
    return sum(setup.runs for setup in setups) + sum(map(units, beside))


def units(setup: Setup) -> int:
    """The steps of a simulation, each with all of its schedulers."""
    return len(setup.disks) * len(setup.workloads) * setup.repeats
