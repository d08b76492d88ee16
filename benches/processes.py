"""What many processes and short runs cost, each figure from separate processes.

``python benches/processes.py [--rounds N] [--out FILE.json]``. Times are CPU time, and what is
compared with another takes turns with it, so that other activity on the machine affects both alike;
the median over the rounds counts. Exit code 1 if a goal is missed by more than a tenth. ``make
bench`` runs it.
"""

from __future__ import annotations

import json
import subprocess
import sys

import figures
from figures import Measure

_ROUNDS = 9
_MANY = 4_096
_FEW = 64
_DISK = "su800-128gb"
_IOS = 732
"""I/Os of each of many processes: together, 3 million."""

_JOB = """
[randread]
ioengine=libaio
direct=1
rw=randread
bs=4k
numjobs={processes}
iodepth={depth}
filename=/dev/disk
size=1G
norandommap
io_size={bytes}
"""

_RUN = """
import json, resource, sys, time
import blklab
job, disk, scheduler, times = sys.argv[1:]
blklab.simulate("[a]\\nrw=read\\nsize=64k\\n", disk="optane-900p", scheduler="none")
spans = []
for _ in range(int(times)):
    begun = time.process_time()
    result = blklab.simulate(job, disk=disk, scheduler=scheduler)
    spans.append(time.process_time() - begun)
peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([sum(job.read.ios for job in result.jobs), min(spans), peak_kib]))
"""


def _run(scheduler: str, processes: int, each: int, times: int = 1) -> tuple[float, int]:
    """CPU seconds of a run, the least of `times`, and the peak memory of its process, KiB. 32 I/Os
    are in flight, or one of each process."""
    job = _JOB.format(processes=processes, depth=max(32 // processes, 1), bytes=each * 4096)
    command = [sys.executable, "-c", _RUN, job, _DISK, scheduler, str(times)]
    ran = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    ios, cpu_s, peak_kib = json.loads(ran.stdout)
    if ios != processes * each:
        wanted = f"{processes * each} expected"
        raise RuntimeError(f"{scheduler}, {processes} processes: {ios} I/Os, {wanted}")
    return cpu_s, peak_kib


def _kib_of_a_process() -> float:
    (_, few), (_, many) = _run("bfq", 1, _IOS), _run("bfq", _MANY, _IOS)
    return (many - few) / (_MANY - 1)


def _rate_of_many(scheduler: str) -> float:
    (one, _), (many, _) = _run(scheduler, 1, _MANY * _IOS), _run(scheduler, _MANY, _IOS)
    return one / many


def _start_ms(processes: int) -> float:
    return _run("mq-deadline", processes, 1, times=50)[0] * 1e3


def measures(rounds: int) -> list[Measure]:
    """All measurements here, with their goals."""
    beside = f"speed of {_MANY:,} processes beside that of one with the same I/Os"
    return [
        Measure(f"memory of a process, of {_MANY:,} with {_IOS} I/Os each, `bfq`", "KiB", 45, False,
                _kib_of_a_process, min(rounds, 3)),
        Measure(f"{beside}, `bfq`", "of 1", 0.4, True, lambda: _rate_of_many("bfq"), rounds),
        Measure(f"{beside}, `mq-deadline`", "of 1", 0.3, True,
                lambda: _rate_of_many("mq-deadline"), rounds),
        Measure("a run of one process with one I/O", "ms", 1, False, lambda: _start_ms(1), rounds),
        Measure(f"a run of {_FEW} processes with one I/O each", "ms", 5, False,
                lambda: _start_ms(_FEW), rounds),
    ]  # fmt: skip


if __name__ == "__main__":
    sys.exit(figures.main(__doc__, _ROUNDS, measures))
