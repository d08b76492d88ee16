"""The full set-up in words and figures, for the report and `results.json`."""

from __future__ import annotations

import platform
from typing import Any

from blklab.compare.plan import Setup
from blklab.rigs import sim
from blklab.workloads import summary


def describe(setup: Setup) -> dict[str, Any]:
    """Plain data. InputError if a disk, a job file or a scheduler is wrong: all are checked
    here, before anything runs."""
    known = {info["name"]: info for info in sim.schedulers()}
    return {
        "rig": setup.rig,
        "seed": setup.seed,
        "repeats": setup.repeats,
        "host": sim.check_host(setup.host),
        "ignore_unsupported": setup.ignore_unsupported,
        "versions": {
            "blklab": sim.version(),
            "python": platform.python_version(),
        },
        "disks": [
            {
                "label": disk.label,
                "overrides": [list(change) for change in disk.overrides],
                "text": disk.file.text,
                **sim.describe_disk(disk),
            }
            for disk in setup.disks
        ],
        "workloads": [
            {
                "name": job.name,
                "summary": summary(job.text),
                "text": job.text,
                "ignored": sim.ignored_options(job, setup.ignore_unsupported),
            }
            for job in setup.workloads
        ],
        "schedulers": [{"label": spec} | _scheduler(spec, known) for spec in setup.schedulers],
    }


def _scheduler(spec: str, known: dict[str, dict[str, Any]]) -> dict[str, Any]:
    checked = sim.check_scheduler(spec)
    info = known[checked["name"]]
    return {
        "name": checked["name"],
        "summary": info["summary"],
        "follows": info["follows"],
        "tunables": [
            {
                "name": tunable["name"],
                "value": checked["settings"][tunable["name"]],
                "unit": tunable["unit"],
                "changed": tunable["name"] in checked["changed"],
                "help": tunable["help"],
            }
            for tunable in info["tunables"] + sim.environment()["queue"]
        ],
    }
