"""The `sim` rig: scheduler, block layer and disk in virtual time, in the Rust core.

All use of the compiled core goes through here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from blklab import _core
from blklab.base.catalogue import Entry
from blklab.base.text import shown
from blklab.errors import InputError, RunError
from blklab.result import Result
from blklab.rigs import Disk, Experiment, check_workload, environment_variables
from blklab.rigs.modelled import ModelledDisks

_TOO_LARGE = "seed or host value: out of range; 64 bits are what there is"


class SimRig(ModelledDisks):
    """See :class:`blklab.rigs.Rig`."""

    name = "sim"

    def __init__(self) -> None:
        self._cancel = _core.CancelToken()

    def describe(self) -> dict[str, Any]:
        """See :class:`blklab.rigs.Rig`."""
        return {"text": ""}

    def check_host(self, changed: Mapping[str, int]) -> dict[str, int]:
        """See :class:`blklab.rigs.Rig`."""
        return check_host(changed)

    def check_scheduler(self, spec: str) -> dict[str, Any]:
        """See :class:`blklab.rigs.Rig`."""
        return check_scheduler(_without_kernel(spec))

    def run(self, experiment: Experiment) -> Result:
        """Simulate without the GIL; see :class:`blklab.rigs.Rig`."""
        check_workload(self.name, experiment.job)
        job, disk, window = experiment.job, experiment.disk, experiment.window
        try:
            run = _core.simulate(
                job.text,
                job.place,
                environment_variables(),
                disk.file.text,
                disk.file.place,
                list(disk.overrides),
                _without_kernel(experiment.scheduler),
                experiment.seed,
                dict(experiment.host),
                experiment.ignore_unsupported,
                self._cancel,
                None if window is None else (window.from_ns, window.until_ns, window.requests),
            )
        except OverflowError as error:
            raise InputError(_TOO_LARGE) from error
        except ValueError as error:
            raise InputError(str(error)) from error
        except RuntimeError as error:
            raise RunError(str(error)) from error
        except _core.PanicException as error:
            raise RunError(
                f"a mistake of blklab's own, please report it with the job file: {error}"
            ) from error
        return Result.from_run(run)

    def position(self) -> tuple[float, float | None]:
        """See :class:`blklab.rigs.Rig`."""
        end_ns = self._cancel.end_ns
        return self._cancel.now_ns / 1e9, end_ns / 1e9 if end_ns else None

    def cancel(self) -> None:
        """See :class:`blklab.rigs.Rig`."""
        self._cancel.cancel()


def version() -> str:
    """The core's version."""
    return _core.version()


def schedulers() -> list[dict[str, Any]]:
    """Name, summary, source and tunables of every scheduler."""
    table: list[dict[str, Any]] = json.loads(_core.schedulers())
    return table


def decision_kinds() -> list[str]:
    """Every kind of decision that a scheduler notes, in the order of their numbers."""
    return _core.decision_kinds()


def _without_kernel(spec: str) -> str:
    """`spec`; InputError if it names a kernel."""
    spec = shown(spec)
    _, at, kernel = spec.rpartition("@")
    if at:
        raise InputError(f"scheduler '{spec}': the kernel '{kernel}' needs --rig kernel")
    return spec


def check_scheduler(spec: str) -> dict[str, Any]:
    """``name:key=value,...`` as name, all settings and those changed. InputError if wrong."""
    return _checked(_core.check_scheduler, shown(spec))


def describe_disk(disk: Disk) -> dict[str, Any]:
    """What a disk file says, key by key, with what was changed. InputError if it is wrong."""
    return _checked(_core.disk, disk.file.text, disk.file.place, list(disk.overrides))


def environment() -> dict[str, list[dict[str, Any]]]:
    """The tunables of queue, page cache and host, by these names."""
    tables: dict[str, list[dict[str, Any]]] = json.loads(_core.environment())
    return tables


def check_host(changed: Mapping[str, int]) -> dict[str, int]:
    """Every tunable of host and page cache, with these changed. InputError if wrong."""
    values: dict[str, int] = _checked(_core.check_host, dict(changed))
    return values


def describe_job(entry: Entry, ignore_unsupported: bool, *, real: bool = False) -> dict[str, Any]:
    """What a job file says, section by section; if `real`, to real fio on a real disk. InputError
    if it is wrong."""
    return _checked(
        _core.parse_job, entry.text, entry.place, environment_variables(), ignore_unsupported, real
    )


def ignored_options(entry: Entry, ignore_unsupported: bool, *, real: bool = False) -> list[str]:
    """A line for each option of a job file that is left out; see `describe_job`. InputError if the
    file is wrong."""
    return [
        f"{option['path']}:{option['line']}: {option['name']}={option['value']}: {option['why']}"
        for option in describe_job(entry, ignore_unsupported, real=real)["ignored"]
    ]


def _checked(call: Any, *arguments: Any) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = json.loads(call(*arguments))
    except OverflowError as error:
        raise InputError(_TOO_LARGE) from error
    except ValueError as error:
        raise InputError(str(error)) from error
    return answer
