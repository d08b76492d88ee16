"""Evidence from comparisons: those of the store, or one that has just run."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass

from blklab.domain.measurement import Measurement
from blklab.domain.results_file import Results
from blklab.errors import InputError, StoreError
from blklab.experiment.analyse import analyse
from blklab.experiment.statistics import Unranked
from blklab.experiment.words import sentence
from blklab.store import place, read
from blklab.store.opening import exists, open_store
from blklab.watching.evidence import Evidence, Figures


@dataclass(frozen=True)
class Wanted:
    """The evidence that is looked for."""

    workload: str
    """As comparisons name it."""
    schedulers: Collection[str]
    """All must have figures."""
    objective: str
    disk_id: str
    """The full id of the real disk."""
    model: str
    """The disk model that stands for it."""
    drawn: bool
    """Whether the model only has the disk's kind: then an answer must hold on disks drawn from the
    ranges of its estimates."""


def find(wanted: Wanted, store: str | None, tell: Callable[[str], None]) -> Evidence | None:
    """The latest stored comparison of the disk itself, else of its model; None if there is none.

    `tell` receives a line for each stored comparison that cannot be read. InputError or StoreError
    if the store cannot be opened.
    """
    where = place.find(store)
    if not exists(where):
        return None
    opened = open_store(where, make=False, tell=tell)
    for rigs in (("live",), ("kernel", "sim")):
        rows = read.listed(opened, read.Filter(workloads=[wanted.workload], rigs=rigs), tell)
        for row in rows:
            if not row.is_complete or not set(wanted.schedulers) <= set(row.schedulers):
                continue
            if rigs != ("live",) and wanted.model not in row.disks:
                continue
            try:
                results = read.comparison(opened, row.id, tell=tell).results()
            except (InputError, StoreError) as error:
                tell(str(error))
                continue
            label = _label(results, wanted) if row.rig == "live" else wanted.model
            is_drawn = any(run.drawn for run in results.runs)
            if label is None or (row.rig != "live" and is_drawn != wanted.drawn):
                continue
            source = f"comparison {row.id}, {wanted.workload.partition(':')[0]} on {label}"
            if found := of_results(results, label, wanted, source):
                return found
    return None


def _label(results: Results, wanted: Wanted) -> str | None:
    """The name of the real disk in a live comparison; None if that was of other disks."""
    for row in results.setup["disks"]:
        ids = {str(one["value"]) for one in row["parameters"] if one["key"].endswith(": id")}
        if ids == {wanted.disk_id}:
            return str(row["label"])
    return None


def of_results(results: Results, disk: str, wanted: Wanted, source: str) -> Evidence | None:
    """The evidence of a comparison; None if it lacks one of the schedulers."""
    runs: list[Measurement] = [
        run for run in results.runs if (run.disk, run.workload) == (disk, wanted.workload)
    ]
    if not set(wanted.schedulers) <= {run.scheduler for run in runs}:
        return None
    [cell] = analyse(runs, wanted.objective, anytime=results.anytime).cells
    answer = cell.verdicts[wanted.objective]
    figures = {
        row.scheduler: Figures(
            row.ranked_ns if cell.operation else math.nan, row.bytes_per_s.estimate
        )
        for row in cell.rows
    }
    if isinstance(answer, Unranked):
        return Evidence(source, figures, (), why_none=sentence(answer, wanted.objective))
    costs = {name: interval.estimate for name, interval in answer.behind.items()}
    if answer.disks:
        # Ahead on some disks and behind on others: this disk is not known.
        costs |= dict.fromkeys(answer.leads, 1.0)
    return Evidence(source, figures, ({answer.best: 1.0} | costs,), answer.leads)
