"""One task, run in this process."""

from __future__ import annotations

from datetime import UTC, datetime

from blklab.domain.experiment import Experiment
from blklab.domain.measurement import measure
from blklab.domain.result import Result
from blklab.domain.task import Task
from blklab.errors import BlklabError, RunError
from blklab.execute.interface import Ended, KeptRun
from blklab.rigs import Rig
from blklab.rigs import rig as rig_of


def carried_out(task: Task, rig: Rig | None = None, number: int = 0) -> Ended:
    """Run one task, on `rig` or on a new rig. BlklabError if it fails."""
    experiment = task.experiment
    begun_at = datetime.now(UTC)
    try:
        result = (rig_of(task.rig) if rig is None else rig).run(experiment)
        found = _kept_of(task, result) if task.wanted == "figures" else result
        return Ended(number, found, begun_at, datetime.now(UTC))
    except (BlklabError, KeyboardInterrupt):
        raise
    except MemoryError as error:
        raise RunError(f"{what(experiment)}: out of memory; try fewer --jobs") from error
    except Exception as error:
        raise RunError(f"{what(experiment)}: {error or type(error).__name__}") from error


def what(experiment: Experiment) -> str:
    """The run's name, for messages."""
    return f"{experiment.job.name} on {experiment.disk.label} under {experiment.scheduler.label}"


def _kept_of(task: Task, result: Result) -> KeptRun:
    figures = measure(task.experiment, result, repeat=task.repeat)
    return KeptRun(figures, result.raw, result.device_before, result.device_after)
