"""What of a study runs where: each part becomes a comparison, or is left out with the reason."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from blklab import rigs, specs
from blklab.compare.defaults import LINUX
from blklab.compare.plan import Setup
from blklab.errors import InputError, nearest
from blklab.kernel import tools
from blklab.specs import on_kernel
from blklab.study.model import Part, Study
from blklab.study.outcome import Skipped
from blklab.study.paths import beside

_Found = TypeVar("_Found")


@dataclass(frozen=True)
class PlannedPart:
    """One part on one rig."""

    part: Part
    rig: str
    setup: Setup | None
    """None if all of it is left out."""
    skipped: tuple[Skipped, ...]


def plan(
    study: Study, rig: str | None = None, repeats: int | None = None, seed: int | None = None
) -> list[PlannedPart]:
    """Every part, on its own first rig or on `rig`; `repeats` and `seed` before the study's.

    InputError if a disk, a load or a scheduler does not exist, or if nothing is left to run.
    """
    if rig is not None:
        rigs.check(rig)
    planned = [
        _part(study, number, rig or part.rigs[0], rig is not None, repeats, seed)
        for number, part in enumerate(study.parts)
    ]
    if not any(part.setup for part in planned):
        reasons = dict.fromkeys(skip.why for part in planned for skip in part.skipped)
        raise InputError(f"{study.file.path}: nothing to run: {'; '.join(reasons)}")
    return planned


def _part(
    study: Study, number: int, rig: str, asked: bool, repeats: int | None, seed: int | None
) -> PlannedPart:
    part = study.parts[number]
    if rig not in part.rigs:
        why = f"needs --rig {' or '.join(part.rigs)}"
        return PlannedPart(part, rig, None, (Skipped(part.name, why),))
    if rig == "kernel" and not asked and (absent := tools.missing()):
        why = f"building a kernel needs {', '.join(absent)}"
        return PlannedPart(part, rig, None, (Skipped(part.name, why),))
    place = ("part", number)

    def found(key: str, names: Iterable[str], find: Callable[[str], _Found]) -> list[_Found]:
        there = []
        for which, name in enumerate(names):
            try:
                there.append(find(name))
            except InputError as error:
                raise study.wrong((*place, key, which), str(error)) from error
        return there

    folder = study.file.path.parent
    disks = found("disks", part.disks, lambda name: specs.disk(beside(folder, name, ".toml")))
    loads = found("workloads", part.workloads, lambda n: specs.workload(beside(folder, n, ".fio")))
    reasons = found("schedulers", part.schedulers, lambda spec: _missing(study, spec, rig))
    skipped = [
        Skipped(spec, why) for spec, why in zip(part.schedulers, reasons, strict=True) if why
    ]
    schedulers = [spec for spec, why in zip(part.schedulers, reasons, strict=True) if not why]
    if not schedulers:
        return PlannedPart(part, rig, None, tuple(skipped))
    try:
        host, not_there = _host(part, rig)
        setup = Setup(
            tuple(disks),
            tuple(loads),
            tuple(schedulers),
            repeats or part.repeats,
            study.seed if seed is None else seed,
            host,
        )
    except InputError as error:
        raise study.wrong((*place, "host") if part.host else place, str(error)) from error
    return PlannedPart(part, rig, setup, (*skipped, *not_there))


def _missing(study: Study, spec: str, rig: str) -> str:
    """Why the scheduler cannot run there, empty if it can. InputError if there is none such.

    What a kernel's patches, files or own source bring is that kernel's to know.
    """
    from blklab.kernel import scheduler
    from blklab.rigs import sim

    simulated = [info["name"] for info in sim.schedulers()]
    told, kernel = on_kernel(spec)
    changed = any(
        one.name == kernel and (one.patches or one.added or one.source) for one in study.kernels
    )
    name = scheduler.parse(told).name
    if not changed and name not in {*simulated, *LINUX}:
        raise InputError(f"no scheduler '{name}'{nearest(name, {*simulated, *LINUX})}")
    if rig == "sim" and kernel is not None:
        return "needs --rig kernel: it runs on a kernel that is built for it"
    if not changed and name not in (simulated if rig == "sim" else LINUX):
        return f"the rig '{rig}' has no '{name}'"
    if rig == "sim":
        sim.check_scheduler(told)
    return ""


def _host(part: Part, rig: str) -> tuple[dict[str, int], list[Skipped]]:
    """What of the part's host is that rig's to have, and what is not."""
    host = specs.host(f"{name}={value}" for name, value in part.host.items())
    if rig != "kernel":
        return host, []
    from blklab.rigs.kernel import host_that_counts

    counts = host_that_counts()
    skipped = [
        Skipped(f"host {name}={value}", "a guest of the kernel rig cannot be told that")
        for name, value in host.items()
        if name not in counts
    ]
    return {name: value for name, value in host.items() if name in counts}, skipped


def count(planned: Iterable[PlannedPart]) -> int:
    """How many runs it is."""
    setups = [part.setup for part in planned if part.setup is not None]
    return sum(
        len(s.disks) * len(s.workloads) * len(s.schedulers) * s.repeats for s in setups
    )  # fmt: skip
