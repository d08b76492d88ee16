"""The `sim` rig: scheduler, block layer and disk in virtual time, in the Rust core."""

from __future__ import annotations

from collections.abc import Mapping

from blklab import _core
from blklab.domain import core, scheduler
from blklab.domain.conditions import RigData
from blklab.domain.experiment import Experiment, RigSpec, SchedulerSpec
from blklab.domain.result import Result
from blklab.domain.scheduler import Scheduler
from blklab.errors import InputError, RunError
from blklab.rigs import check_workload
from blklab.rigs.modelled import ModelledDisks


class SimRig(ModelledDisks):
    """See :class:`blklab.rigs.Rig`."""

    name = "sim"
    spec = RigSpec("sim")

    def __init__(self) -> None:
        self._cancel = _core.CancelToken()

    def describe(self) -> RigData:
        """See :class:`blklab.rigs.Rig`."""
        return {"text": ""}

    def check_host(self, changed: Mapping[str, int]) -> dict[str, int]:
        """See :class:`blklab.rigs.Rig`."""
        return core.check_host(changed)

    def check_scheduler(self, spec: SchedulerSpec) -> Scheduler:
        """See :class:`blklab.rigs.Rig`."""
        return scheduler.simulated(_without_kernel(spec))

    def run(self, experiment: Experiment) -> Result:
        """Simulate without the GIL; see :class:`blklab.rigs.Rig`."""
        check_workload(self.name, experiment.job)
        window = experiment.window
        try:
            with core.core_types():
                host = core.host(experiment.host)
                run = _core.simulate(
                    core.job(experiment.job, host, experiment.ignore_unsupported),
                    core.disk_model(experiment.disk),
                    _core.Scheduler(_without_kernel(experiment.scheduler)),
                    host,
                    experiment.seed,
                    self._cancel,
                    None if window is None else (window.from_ns, window.until_ns, window.requests),
                )
        except RuntimeError as error:
            raise RunError(str(error)) from error
        except _core.PanicException as error:
            raise RunError(
                f"an error in blklab, please report it with the job file: {error}"
            ) from error
        return Result.from_run(run)

    def position(self) -> tuple[float, float | None]:
        """See :class:`blklab.rigs.Rig`."""
        end_ns = self._cancel.end_ns
        return self._cancel.now_ns / 1e9, end_ns / 1e9 if end_ns else None

    def cancel(self) -> None:
        """See :class:`blklab.rigs.Rig`."""
        self._cancel.cancel()


def _without_kernel(spec: SchedulerSpec) -> str:
    """Its text; InputError if it names a kernel."""
    if spec.kernel is not None:
        raise InputError(f"scheduler '{spec.label}': the kernel '{spec.kernel}' needs --rig kernel")
    return spec.told
