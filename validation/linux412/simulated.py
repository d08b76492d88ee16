"""The same runs on the simulator: the same job, a disk of the same service time, the same host."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from blklab.base.catalogue import Entry
from blklab.domain import core, specs
from blklab.domain.experiment import Experiment, Window
from blklab.domain.result import Direction, Result
from blklab.rigs.sim import SimRig
from validation.linux412.reference import Run, Slice

HOST = (
    "submit_ns=0,complete_ns=0,syscall_ns=0,copy_mb_s=0,cpus=1,hz=100,clock_ns=256,"
    "drain_at_once=1,probe_on_close=1,partitions=1"
)
"""User-mode Linux in virtual time: only reading the clock takes time."""
WEIGHTS = {"a": 100, "b": 500}
"""The settings of the cgroups, which were created before the runs."""
REQUESTS = 2_000
"""The number of recorded requests of each run."""
TICK_PHASE_US = 9_500
"""The start of the runs after a tick. It was not recorded: it was chosen from a scan of seven
values on the runs of deadline. Their first expired requests show only that it is 5 to 10 ms."""
_DELAY = re.compile(r"startdelay=(\d+)ms\n")
_CGROUP = re.compile(r"exec_prerun=.*/cg/(\w+)/tasks")


@dataclass(frozen=True)
class Simulated:
    """A simulated run."""

    result: Result

    def direction(self, process: int, direction: str) -> Direction:
        """The figures of a process, numbered as in the reference."""
        found: Direction = getattr(self.result.jobs[process], direction)
        return found

    def issued(self) -> list[tuple[int, int]]:
        """Time and process of each request, in the order of issue."""
        detail = self.result.detail
        both = sorted(zip(detail.issued_ns.tolist(), detail.process.tolist(), strict=True))
        return [(at_ns, process) for at_ns, process in both if process >= 0]

    def slices(self) -> list[Slice]:
        """cfq's turns, in order; requests are not counted."""
        decisions, kinds = self.result.decisions, core.decision_kinds()
        columns = (decisions.at_ns, decisions.process, decisions.kind, decisions.a)
        found: list[Slice] = []
        for at_ns, process, kind, a in zip(*(column.tolist() for column in columns), strict=True):
            word = kinds[kind]
            if word == "slice-start":
                owner = str(process) if process >= 0 else "A"
                found.append(Slice(at_ns, None, owner, None, 0))
            elif word == "slice-timed":
                found[-1] = replace(found[-1], slice_ns=a)
            elif word.startswith("slice-end"):
                found[-1] = replace(found[-1], end_ns=at_ns)
        return found


def job_text(run: Run) -> str:
    """The job for the simulator: processes start in the order in which they did, a microsecond
    after each other; offsets are fio's own; cgroups have names and weights."""
    head, common, *jobs = re.split(r"^(?=\[)", run.job, flags=re.MULTILINE)
    place = {process: place for place, process in enumerate(run.order_of_start())}
    for process, job in enumerate(jobs):
        found = _DELAY.search(job)
        delay_us = TICK_PHASE_US + (int(found[1]) * 1000 if found else place[process])
        jobs[process] = f"{_DELAY.sub('', job)}startdelay={delay_us}us\n"
    text = "".join([head, common, "random_generator=tausworthe\n", *jobs])
    text = text.replace("filename=/dev/sda\n", "filename=sda\n")

    def cgroup(found: re.Match[str]) -> str:
        return f"cgroup={found[1]}\ncgroup_weight={WEIGHTS[found[1]]}"

    return _CGROUP.sub(cgroup, text)


def simulate(run: Run) -> Simulated:
    """`run` on the simulator."""
    keys = f"service_us={run.service_us},queue_depth={run.depth},max_hw_sectors_kib=512"
    disk = specs.disk(f"constant:{keys}")
    entry = Entry(run.name, Path(f"{run.name}.fio"), job_text(run))
    experiment = Experiment(
        entry,
        disk,
        specs.scheduler(run.scheduler),
        1,
        host=specs.host([HOST]),
        window=Window(requests=REQUESTS),
    )
    return Simulated(SimRig().run(experiment))
