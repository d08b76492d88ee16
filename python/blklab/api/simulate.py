"""``blklab.simulate``: one job, one disk, one scheduler, one result."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from blklab import fio, programs
from blklab.api import keeping
from blklab.api.listener import SILENT, Listener
from blklab.base.catalogue import Entry
from blklab.domain import core, recordings, specs, validation
from blklab.domain.comparison import Setup, plan
from blklab.domain.experiment import Disk, RigSpec, SchedulerSpec
from blklab.domain.result import Result
from blklab.errors import BlklabError, InputError
from blklab.fio.status import report
from blklab.rigs import check_workload, find_disk, of_workloads
from blklab.rigs import rig as rig_of


@dataclass(frozen=True)
class JobRun:
    """A fio job that has run once."""

    result: Result
    disk: Disk
    options: Mapping[str, str]
    """The options of the job file's global section."""
    ended_at: datetime | None
    """The start by the machine's clock, on rigs that use it."""

    def fio_output(self, formats: str = "json", *, requests: bool = False) -> str:
        """fio's output: ``normal``, ``json``, ``json+`` or ``terse``, several with commas.
        `requests` adds queue time and service time. InputError if there is no such format."""
        name = self.disk.file.name
        told = report(
            self.result, name, dict(self.options), requests=requests, ended_at=self.ended_at
        )
        return fio.render(told, fio.formats(formats))


def simulate(
    job: str | os.PathLike[str] | Entry,
    *,
    disk: str | os.PathLike[str] | Disk,
    scheduler: str | SchedulerSpec = "none",
    seed: int = 1,
    host: Mapping[str, int] | None = None,
    ignore_unsupported: bool = False,
    rig: str = "sim",
    kernel: str | None = None,
    driver: str | None = None,
) -> Result:
    """Run a fio job on a modelled disk and return the result.

    Args:
        job: a job file's path, the name of a workload, or the text of a job file (anything
            with a line break or an opening bracket in it), or an `Entry`.
        disk: a disk's name or the path of its TOML file, with ``:key=value,...`` to change it;
            with ``rig="live"`` a directory or a device; or a `Disk`.
        scheduler: name, with ``:tunable=value,...`` in the kernel's units; or a `SchedulerSpec`.
        seed: the same seed gives the same result to the last bit.
        host: costs and sizes of the modelled host, by name.
        ignore_unsupported: leave out job options that are not simulated instead of refusing.
        rig: ``sim``, or ``kernel``: Linux itself above the modelled disk, or ``live``: this
            machine and a real disk, on which test files are made; a device is only read.
        kernel: name of the kernel for the kernel rig; the newest one without changes if None.
        driver: the program that issues the I/O on the kernel rig: ``native``, the
            default, which issues the simulator's I/O, or ``fio`` itself.

    Raises:
        blklab.errors.InputError: a name, file or value is wrong; one line says which.
        blklab.errors.RunError: the run failed: the guest panicked, the disk was too late.
    """
    entry = job_entry(job)
    place = rig_of(of_workloads(RigSpec(rig, kernel=kernel, driver=driver), [entry]))
    setup = _setup(
        entry,
        find_disk(place, disk),
        specs.scheduler(scheduler),
        seed,
        host,
        ignore_unsupported,
    )
    [planned] = plan(setup)
    return place.run(planned.experiment)


def run_job(
    job: str | os.PathLike[str] | Entry,
    *,
    disk: str | os.PathLike[str] | Disk,
    scheduler: str | SchedulerSpec = "none",
    seed: int = 1,
    host: Mapping[str, int] | None = None,
    ignore_unsupported: bool = False,
    rig: str | RigSpec = "sim",
    keep: bool = False,
    store: str | None = None,
    listener: Listener = SILENT,
) -> JobRun:
    """As `simulate`, for output as fio prints it: a job file or a workload, on any rig with all
    its options; with `keep` the store keeps the result.

    Args:
        job, disk, scheduler, seed, host, ignore_unsupported: see `simulate`.
        rig: a rig's name, or the rig with its options.
        keep: store the result.
        store: the store; None is the default one.
        listener: is told notes and progress.

    Raises:
        blklab.errors.InputError: as of `simulate`; or the workload is a program other than fio.
        blklab.errors.RunError: the run failed.
    """
    entry = specs.workload(job)
    spec = of_workloads(RigSpec.of(rig), [entry])
    place = rig_of(spec)
    model = find_disk(place, disk)
    if programs.is_program(entry):
        raise InputError(
            f"{entry.name}: is not a fio job; to run it once: blklab compare --rig kernel "
            f"--workload {entry.name} --scheduler NAME --repeats 1 --disk MODEL"
        )
    check_workload(spec, entry)
    asked = specs.scheduler(scheduler)
    setup = _setup(entry, model, asked, seed, host, ignore_unsupported)
    [planned] = plan(setup)
    real = place.name == "live"
    for option in core.ignored_options(entry, ignore_unsupported, real=real):
        listener.note(f"ignored: {option}")
    options = (
        {}
        if recordings.is_recording(entry)
        else dict(core.describe_job(entry, ignore_unsupported, real=real).defaults)
    )
    single = keeping.place_of_single(store, setup, place, listener) if keep else None
    with place.prepared([planned.experiment], listener.note), listener.run(place):
        begun_at = datetime.now(UTC)
        result = place.run(planned.experiment)
        ended_at = datetime.now(UTC)
    if single is not None:
        try:
            keeping.keep_single(single, planned, result, begun_at, ended_at)
        except BlklabError as error:
            # The figures are complete without the store.
            listener.note(f"this run is not stored: {error}")
    unchecked = "" if real else validation.note(model)
    for note in filter(None, [place.describe()["text"], unchecked, *result.notes]):
        listener.note(note)
    return JobRun(result, model, options, ended_at if real else None)


def job_entry(job: str | os.PathLike[str] | Entry) -> Entry:
    """A job file by path, a workload by name, or the text of a job file; see `simulate`."""
    if isinstance(job, str) and ("\n" in job or "[" in job):
        return Entry("job", Path("job"), job)
    return specs.workload(job)


def _setup(
    job: Entry,
    disk: Disk,
    scheduler: SchedulerSpec,
    seed: int,
    host: Mapping[str, int] | None,
    ignore_unsupported: bool,
) -> Setup:
    return Setup((disk,), (job,), (scheduler,), 1, seed, dict(host or {}), ignore_unsupported)
