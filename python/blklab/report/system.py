"""The table of a study's system: disks, kernel and schedulers, as they were measured."""

from __future__ import annotations

from collections.abc import Sequence

from blklab.domain.setup import SetupData
from blklab.study.model import Outcome, Study

_KIB = 1024


def system(study: Study, outcomes: Sequence[Outcome]) -> list[tuple[str, str]]:
    """What ran, with its name: rows of a table. Empty if no part ran."""
    setups = [outcome.results.setup for outcome in outcomes if outcome.results is not None]
    beside = [outcome.simulated.setup for outcome in outcomes if outcome.simulated is not None]
    if not setups:
        return []
    rows = [("Published", study.system)] if study.system else []
    rows += [("Disk", _disk(disk)) for disk in _unique_disks(setups)]
    rigs = dict.fromkeys(text for setup in setups if (text := setup["rig_setup"]["text"]))
    rows += [("Rig", text) for text in rigs]
    memory = dict.fromkeys(setup["host"].get("memory_kb", 0) for setup in setups)
    if sizes := [f"{kb // _KIB:,} MiB" for kb in memory if kb]:
        rows.append(("Memory", f"{', '.join(sizes)}, by part"))
    rows += [("Scheduler", text) for text in _schedulers(setups, beside)]
    versions = setups[0]["versions"]
    rows.append(("Versions", ", ".join(f"{name} {value}" for name, value in versions.items())))
    return rows


def _unique_disks(setups: Sequence[SetupData]) -> list[tuple[str, str]]:
    return list(
        dict.fromkeys(
            (disk["label"], disk["summary"]) for setup in setups for disk in setup["disks"]
        )
    )


def _disk(disk: tuple[str, str]) -> str:
    label, summary = disk
    return f"{label}: {summary}"


def _schedulers(setups: Sequence[SetupData], beside: Sequence[SetupData]) -> list[str]:
    there = {
        one["label"]: f"rig {setup['rig']}, {one['follows']}"
        for setup in setups
        for one in setup["schedulers"]
    }
    simulated = {one["label"]: one["follows"] for setup in beside for one in setup["schedulers"]}
    return [
        *(f"{name}: {follows}" for name, follows in there.items()),
        *(
            f"{name}: simulator, {follows}"
            for name, follows in simulated.items()
            if name not in there
        ),
    ]
