"""One fio job on the fast device, with its rate."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from blklab.base.catalogue import Entry
from blklab.errors import RunError
from blklab.rigs.live.ahead import WALL
from blklab.rigs.live.program import Program

RUN_S = 0.4
_RAMP_S = 0.1
_SIMULATED_S = 0.01
BUFFERED_BYTES = 64 << 20
"""What the buffered reads of each job go over: in the page cache, and larger than the caches of
most CPUs."""
DEEP = 32
"""I/Os in flight of a job from which on its process, and the threads that work for it, have work on
CPUs of their own. With fewer, Linux keeps them on one CPU, where they take turns
(`select_task_rq`)."""


@dataclass(frozen=True)
class Load:
    """Reads on the device."""

    jobs: int
    block_bytes: int = 4096
    depth: int = DEEP
    buffered: bool = False
    """Sequential reads from the page cache, instead of random direct ones."""

    @property
    def is_modelled(self) -> bool:
        """The simulated host has what decides its rate."""
        return self.buffered or self.depth >= DEEP

    @property
    def text(self) -> str:
        """For people and for files: ``4 jobs, 4 KiB, depth 32``."""
        jobs = f"{self.jobs} job{'s' if self.jobs > 1 else ''}, {self.block_bytes >> 10} KiB"
        return f"{jobs}, page cache" if self.buffered else f"{jobs}, depth {self.depth}"

    def job(self, device: Path, *, real: bool, more: Sequence[str] = ()) -> Entry:
        """The job file, for fio itself, with `more` lines, or for the simulator, whose time is not
        disturbed."""
        seconds = RUN_S if real else _SIMULATED_S
        lines = [
            "[global]",
            f"filename={device}",
            f"bs={self.block_bytes}",
            f"numjobs={self.jobs}",
            "group_reporting",
            "time_based",
            f"runtime={round(seconds * 1000)}ms",
        ]
        if self.buffered:
            lines += ["ioengine=psync", "rw=read", f"size={BUFFERED_BYTES}", "invalidate=0"]
            lines += [f"offset_increment={BUFFERED_BYTES}"]
        else:
            lines += ["ioengine=libaio", "rw=randread", "direct=1", f"iodepth={self.depth}"]
        if real:
            lines.append(f"ramp_time={round(_RAMP_S * 1000)}ms")
        return Entry(self.text, Path("measured.fio"), "\n".join([*lines, *more, "[reads]", ""]))


@dataclass(frozen=True)
class Measured:
    """What fio did."""

    iops: float
    submission_ns: float
    """The mean time in the call that submits an I/O; 0 for psync."""
    cpu_s: float
    """CPU time of all its processes."""


def run(load: Load, device: Path, directory: Path, *, ahead: bool) -> Measured:
    """Run it with fio. RunError with fio's message if it fails."""
    file, output = directory / "measured.fio", directory / "measured.json"
    # A process would begin a session of its own.
    file.write_text(load.job(device, real=True, more=["thread"] if ahead else []).text)
    command = ["fio", "--eta=never", "--output-format=json", f"--output={output}", str(file)]
    ended = Program().run(command, directory, wall=WALL if ahead else ())
    if ended.code != 0:
        lines = [line for line in ended.stderr.splitlines() if line.strip()]
        raise RunError(f"fio: {(lines or ['failed without a message'])[0]}")
    return read(output.read_text(errors="replace"), ended.cpu_s)


def read(text: str, cpu_s: float) -> Measured:
    """fio's JSON. RunError if it is not that."""
    # Not by `FioJob.read`: it expects each process, and this job prints them as one group.
    try:
        [job] = json.loads(text[text.index("{") :])["jobs"]
        reads = job["read"]
        return Measured(
            float(reads["iops"]),
            float(reads["slat_ns"]["mean"]),
            cpu_s,
        )
    except (ValueError, KeyError, TypeError) as error:
        raise RunError("fio: its output is not the expected JSON") from error


def median(values: Sequence[float]) -> float:
    """The middle one; of an even number the mean of both."""
    ordered, half = sorted(values), len(values) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
