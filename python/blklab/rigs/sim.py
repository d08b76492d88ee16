"""The `sim` rig: scheduler, block layer and disk in virtual time, in the Rust core.

Runs of the simulator begin here: job files, and replays of recordings.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from blklab import _core
from blklab.domain import core, recordings, scheduler
from blklab.domain.conditions import RigData
from blklab.domain.experiment import Experiment, RigSpec, SchedulerSpec
from blklab.domain.result import Result
from blklab.domain.scheduler import Scheduler
from blklab.errors import InputError, RunError
from blklab.rigs import check_workload
from blklab.rigs.loaded import LoadedRecordings
from blklab.rigs.modelled import ModelledDisks


class SimRig(ModelledDisks):
    """See :class:`blklab.rigs.Rig`."""

    name = "sim"
    spec = RigSpec("sim")

    def __init__(self) -> None:
        self._cancel = _core.CancelToken()
        self.recordings = LoadedRecordings()

    def describe(self) -> RigData:
        """See :class:`blklab.rigs.Rig`."""
        return {"text": ""}

    def check_host(self, changed: Mapping[str, int]) -> dict[str, int]:
        """See :class:`blklab.rigs.Rig`."""
        return core.check_host(changed)

    def check_scheduler(self, spec: SchedulerSpec) -> Scheduler:
        """See :class:`blklab.rigs.Rig`."""
        _check_kernel(spec)
        return scheduler.simulated(spec)

    def run(self, experiment: Experiment) -> Result:
        """Simulate without the GIL; see :class:`blklab.rigs.Rig`."""
        check_workload(self.spec, experiment.job)
        with _run_errors():
            if recordings.is_recording(experiment.job):
                return self._replay(experiment)
            host = core.host(experiment.host)
            job = _job(experiment, host)
            rest = (
                core.disk_model(experiment.disk),
                _scheduler(experiment),
                host,
                experiment.seed,
                self._cancel,
                _window(experiment),
                experiment.until_ns,
            )
            uncommitted = _uncommitted(experiment, job)
            if not experiment.job.beside:
                result = Result.from_run(_core.simulate(job, *rest))
                return dataclasses.replace(result, notes=uncommitted) if uncommitted else result
            replays = self.recordings.replays(experiment.job)
            run, told = _core.simulate_beside(job, replays, *rest)
        notes = (*_notes(told, experiment), *uncommitted)
        return dataclasses.replace(Result.from_run(run), notes=notes)

    def record(self, experiment: Experiment, out: Path) -> Result:
        """Run a job file or replay a recording, and write its I/O as a recording to `out`; errors
        as of `run`, and RunError if it cannot be written."""
        if experiment.job.beside and not recordings.is_recording(experiment.job):
            raise InputError(
                f"{experiment.job.name}: a job file beside recordings cannot be recorded; expected "
                "one of them"
            )
        with _run_errors():
            if recordings.is_recording(experiment.job):
                return self._replay(experiment, out)
            host = core.host(experiment.host)
            run, _ = _core.record(
                _job(experiment, host),
                core.disk_model(experiment.disk),
                _scheduler(experiment),
                host,
                experiment.seed,
                out,
                self._cancel,
            )
        return Result.from_run(run)

    def _replay(self, experiment: Experiment, out: Path | None = None) -> Result:
        """A job of the result is a recorded process. With `out` the replay is recorded there."""
        run, told = _core.replay(
            self.recordings.replays(experiment.job),
            core.disk_model(experiment.disk),
            _scheduler(experiment),
            core.host(experiment.host),
            experiment.seed,
            self._cancel,
            _window(experiment),
            out,
            experiment.until_ns,
        )
        notes = _notes(told, experiment)
        return dataclasses.replace(Result.from_run(run), notes=notes)

    def position(self) -> tuple[float, float | None]:
        """See :class:`blklab.rigs.Rig`."""
        end_ns = self._cancel.end_ns
        return self._cancel.now_ns / 1e9, end_ns / 1e9 if end_ns else None

    def cancel(self) -> None:
        """See :class:`blklab.rigs.Rig`."""
        self._cancel.cancel()


def _notes(told: _core.ReplayNotes, experiment: Experiment) -> tuple[str, ...]:
    replays = recordings.every(experiment.job)
    return (*recordings.notes(told, replays), *recordings.cgroup_notes(told, replays))


@contextmanager
def _run_errors() -> Iterator[None]:
    try:
        with core.core_types():
            yield
    except RuntimeError as error:
        raise RunError(str(error)) from error
    except _core.PanicException as error:
        raise RunError(
            f"an error in blklab, please report it with the workload: {error}"
        ) from error


def _job(experiment: Experiment, host: _core.Host) -> _core.Job:
    job = core.job(experiment.job, host, experiment.ignore_unsupported)
    files = experiment.files
    if files is None:
        return job
    journal = files.journal
    if journal is None:
        return job.placed(files.places)
    kind, _, _ = files.file_system.partition(":")
    return job.placed(files.places, (kind, journal.extents, journal.head, journal.unit))


def _uncommitted(experiment: Experiment, job: _core.Job) -> tuple[str, ...]:
    """A note if the job's syncs would commit a journal that the host has not."""
    # Most jobs do not sync: their runs are short, and have no time for a look at each section.
    if "sync" not in experiment.job.text or not core.commits(job):
        return ()
    host = core.check_host(experiment.host)
    return () if host["journal"] or host["partitions"] else (core.UNCOMMITTED,)


def _window(experiment: Experiment) -> tuple[int, int, int] | None:
    window = experiment.window
    return None if window is None else (window.from_ns, window.until_ns, window.requests)


def _scheduler(experiment: Experiment) -> _core.Scheduler:
    _check_kernel(experiment.scheduler)
    return scheduler.in_core(experiment.scheduler)


def _check_kernel(spec: SchedulerSpec) -> None:
    """InputError if it names a kernel."""
    if spec.kernel is not None:
        raise InputError(f"scheduler '{spec.label}': the kernel '{spec.kernel}' needs --rig kernel")
