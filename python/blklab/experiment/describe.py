"""The full set-up in words and figures, for the report and `results.json`."""

from __future__ import annotations

import platform
from dataclasses import asdict
from typing import Any

from blklab import programs
from blklab.domain import core
from blklab.domain.comparison import Setup
from blklab.domain.scheduler import Scheduler
from blklab.rigs import Rig, check_workload, sim
from blklab.workloads import summary

_NOT_OURS: dict[str, Any] = {
    "summary": "a scheduler of the kernel that blklab does not know",
    "follows": "the kernel that ran",
    "tunables": [],
}
_ONLY_THERE = {"unit": "", "help": "a tunable of the kernel that blklab does not know"}


def describe(setup: Setup, place: Rig) -> dict[str, Any]:
    """Plain data. InputError if a disk, a job file or a scheduler is wrong: all are checked
    here, before anything runs."""
    for job in setup.workloads:
        check_workload(place.name, job)
    known = {info["name"]: info for info in core.schedulers()}
    return {
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
                "summary": summary(job.text),
                "text": job.text,
                "ignored": []
                if programs.is_program(job)
                else core.ignored_options(job, setup.ignore_unsupported, real=place.name == "live"),
            }
            for job in setup.workloads
        ],
        "schedulers": [
            {"label": spec.label}
            | _scheduler(place.check_scheduler(spec), known)
            | ({} if place.name == sim.SimRig.name else {"follows": _NOT_OURS["follows"]})
            for spec in setup.schedulers
        ],
        "left_out": [asdict(pair) for pair in setup.left_out],
    } | ({"drawn_disks": True} if setup.vary_disk else {})


def _scheduler(checked: Scheduler, known: dict[str, dict[str, Any]]) -> dict[str, Any]:
    info = known.get(checked.name, _NOT_OURS)
    rows = info["tunables"] + core.environment()["queue"]
    listed = {row["name"] for row in rows}
    rows += [_ONLY_THERE | {"name": name} for name in checked.changed if name not in listed]
    # Only where it is not the rig's: see `KernelRig.check_scheduler`.
    kernel = checked.kernel
    return {
        "name": checked.name,
        "summary": f"{info['summary']}; on {kernel['text']}" if kernel else info["summary"],
        "kernel": kernel,
        "follows": info["follows"],
        "tunables": [
            {
                "name": tunable["name"],
                "value": checked.settings[tunable["name"]],
                "unit": tunable["unit"],
                "changed": tunable["name"] in checked.changed,
                "help": tunable["help"],
            }
            for tunable in rows
        ],
    }
