"""The selected window and processes of a run, and the check that they are not empty."""

from __future__ import annotations

from collections.abc import Sequence

from blklab import _core
from blklab.base.units import span_ns
from blklab.domain.experiment import Window
from blklab.domain.result import Result
from blklab.errors import InputError, nearest
from blklab.timelines.summary import seconds
from blklab.timelines.timeline import KERNEL, Timeline, names

KEPT = 100_000
"""The number of requests of all processes that a run records; the shown ones are selected later."""
_LAST_NS = 2**63 - 1


def parse(from_: str, until: str | None) -> Window:
    """``--from`` and ``--until`` as a window. InputError if it is invalid or empty."""
    from_ns = _time("--from", from_)
    until_ns = _LAST_NS if until is None else _time("--until", until)
    if until_ns <= from_ns:
        raise InputError(
            f"--until {until}: the window is empty; expected a time after --from {from_}"
        )
    return Window(from_ns, until_ns, KEPT)


def _time(option: str, text: str) -> int:
    found = span_ns(text)
    if found is None:
        raise InputError(f"{option}: expected a time such as 4s, 250ms or 80us, found '{text}'")
    return found


def processes_of(job: _core.Job) -> list[str]:
    """The job of each process of a job file, as described by the simulator."""
    return [section.name for section in job.jobs for _ in range(section.clones)]


def check_processes(wanted: Sequence[str], jobs: Sequence[str], path: str) -> None:
    """InputError if the workload at `path`, which has these jobs, has no process of a wanted
    name."""
    known = {*jobs, *names(jobs), KERNEL}
    for name in wanted:
        if name not in known:
            raise InputError(f"--process: {path} has no process '{name}'{nearest(name, known)}")


def check_found(timeline: Timeline, result: Result) -> None:
    """InputError if the window is empty; it names the next event."""
    if timeline.from_ns >= result.duration_ns:
        raise InputError(
            f"--from {seconds(timeline.from_ns)}: the run ends at {seconds(result.duration_ns)}"
        )
    if timeline.requests or timeline.decisions:
        return
    queued_ns = result.overview.queued_ns
    after = queued_ns[queued_ns > timeline.until_ns]
    next_ = f"; a request is queued at {seconds(int(after.min()))}" if len(after) else ""
    raise InputError(
        f"nothing happens from {seconds(timeline.from_ns)} to {seconds(timeline.until_ns)} of "
        f"{seconds(timeline.run_ns)}{next_}"
    )
