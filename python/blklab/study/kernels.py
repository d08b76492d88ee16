"""The kernels of a study, built before anything runs, and a rig with all of them.

The scheduler ``kyber@slow`` runs on the study's kernel `slow`; one without an ``@`` on the kernel
of its part, which is blklab's own if the part names none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from blklab.base.steps import Steps
from blklab.domain.conditions import StudyKernelData, StudyKernelsData
from blklab.domain.experiment import Experiment, RigSpec, SchedulerSpec
from blklab.domain.result import Result
from blklab.domain.scheduler import Scheduler
from blklab.rigs import Rig
from blklab.rigs import rig as rig_of
from blklab.rigs.kernel import cache
from blklab.rigs.kernel.build import build
from blklab.rigs.modelled import ModelledDisks
from blklab.study.model import Kernel, Study, beside
from blklab.study.plan import PlannedPart

DEFAULT = "default"
"""The name of blklab's own kernel."""


_UNFIT = re.compile(r"[^\w.+-]+", re.ASCII)
_NAME_MAX = 80


@dataclass(frozen=True)
class BuiltKernel:
    """One kernel of a study, ready to run."""

    order: Kernel
    """The kernel in the study's file."""
    made: cache.Kernel


@dataclass(frozen=True)
class OwnKernel:
    """One kernel of a `KernelsRig`."""

    order: Kernel
    rig: Rig


class KernelsRig(ModelledDisks):
    """See :class:`blklab.rigs.Rig`; each experiment goes to its scheduler's kernel.

    `places` are by the names after the ``@``; `default` is that of schedulers without one.
    """

    name = "kernel"
    spec = RigSpec("kernel")
    """None: each experiment has its own spec, see `alone`."""

    def __init__(self, places: Mapping[str, OwnKernel], default: str = DEFAULT) -> None:
        self._places = places
        self._default = default

    def describe(self) -> StudyKernelsData:
        """See :class:`blklab.rigs.Rig`."""
        kernels: list[StudyKernelData] = [
            {
                "name": name,
                "summary": place.order.summary,
                "late_disk": place.order.late_disk,
                **place.rig.describe(),
            }
            for name, place in self._places.items()
        ]
        return {"text": "; ".join(map(_text, kernels)), "kernels": kernels}

    def check_host(self, changed: Mapping[str, int]) -> dict[str, int]:
        """See :class:`blklab.rigs.Rig`; the same for all kernels."""
        checked = [place.rig.check_host(changed) for place in self._places.values()]
        return checked[0]

    def check_scheduler(self, spec: SchedulerSpec) -> Scheduler:
        """See :class:`blklab.rigs.Rig`."""
        told, place = self._found(spec)
        return place.rig.check_scheduler(told)

    def alone(self, experiment: Experiment) -> tuple[RigSpec, Experiment]:
        """See :class:`blklab.rigs.Rig`."""
        told, place = self._found(experiment.scheduler)
        return place.rig.alone(replace(experiment, scheduler=told))

    def run(self, experiment: Experiment) -> Result:
        """See :class:`blklab.rigs.Rig`."""
        told, place = self._found(experiment.scheduler)
        return place.rig.run(replace(experiment, scheduler=told))

    @property
    def default(self) -> Rig:
        """The rig of schedulers without an ``@``. KeyError if there is none."""
        return self._places[self._default].rig

    def position(self) -> tuple[float, float | None]:
        """See :class:`blklab.rigs.Rig`. A guest's clock cannot be seen from outside."""
        return 0.0, None

    def cancel(self) -> None:
        """See :class:`blklab.rigs.Rig`."""
        for place in self._places.values():
            place.rig.cancel()

    def _found(self, spec: SchedulerSpec) -> tuple[SchedulerSpec, OwnKernel]:
        return replace(spec, kernel=None), self._places[spec.kernel or self._default]


def needed(planned: Sequence[PlannedPart]) -> list[str]:
    """Names of the kernels of the parts, in their order; empty if no part needs one."""
    return list(
        dict.fromkeys(
            spec.kernel or default_of(part)
            for part in planned
            if part.setup is not None and part.rig == "kernel"
            for spec in part.setup.schedulers
        )
    )


def default_of(part: PlannedPart) -> str:
    """The name of the kernel for the part's schedulers without an ``@``."""
    return part.part.kernel or DEFAULT


def build_all(study: Study, planned: Sequence[PlannedPart], steps: Steps) -> list[BuiltKernel]:
    """Build the needed kernels, or take them from the cache. BlklabError if one fails."""
    known = {kernel.name: kernel for kernel in study.kernels}
    default = Kernel(DEFAULT, "blklab's own, as it comes", None, (), (), (), "")
    return [_build(study, known.get(name, default), steps) for name in needed(planned)]


def rig(kernels: Sequence[BuiltKernel], default: str) -> KernelsRig:
    """A new rig with these kernels; `default` is that of schedulers without an ``@``."""
    return KernelsRig(
        {
            kernel.order.name: OwnKernel(
                kernel.order,
                rig_of(
                    RigSpec(
                        "kernel",
                        kernel=kernel.made.key,
                        late_disk=bool(kernel.order.late_disk),
                    )
                ),
            )
            for kernel in kernels
        },
        default,
    )


def _build(study: Study, kernel: Kernel, steps: Steps) -> BuiltKernel:
    steps.note(f"kernel {kernel.name}")
    folder = study.file.path.parent
    source = None if kernel.source is None else beside(folder, kernel.source, ".tar.xz")
    patches, added = ([folder / name for name in names] for names in (kernel.patches, kernel.added))
    built = build(
        source, patches, _name(study, kernel), added_files=added, options=kernel.config, steps=steps
    )
    return BuiltKernel(kernel, built.kernel)


def _name(study: Study, kernel: Kernel) -> str | None:
    """The name of the kernel in the cache; None: after its source and patches. With options alone
    it would take that of blklab's own kernel."""
    if kernel.patches or kernel.added or not kernel.config:
        return None
    return f"{_UNFIT.sub('-', study.name)}-{kernel.name}"[-_NAME_MAX:].lstrip("._+-")


def _text(kernel: StudyKernelData) -> str:
    summary = f" ({kernel['summary']})" if kernel["summary"] else ""
    late = f"; its disk may be late: {kernel['late_disk']}" if kernel["late_disk"] else ""
    return f"{kernel['name']}{summary}: {kernel['text']}{late}"
