"""The Rust core. What it refuses is a `blklab.errors.InputError` with file, line, option and so on
as attributes. Classes with `FIELDS` are plain data: `blklab.base.plain` makes JSON of them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal, final

def version() -> str: ...
def profile_guided() -> bool:
    """Whether a profile guided the compiler: such a core is faster."""

@final
class Tunable:
    """A tunable of a scheduler, of the queue, of the page cache or of the host."""

    FIELDS: ClassVar[list[str]]
    @property
    def name(self) -> str: ...
    @property
    def unit(self) -> str:
        """Empty for plain numbers."""
    @property
    def default(self) -> int: ...
    @property
    def min(self) -> int: ...
    @property
    def max(self) -> int: ...
    @property
    def help(self) -> str:
        """What it does, in one line."""

@final
class SchedulerInfo:
    """A scheduler of the simulator."""

    FIELDS: ClassVar[list[str]]
    @property
    def name(self) -> str: ...
    @property
    def summary(self) -> str: ...
    @property
    def follows(self) -> str:
        """The original."""
    @property
    def tunables(self) -> list[Tunable]:
        """Its own, without the queue's."""

def schedulers() -> list[SchedulerInfo]:
    """Every scheduler, in the order of lists."""

def decision_kinds() -> list[str]:
    """The kinds of decisions that schedulers note, in the order of their numbers."""

def environment() -> dict[str, list[Tunable]]:
    """The tunables of ``queue``, ``page cache`` and ``host``."""

def disk_files() -> dict[str, str]:
    """The texts of the shipped disks' files, by name."""

@final
class DiskKey:
    """A key of disk files."""

    FIELDS: ClassVar[list[str]]
    @property
    def key(self) -> str: ...
    @property
    def unit(self) -> str: ...
    @property
    def allowed(self) -> str:
        """The values that it takes, in words."""
    @property
    def required(self) -> bool: ...
    @property
    def default(self) -> str | None:
        """None if it is required, or if the model does without."""
    @property
    def help(self) -> str: ...

def disk_keys() -> dict[str, list[DiskKey]]:
    """The tables of keys of ``hdd``, ``ssd`` and ``constant``."""

@final
class JobOption:
    """An option of job files that blklab knows."""

    FIELDS: ClassVar[list[str]]
    @property
    def name(self) -> str: ...
    @property
    def aliases(self) -> list[str]: ...
    @property
    def takes(self) -> str:
        """Its values, in words."""
    @property
    def default(self) -> str:
        """As in a job file; empty for none."""
    @property
    def help(self) -> str: ...
    @property
    def status(
        self,
    ) -> Literal["simulated", "no effect", "real disks only", "not simulated"]: ...
    @property
    def why(self) -> str:
        """The reason, unless it is simulated."""
    @property
    def real(self) -> Literal["handed to fio", "rewritten", "left out", "refused"]:
        """What becomes of it on a real disk."""
    @property
    def real_why(self) -> str: ...

def workload_options() -> list[JobOption]:
    """Every option, by subject."""

def give_up_rights(write: Sequence[Path]) -> bool:
    """From now on this thread, and all that it starts, changes nothing but what is below these
    paths, and has of root's rights those about files only. False where the kernel has no Landlock:
    then files everywhere may still be changed. RuntimeError if it fails."""

class Host:
    """Costs of the modelled host and sizes of its page cache."""

    def __init__(self, changed: Mapping[str, int] = ...) -> None:
        """The defaults with some changed; InputError."""
    @property
    def values(self) -> dict[str, int]:
        """Every tunable of host and page cache."""

@final
class DiskLimits:
    """What a host learns of a disk."""

    FIELDS: ClassVar[list[str]]
    @property
    def capacity_bytes(self) -> int: ...
    @property
    def rotational(self) -> bool: ...
    @property
    def queue_depth(self) -> int:
        """Commands that it takes at once, per hardware queue."""
    @property
    def hw_queues(self) -> int: ...
    @property
    def max_hw_sectors(self) -> int:
        """Its largest command."""
    @property
    def logical_block_bytes(self) -> int: ...
    @property
    def physical_block_bytes(self) -> int: ...
    @property
    def volatile_write_cache(self) -> bool: ...
    @property
    def fua(self) -> bool: ...

@final
class LongestWait:
    """How long a command of 4 KiB can be in a hard disk at full depth, ms."""

    FIELDS: ClassVar[list[str]]
    @property
    def reads(self) -> int:
        """If all commands are reads."""
    @property
    def any(self) -> int:
        """With flushes and cached writes."""

@final
class Parameter:
    """A parameter of a disk."""

    FIELDS: ClassVar[list[str]]
    @property
    def key(self) -> str: ...
    @property
    def value(self) -> str:
        """Empty if the model does without."""
    @property
    def unit(self) -> str: ...
    @property
    def help(self) -> str: ...
    @property
    def source(self) -> str:
        """The comment beside it; ``default`` or ``override``."""

@final
class Check:
    """A figure of a disk's model beside the published one."""

    FIELDS: ClassVar[list[str]]
    @property
    def figure(self) -> str: ...
    @property
    def unit(self) -> str: ...
    @property
    def model(self) -> float: ...
    @property
    def published(self) -> float: ...
    @property
    def tolerance_percent(self) -> float: ...
    @property
    def met(self) -> bool: ...
    @property
    def not_met(self) -> str | None:
        """Why it is not met, as the disk's file says."""
    @property
    def source(self) -> str: ...

@final
class Disk:
    """A disk model."""

    FIELDS: ClassVar[list[str]]
    def __init__(self, text: str, path: str, overrides: Sequence[tuple[str, str]] = ()) -> None:
        """A disk file with keys changed; InputError with ``file:line: ...``."""
    @property
    def name(self) -> str:
        """The maker's."""
    @property
    def summary(self) -> str: ...
    @property
    def kind(self) -> Literal["hdd", "ssd"]: ...
    @property
    def transport(self) -> Literal["sata", "sas", "nvme"]: ...
    @property
    def limits(self) -> DiskLimits: ...
    @property
    def longest_wait_ms(self) -> LongestWait | None:
        """None for flash, of which no bound is known."""
    @property
    def parameters(self) -> list[Parameter]: ...
    def validate(self) -> list[Check]:
        """Its published figures beside the model's. Measures them."""
    def replay(self, trace: Sequence[tuple[int, int, int, bool]], seed: int) -> list[int]:
        """Nanoseconds that each (gap_ns, sector, sectors, is a write) takes, given one at a time,
        each so long after the end of the one before; InputError if the disk does not have it."""

@final
class IdleOption:
    """An option of a job file that does nothing."""

    FIELDS: ClassVar[list[str]]
    @property
    def path(self) -> str:
        """The file that has it, which may be an included one."""
    @property
    def line(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def value(self) -> str | None: ...
    @property
    def why(self) -> str: ...

@final
class JobSection:
    """A section of a job file other than ``[global]``."""

    FIELDS: ClassVar[list[str]]
    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str | None: ...
    @property
    def line(self) -> int: ...
    @property
    def clones(self) -> int:
        """``numjobs``."""
    @property
    def options(self) -> list[tuple[str, str]]:
        """Its own over those of ``[global]``, in order."""

@final
class Job:
    """A job file."""

    FIELDS: ClassVar[list[str]]
    def __init__(
        self,
        text: str,
        path: str,
        env: Mapping[str, str],
        host: Host,
        ignore_unsupported: bool = False,
        real: bool = False,
    ) -> None:
        """InputError with ``file:line: ...`` if the file is not a job file that can be simulated,
        or, if `real`, handed to real fio on a real disk."""
    @property
    def path(self) -> str: ...
    @property
    def defaults(self) -> list[tuple[str, str]]:
        """The options of ``[global]``, in order."""
    @property
    def jobs(self) -> list[JobSection]: ...
    @property
    def ignored(self) -> list[IdleOption]:
        """Options that are left out."""
    @property
    def without_effect(self) -> list[IdleOption]:
        """Options that change nothing in a simulation."""

class Scheduler:
    """A scheduler with its tunables."""

    def __init__(self, text: str, real: bool = False) -> None:
        """``name[:tunable=value,...]``: a scheduler of the simulator, or with `real` one of any
        kernel, whose other tunables are not checked. InputError."""
    @property
    def name(self) -> str: ...
    @property
    def settings(self) -> dict[str, int]:
        """Every tunable that the simulator knows, the queue's too."""
    @property
    def changed(self) -> dict[str, int]:
        """Those of the text."""
    @property
    def own(self) -> list[tuple[str, str]]:
        """Other tunables of a real kernel, in the order of the text."""

def split_scheduler(text: str) -> tuple[str, list[tuple[str, str]]]:
    """Name and tunables of the same text, no value checked. InputError."""

class CancelToken:
    """Tells running simulations to stop, and of the latest how far it is."""

    def __init__(self) -> None: ...
    def cancel(self) -> None: ...
    @property
    def now_ns(self) -> int:
        """Virtual time reached."""
    @property
    def end_ns(self) -> int:
        """Virtual time by which the run will have ended; 0 if nobody knows."""

class PanicException(BaseException):
    """A mistake in the core, whichever function was called."""

@final
class LatencySummary:
    """Exact moments of a latency, ns."""

    FIELDS: ClassVar[list[str]]
    @property
    def count(self) -> int: ...
    @property
    def min_ns(self) -> int: ...
    @property
    def max_ns(self) -> int: ...
    @property
    def mean_ns(self) -> float: ...
    @property
    def stddev_ns(self) -> float: ...

@final
class SampleSummary:
    """Moments of samples taken over time."""

    FIELDS: ClassVar[list[str]]
    @property
    def count(self) -> int: ...
    @property
    def min(self) -> float: ...
    @property
    def max(self) -> float: ...
    @property
    def mean(self) -> float: ...
    @property
    def stddev(self) -> float: ...

@final
class DiskCounters:
    """The block layer's counters, as in ``/proc/diskstats``."""

    FIELDS: ClassVar[list[str]]
    @property
    def read_ios(self) -> int: ...
    @property
    def read_merges(self) -> int: ...
    @property
    def read_sectors(self) -> int: ...
    @property
    def read_ticks_ns(self) -> int: ...
    @property
    def write_ios(self) -> int: ...
    @property
    def write_merges(self) -> int: ...
    @property
    def write_sectors(self) -> int: ...
    @property
    def write_ticks_ns(self) -> int: ...
    @property
    def flush_ios(self) -> int: ...
    @property
    def flush_ticks_ns(self) -> int: ...
    @property
    def discard_ios(self) -> int: ...
    @property
    def discard_ticks_ns(self) -> int: ...
    @property
    def io_ticks_ns(self) -> int: ...
    @property
    def in_queue_ns(self) -> int: ...
    @property
    def joined_ns(self) -> int: ...
    @property
    def in_flight_ns(self) -> int: ...
    @property
    def service_ns(self) -> int: ...
    @property
    def disk_busy_ns(self) -> int: ...
    @property
    def depth_max(self) -> int: ...

@final
class DirectionSummary:
    """One direction of one job."""

    FIELDS: ClassVar[list[str]]
    @property
    def ios(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def runtime_ns(self) -> int: ...
    @property
    def slat(self) -> LatencySummary: ...
    @property
    def clat(self) -> LatencySummary: ...
    @property
    def lat(self) -> LatencySummary: ...
    @property
    def bw(self) -> SampleSummary: ...
    @property
    def iops(self) -> SampleSummary: ...

@final
class JobSummary:
    """One fio process."""

    FIELDS: ClassVar[list[str]]
    @property
    def name(self) -> str: ...
    @property
    def group(self) -> int: ...
    @property
    def group_reporting(self) -> bool: ...
    @property
    def options(self) -> list[tuple[str, str]]: ...
    @property
    def percentiles(self) -> list[float]: ...
    @property
    def start_ns(self) -> int: ...
    @property
    def end_ns(self) -> int: ...
    @property
    def user_ns(self) -> int: ...
    @property
    def system_ns(self) -> int: ...
    @property
    def context_switches(self) -> int: ...
    @property
    def read(self) -> DirectionSummary: ...
    @property
    def write(self) -> DirectionSummary: ...
    @property
    def trim(self) -> DirectionSummary: ...
    @property
    def sync_lat(self) -> LatencySummary: ...
    @property
    def depth_levels(self) -> list[int]: ...
    @property
    def submit_levels(self) -> list[int]: ...
    @property
    def complete_levels(self) -> list[int]: ...
    @property
    def latency_levels(self) -> list[int]: ...

@final
class RunSummary:
    """The scalars of a run; `blklab.domain.summaries` has the same."""

    FIELDS: ClassVar[list[str]]
    @property
    def duration_ns(self) -> int: ...
    @property
    def jobs(self) -> list[JobSummary]: ...
    @property
    def disk(self) -> DiskCounters: ...
    @property
    def series_interval_ns(self) -> int: ...
    @property
    def overview_stride(self) -> int: ...
    @property
    def detail_left_out(self) -> int: ...
    @property
    def decisions_left_out(self) -> int | None: ...

class Run:
    """A finished run: `crates/blklab-core/src/result.rs` says what the fields mean."""

    @property
    def summary(self) -> RunSummary:
        """The scalars."""

    def columns(self) -> list[str]:
        """Names that `column` knows: ``series.read_bytes``, ``overview.sector``,
        ``jobs.0.read.clat_hist.value_ns``, ``jobs.0.sync_hist.count`` and so on. Empty
        histograms are left out."""

    def column(self, name: str) -> bytes:
        """Little-endian 64-bit integers."""

def simulate(
    job: Job,
    disk: Disk,
    scheduler: Scheduler,
    host: Host,
    seed: int,
    cancel: CancelToken | None,
    window: tuple[int, int, int] | None,
) -> Run:
    """Run to the end without the GIL. `window`: begin and end in ns, and how many requests at
    most, of what the columns ``detail`` and ``decisions`` keep. InputError for bad input,
    KeyboardInterrupt when cancelled, RuntimeError when the run cannot go on."""

@final
class FioFile:
    """A file of a job for real fio."""

    FIELDS: ClassVar[list[str]]
    @property
    def path(self) -> str: ...
    @property
    def is_device(self) -> bool: ...
    @property
    def size_bytes(self) -> int: ...
    @property
    def start_bytes(self) -> int:
        """Where it begins, if all lie in a row on one device."""

@final
class FioCgroup:
    """A cgroup of a job."""

    FIELDS: ClassVar[list[str]]
    @property
    def path(self) -> str: ...
    @property
    def weight(self) -> int: ...

class FioJob:
    """A job file for real fio, its files laid on `room_bytes`; InputError as `Job`, and
    `blklab.errors.NoRoomError` if they do not fit."""

    def __init__(
        self,
        text: str,
        path: str,
        env: Mapping[str, str],
        ignore_unsupported: bool,
        room_bytes: int,
        seed: int,
    ) -> None: ...
    @property
    def files(self) -> list[FioFile]: ...
    @property
    def processes(self) -> int: ...
    @property
    def ends_by_ns(self) -> int | None:
        """None if it is not known."""
    @property
    def writes(self) -> bool:
        """Or trims."""
    @property
    def direct(self) -> bool:
        """All of its I/O goes past the page cache."""
    @property
    def cgroups(self) -> list[FioCgroup]:
        """Without the root, each behind the one around it."""

    def write(self, places: Sequence[tuple[str, int | None]], cgroup: str | None) -> str:
        """The job file; of each file, in the order of `describe`, its path and, if it is a piece
        of a device, its first byte. All cgroups are inside `cgroup`, if there is one. InputError if
        that cannot be said to fio."""

    def read(self, text: str, duration_ns: int) -> Run:
        """The processes' results, from fio's ``json+``; nothing of the disk. InputError with one
        line if it is none, or if one of fio's processes failed."""

class BlockEvents:
    """Follows the requests of the disk whose numbers (and those of its partitions) are
    `devices`, by the pages of tracefs. Times count from `epoch_ns` of ``CLOCK_MONOTONIC``. With
    `job` it is known whose a request is, on a device that begins at `first_sector` of the disk.
    InputError with one line if a text of tracefs does not say what is needed."""

    def __init__(
        self,
        header_page: str,
        formats: Sequence[tuple[str, str]],
        devices: Sequence[int],
        epoch_ns: int,
        job: FioJob | None = None,
        first_sector: int = 0,
    ) -> None: ...
    @staticmethod
    def tracepoints() -> list[str]:
        """Those of ``events/block`` whose `formats` are needed, and whose events."""

    def take(self, page: bytes) -> None:
        """A page of ``trace_pipe_raw`` of any CPU."""

    def advance(self, until_ns: int) -> None:
        """All events up to this time have been taken, of every CPU."""

    def finish(self) -> tuple[Run, int]:
        """``overview`` and ``detail``; ``series`` of the queue and ``disk``'s ``in_flight_ns``,
        ``service_ns`` and ``depth_max``, if no events were missing; how often some were."""
