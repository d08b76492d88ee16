"""Random inputs for a sequence of `tests.machine_state`: jobs, settings, signals, moments."""

from __future__ import annotations

import signal
from dataclasses import dataclass

from hypothesis import strategies as st

from tests.machine_command import PHASES, TARGETS
from tests.machine_world import OWN

COMPARED = OWN / "compared"
"""The report of `COMPARE`, which recommends bfq."""
COMPARE = ("compare", "--disk", "wd10ezrx", "--workload", "desktop", "--scheduler", "mq-deadline",
           "--scheduler", "bfq", "--repeats", "5", "--out", str(COMPARED), "--no-keep")  # fmt: skip

WITHOUT_A_CHANCE = (signal.SIGKILL, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE)
"""Signals after which blklab cannot restore anything: its leftovers are owed."""
STOPPING = (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
HARMLESS = (signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH)
SIGNALS = st.one_of(
    st.just(signal.SIGKILL),
    st.sampled_from((signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGABRT)),
    st.sampled_from(sorted(signal.Signals)),
    st.sampled_from(sorted(signal.valid_signals())),
)
"""Signals that are common in practice come more often."""

_FIO = "direct=1\nsize=1m\nruntime=250ms\ntime_based\n"
JOBS = {
    "reads": f"[r]\nrw=randread\nbs=4k\n{_FIO}",
    "writes": f"[w]\nrw=randwrite\nbs=4k\n{_FIO}end_fsync=1\n",
    "several": f"[a]\nrw=randrw\nbs=4k\nnumjobs=2\nnrfiles=3\n{_FIO}[b]\nrw=read\n{_FIO}",
    "logs": f"[r]\nrw=randread\nbs=4k\nwrite_lat_log=log\nwrite_bw_log=log\n{_FIO}",
    "cgroup": f"[r]\nrw=randread\nbs=4k\ncgroup=soak\ncgroup_weight=300\n{_FIO}",
    "a-device": "[d]\nfilename=/dev/sda\nrw=read\nbs=64k\nio_size=1m\n",
    "too-large": "[l]\nrw=read\nsize=60m\n",
    "wrong": "[w]\nrw=sideways\n",
}
PROGRAMS = ("sqlite:insertions=20", "record-write:size_mib=1")
RUN_WITH = ("none", "mq-deadline", "kyber", "bfq", "bfq:slice_idle=0,nr_requests=32",
            "mq-deadline:fifo_batch=2,read_ahead_kb=64", "none:nr_requests=16",
            "kyber:read_lat_nsec=1000000,nomerges=2", "bfq:strict_guarantees=1,max_sectors_kb=64",
            "none:rq_affinity=2,iostats=0", "cfq", "bfq:nosuch=1")  # fmt: skip
APPLIED: tuple[tuple[str, dict[str, str]], ...] = (
    ("bfq", {"scheduler": "bfq"}),
    ("bfq:slice_idle=0,low_latency=0", {"scheduler": "bfq", "iosched/slice_idle": "0",
                                        "iosched/low_latency": "0"}),
    ("kyber:read_lat_nsec=1000000", {"scheduler": "kyber", "iosched/read_lat_nsec": "1000000"}),
    ("bfq --nr-requests 77", {"scheduler": "bfq", "nr_requests": "77"}),
    ("mq-deadline --nr-requests 77", {"scheduler": "mq-deadline", "nr_requests": "77"}),
    ("none --set read_ahead_kb=512", {"scheduler": "none", "read_ahead_kb": "512"}),
    ("--set nomerges=2 --set rq_affinity=0", {"nomerges": "2", "rq_affinity": "0"}),
    ("--nr-requests 50", {"nr_requests": "50"}),
    ("mq-deadline:fifo_batch=-5", {}),
    ("bfq:nosuch=1", {}),
    ("bfq --dry-run", {}),
    (f"--from {COMPARED}", {"scheduler": "bfq"}),
)  # fmt: skip
WRITTEN = (
    *(("scheduler", name) for name in ("none", "mq-deadline", "kyber", "bfq")),
    *(("nr_requests", value) for value in ("77", "33", "200")),
    *(("read_ahead_kb", value) for value in ("64", "1024")),
    ("nomerges", "2"), ("rq_affinity", "0"), ("iostats", "0"), ("max_sectors_kb", "256"),
    ("wbt_lat_usec", "0"), ("rotational", "0"), ("add_random", "1"), ("io_timeout", "20000"),
    ("iosched/fifo_batch", "7"), ("iosched/slice_idle", "3"), ("iosched/low_latency", "0"),
    ("iosched/read_lat_nsec", "9000000"), ("iosched/async_depth", "20"),
)  # fmt: skip

BEGUN_WITH = st.sampled_from((
    (),
    (("nr_requests", "77"),),
    (("scheduler", "mq-deadline"), ("nr_requests", "77"), ("iosched/fifo_batch", "7")),
    (("scheduler", "bfq"), ("iosched/low_latency", "0"), ("read_ahead_kb", "64")),
    (("scheduler", "kyber"), ("iosched/read_lat_nsec", "9000000"), ("nomerges", "1")),
))  # fmt: skip
"""Settings of a disk before the sequence."""
LOADS = st.sampled_from(("reads", "writes", "several", "logs", "cgroup", *PROGRAMS))
SCHEDULERS = st.sampled_from(RUN_WITH[:-2])
"""Schedulers that are accepted."""
FRACTIONS = st.floats(0.0, 1.0).map(lambda value: round(value, 3))
NAMES = st.sampled_from(("big", "small", "raw"))
WITH_FILES = st.sampled_from(("big", "small"))


@dataclass(frozen=True)
class Moment:
    """A point of time in a command's run."""

    phase: str
    fraction: float
    """Fraction of `PHASE_S` after the start of the phase."""

    def __str__(self) -> str:
        return f"{self.fraction * PHASE_S:.3f} s after '{self.phase}'"


PHASE_S = 0.12
MOMENTS = st.builds(Moment, st.sampled_from(PHASES), FRACTIONS)


@dataclass(frozen=True)
class Meanwhile:
    """An action of another program while a command runs."""

    moment: Moment
    name: str
    role: str
    what: tuple[str, ...] = ()


@dataclass(frozen=True)
class Blow:
    """A signal to a command."""

    moment: Moment
    number: int
    target: str


OTHERS = st.one_of(
    st.builds(lambda fraction, role, what: Meanwhile(Moment("runs", fraction), "write", role, what),
              FRACTIONS, NAMES, st.sampled_from(WRITTEN)),
    st.builds(Meanwhile, MOMENTS, st.sampled_from(("umount", "umount_lazily", "fill", "save")),
              WITH_FILES),
    st.builds(Meanwhile, MOMENTS, st.sampled_from(("restore", "undo", "cut", "run", "freeze")),
              NAMES),
    st.builds(Meanwhile, MOMENTS, st.just("apply"), NAMES,
              st.sampled_from(APPLIED).map(lambda choice: (choice[0],))),
)  # fmt: skip
BLOWS = st.builds(Blow, MOMENTS, SIGNALS, st.just("blklab") | st.sampled_from(TARGETS))
STARTED = st.builds(Moment, st.just("begin"), FRACTIONS)
EARLY_BLOWS = st.none() | st.builds(Blow, STARTED, SIGNALS, st.sampled_from(("blklab", "group")))
