"""``blklab.explain``: one run, request by request, with the scheduler's decisions."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from blklab import rigs
from blklab.api.listener import SILENT, Listener
from blklab.base import limits
from blklab.base.catalogue import Entry
from blklab.base.files import check_files, write_together
from blklab.domain import core, recordings, specs, validation
from blklab.domain.experiment import Disk, Experiment, RigSpec, SchedulerSpec
from blklab.report.timeline import page
from blklab.rigs import check_workload
from blklab.timelines import summary, trace, window
from blklab.timelines.timeline import Timeline, build


def explain(
    job: str | os.PathLike[str] | Entry,
    *,
    disk: str | os.PathLike[str] | Disk,
    scheduler: str | SchedulerSpec = "none",
    from_: str = "0s",
    until: str | None = None,
    processes: Sequence[str] = (),
    requests: int | None = None,
    rig: str | RigSpec = "sim",
    seed: int = 1,
    host: Mapping[str, int] | None = None,
    ignore_unsupported: bool = False,
    page_file: str | os.PathLike[str] | None = None,
    perfetto_file: str | os.PathLike[str] | None = None,
    listener: Listener = SILENT,
) -> Timeline:
    """Run a fio job once and return the timeline of its requests and of the decisions.

    Args:
        job, disk, scheduler, seed, host, ignore_unsupported, rig: see `simulate`.
        from_, until: the window: ``4s``, ``250ms``, ``80us``; None is the end of the run.
        processes: only these: a job's name, or ``name.0`` for its first clone; ``kernel`` is
            writeback and flushes.
        requests: the maximum number of requests to return; the others are only counted.
        page_file: write a page with a picture there.
        perfetto_file: write a trace for Perfetto there.

    Raises:
        blklab.errors.InputError: bad input, or nothing happens in the window.
        blklab.errors.RunError: the run failed.
    """
    model, entry = specs.disk(disk), specs.workload(job)
    spec = rigs.of_workloads(RigSpec.of(rig), [entry])
    wanted_scheduler = specs.scheduler(scheduler)
    check_workload(spec, entry)
    asked = window.parse(from_, until)
    is_recording = recordings.is_recording(entry)
    if not is_recording:
        jobs = window.processes_of(core.describe_job(entry, ignore_unsupported))
        window.check_processes(processes, jobs, entry.place)
    files = [Path(file) for file in (page_file, perfetto_file) if file is not None]
    check_files(*files)
    experiment = Experiment(
        entry, model, wanted_scheduler, seed, dict(host or {}), ignore_unsupported, asked
    )
    for option in core.ignored_options(entry, ignore_unsupported):
        listener.note(f"ignored: {option}")
    place = rigs.rig(spec)
    with listener.run(place):
        result = place.run(experiment)
    if is_recording:
        # Its processes are known once it was read.
        window.check_processes(processes, [job.name for job in result.jobs], entry.place)
    for note in result.notes:
        listener.note(note)
    timeline = build(
        result,
        load=entry.name,
        disk=model.label,
        scheduler=wanted_scheduler.label,
        rig=spec.name,
        from_ns=asked.from_ns,
        until_ns=asked.until_ns,
        wanted=processes,
        most=requests or (limits.FILE_REQUESTS if files else limits.TEXT_REQUESTS),
    )
    window.check_found(timeline, result)
    for note in filter(None, [validation.note(model), summary.undecided(timeline)]):
        listener.note(note)
    texts: dict[Path, str | bytes] = {}
    if page_file is not None:
        texts[Path(page_file)] = page(timeline)
    if perfetto_file is not None:
        texts[Path(perfetto_file)] = trace.perfetto(timeline)
    if texts:
        write_together(texts)
    return timeline
