"""The full set-up in words and figures, for the report and `results.json`."""

from __future__ import annotations

import platform
from collections.abc import Mapping

from blklab import _core
from blklab.domain import core, plugins
from blklab.domain.comparison import Setup
from blklab.domain.experiment import SchedulerSpec
from blklab.domain.scheduler import Scheduler
from blklab.domain.setup import SchedulerData, SetupData
from blklab.rigs import Rig, check_workload, sim
from blklab.workloads import summary as first_line

_NOT_OURS = "a scheduler of the kernel that blklab does not know"
_THE_KERNEL = "the kernel that ran"
_HASH_DIGITS = 12
_ONLY_THERE = "a tunable of the kernel that blklab does not know"


def describe(setup: Setup, place: Rig) -> SetupData:
    """Plain data. InputError if a disk, a job file or a scheduler is wrong: all are checked
    here, before anything runs."""
    for job in setup.workloads:
        check_workload(place.spec, job)
    known = {info.name: info for info in core.schedulers() + plugins.infos()}
    told: SetupData = {
        "rig": place.name,
        "rig_setup": place.describe(),
        "seed": setup.seed,
        "repeats": setup.repeats,
        "host": place.check_host(setup.host),
        "ignore_unsupported": setup.ignore_unsupported,
        "versions": {
            "blklab": core.version(),
            "python": platform.python_version(),
        },
        "disks": [
            {
                "label": disk.label,
                "overrides": [list(change) for change in disk.overrides],
                "text": disk.file.text,
                **place.describe_disk(disk),
            }
            for disk in setup.disks
        ],
        "workloads": [
            {
                "name": job.name,
                "summary": first_line(job.text),
                "text": job.text,
                "ignored": core.ignored_options(
                    job, setup.ignore_unsupported, real=place.name == "live"
                ),
            }
            for job in setup.workloads
        ],
        "schedulers": [
            _scheduler(
                spec,
                place.check_scheduler(spec),
                known,
                simulated=place.name == sim.SimRig.name,
            )
            for spec in setup.schedulers
        ],
        "left_out": [
            {"disk": pair.disk, "scheduler": pair.scheduler, "why": pair.why}
            for pair in setup.left_out
        ],
    }
    if setup.vary_disk:
        told["drawn_disks"] = True
    return told


def _scheduler(
    spec: SchedulerSpec,
    checked: Scheduler,
    known: Mapping[str, _core.SchedulerInfo],
    *,
    simulated: bool,
) -> SchedulerData:
    info = known.get(checked.name)
    summary, follows = (info.summary, info.follows) if info else (_NOT_OURS, _THE_KERNEL)
    rows = [*(info.tunables if info else []), *core.environment()["queue"]]
    about = {row.name: (row.unit, row.help) for row in rows}
    about |= {name: ("", _ONLY_THERE) for name in checked.changed if name not in about}
    if spec.plugin is not None:
        follows = f"{follows}; plug-in {spec.plugin[:_HASH_DIGITS]}"
    # Only if it differs from the rig's: see `KernelRig.check_scheduler`.
    kernel = checked.kernel
    return {
        "label": spec.label,
        "name": checked.name,
        "summary": f"{summary}; on {kernel['text']}" if kernel else summary,
        "kernel": kernel,
        "follows": follows if simulated else _THE_KERNEL,
        "tunables": [
            {
                "name": name,
                "value": checked.settings[name],
                "unit": unit,
                "changed": name in checked.changed,
                "help": meaning,
            }
            for name, (unit, meaning) in about.items()
        ],
    }
