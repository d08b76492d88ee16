"""The Rust core. Refused input raises `blklab.errors.InputError` with file, line, option and so on
as attributes. Classes with `FIELDS` are plain data: `blklab.base.plain` makes JSON from them."""

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
    def words(self) -> list[tuple[str, int]]:
        """The only values, each a word with its number; empty if all from `min` to `max` are."""
    @property
    def help(self) -> str:
        """Its effect, in one line."""

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
        """Its own tunables, without the queue's."""

def schedulers() -> list[SchedulerInfo]:
    """Every scheduler, in the order of lists."""

def decision_kinds() -> list[str]:
    """The kinds of decisions that schedulers record, in the order of their numbers."""

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
        """The accepted values, in words."""
    @property
    def required(self) -> bool: ...
    @property
    def default(self) -> str | None:
        """None if it is required, or if the feature is off by default."""
    @property
    def help(self) -> str: ...

def disk_keys() -> dict[str, list[DiskKey]]:
    """The tables of keys of ``hdd``, ``ssd`` and ``constant``."""

@final
class DiskRange:
    """A rule for the ranges of estimated parameters."""

    FIELDS: ClassVar[list[str]]
    @property
    def keys(self) -> list[str]:
        """Empty for all keys with this unit that no other rule names."""
    @property
    def unit(self) -> str: ...
    @property
    def range(self) -> str:
        """As text."""
    @property
    def why(self) -> str: ...

def disk_ranges() -> list[DiskRange]:
    """The rules for estimates; the first that fits applies."""

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
        """Its treatment on a real disk."""
    @property
    def real_why(self) -> str: ...

def workload_options() -> list[JobOption]:
    """Every option, by subject."""

def give_up_rights(write: Sequence[Path]) -> bool:
    """From now on this thread, and every process that it starts, can change only files below these
    paths, and keeps only root's rights to files. False if the kernel has no Landlock: then files
    everywhere may still be changed. RuntimeError if it fails."""

class Host:
    """Costs of the modelled host and sizes of its page cache."""

    def __init__(self, changed: Mapping[str, int] = ...) -> None:
        """The defaults with changes; InputError."""
    @property
    def values(self) -> dict[str, int]:
        """Every tunable of host and page cache."""

@final
class DiskLimits:
    """The properties of a disk for its host."""

    FIELDS: ClassVar[list[str]]
    @property
    def capacity_bytes(self) -> int: ...
    @property
    def rotational(self) -> bool: ...
    @property
    def queue_depth(self) -> int:
        """Its queue depth per hardware queue."""
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
    """The longest time of a 4 KiB command in a hard disk at full depth, ms."""

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
        """Empty if the feature is off."""
    @property
    def unit(self) -> str: ...
    @property
    def help(self) -> str: ...
    @property
    def source(self) -> str:
        """The comment beside it; ``default`` or ``override``."""
    @property
    def range(self) -> tuple[float, float] | None:
        """The range of an estimate; for a list, of its first number."""

@final
class Validation:
    """The result of the checked figures for a disk's model."""

    FIELDS: ClassVar[list[str]]
    @property
    def validated(self) -> bool: ...
    @property
    def independent(self) -> int:
        """Independent figures."""
    @property
    def met(self) -> int:
        """The independent figures that the model meets, by its file."""
    @property
    def needed(self) -> int: ...
    @property
    def text(self) -> str:
        """The result as text."""

@final
class PublishedFigure:
    """A published figure of a disk."""

    FIELDS: ClassVar[list[str]]
    @property
    def figure(self) -> str:
        """Its name, with the unit last."""
    @property
    def role(self) -> Literal["calibrated", "checked"]:
        """Whether parameters were chosen from the figure."""
    @property
    def value(self) -> float: ...
    @property
    def tolerance_percent(self) -> float: ...
    @property
    def not_met(self) -> str | None:
        """Why the model does not reach it, as the disk's file says."""
    @property
    def source(self) -> str: ...

@final
class Check:
    """A figure of a disk's model beside the published one."""

    FIELDS: ClassVar[list[str]]
    @property
    def figure(self) -> str: ...
    @property
    def role(self) -> Literal["calibrated", "checked"]:
        """Whether parameters were chosen from the figure."""
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
        """The reason if it is not met, from the disk's file."""
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
        """None for flash, which has no known bound."""
    @property
    def validation(self) -> Validation: ...
    @property
    def published(self) -> list[PublishedFigure]: ...
    @property
    def parameters(self) -> list[Parameter]: ...
    def draw(self, seed: int) -> tuple[str, list[tuple[str, float]], str | None]:
        """A disk drawn from the ranges of the file's estimates: its file and the drawn values; for
        a list, its first number. If no attempt meets the calibrated figures that the file meets,
        these are the file's own, with the name of the figure that most attempts missed."""
    def validate(self) -> list[Check]:
        """Measures the model's figures beside the published ones."""
    def replay(self, trace: Sequence[tuple[int, int, int, bool]], seed: int) -> list[int]:
        """Nanoseconds of each request (gap_ns, sector, sectors, is a write), submitted one at a
        time, each gap_ns after the end of the previous one; InputError if one is beyond the disk's
        end."""

@final
class IdleOption:
    """An option of a job file without effect."""

    FIELDS: ClassVar[list[str]]
    @property
    def path(self) -> str:
        """The file that contains it, which may be an included one."""
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
        """Its own options over those of ``[global]``, in order."""

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
    def placed(
        self,
        places: Sequence[Sequence[tuple[int, int]]],
        journal: tuple[str, Sequence[tuple[int, int]], int, int] | None = None,
    ) -> Job:
        """The same with its files where a file system has them: of each regular file, in their
        order, first sector and sectors of each extent. InputError by `simulate` if they do not
        fit."""
    def file_sizes(self, disk: Disk, seed: int) -> list[int]:
        """Sizes of its regular files on that disk, in bytes. InputError."""
    @property
    def path(self) -> str: ...
    @property
    def defaults(self) -> list[tuple[str, str]]:
        """The options of ``[global]``, in order."""
    @property
    def jobs(self) -> list[JobSection]: ...
    @property
    def ignored(self) -> list[IdleOption]:
        """Omitted options."""
    @property
    def without_effect(self) -> list[IdleOption]:
        """Options without effect in a simulation."""

class Plugin:
    """A scheduler from a file of WebAssembly."""

    def __init__(self, content: bytes, digest: str, path: str) -> None:
        """From the file's content, for which `digest` stands; `path` is for messages.
        InputError."""
    @property
    def info(self) -> SchedulerInfo: ...

class Scheduler:
    """A scheduler with its tunables."""

    def __init__(
        self,
        name: str,
        settings: list[tuple[str, str]] = ...,
        real: bool = False,
        plugin: Plugin | None = None,
    ) -> None:
        """A scheduler of the simulator with these tunables, or with `real` one of any kernel, whose
        other tunables are not checked, or this plug-in. InputError."""
    @property
    def name(self) -> str: ...
    @property
    def settings(self) -> dict[str, int]:
        """Every tunable of the simulator, including the queue's."""
    @property
    def changed(self) -> dict[str, int]:
        """The tunables in the text."""
    @property
    def own(self) -> list[tuple[str, str]]:
        """Other tunables of a real kernel, in the order of the text."""

def split_scheduler(text: str) -> tuple[str, list[tuple[str, str]]]:
    """Name and tunables of the same text, with unchecked values. InputError."""

def host_file(text: str, path: str) -> list[tuple[str, int]]:
    """The values of a host file, by name, all checked; `path` is for messages. InputError."""

def host_spec(text: str) -> tuple[str | None, list[tuple[str, int]]]:
    """``guest`` or ``@FILE``, or None, and the values of ``name=number,...``, whose names and
    ranges are not checked. InputError."""

def pairs(text: str, owner: str, expected: str) -> list[tuple[str, str]]:
    """``name=value,...`` behind the name of `owner`, an error of which tells the `expected` form.
    InputError."""

def changed_job(job: Job, text: str, name: str, changes: str) -> str:
    """The `text` of a job file, of which `job` was read, with these options:
    ``option=value,...``; `name` is for messages. InputError."""

class MachineRecorder:
    """Records the I/O of some disks of this machine."""

    def __init__(
        self,
        header_page: str,
        formats: Sequence[tuple[str, str]],
        disks: Sequence[tuple[str, list[int]]],
        out: Path,
        machine: str,
        capacity_sectors: int | None,
        scheduler: str | None,
        epoch_ns: int,
        begun_unix_ns: int,
    ) -> None:
        """Writes the header to `out`, a new file. `disks` are names with the kernel's numbers of
        each disk and its partitions. InputError for unknown formats of events; OSError."""
    @staticmethod
    def tracepoints() -> list[tuple[str, bool]]:
        """The tracepoints that are read, and whether a recording needs them."""
    def drain(self, pipes: list[tuple[int, int]]) -> None:
        """Take all that is in the CPUs' buffers: CPU and open file, which does not wait.
        OSError."""
    def queueing(self) -> list[int]:
        """The threads that have queued I/O since this was called last."""
    def set_cgroup(self, thread: int, number: int, path: str) -> None:
        """The cgroup of a thread, with its path; 0 if it is not known. Of events that `advance`
        has not followed yet, too."""
    def advance(self, until_ns: int, flush: bool) -> None:
        """Every CPU has been read up to this time: write what is complete; with `flush` the file
        has it. OSError."""
    def close(self) -> None:
        """Close the file, which has what was written."""
    def lost(self) -> int:
        """The number of lost events so far."""
    def finish(self) -> int:
        """Write the rest; the number of I/Os. OSError."""

class CancelToken:
    """Cancels running simulations, and reports the progress of the latest."""

    def __init__(self) -> None: ...
    def cancel(self) -> None: ...
    @property
    def now_ns(self) -> int:
        """Virtual time reached."""
    @property
    def end_ns(self) -> int:
        """Virtual time by which the run will have ended; 0 if not known."""

class PanicException(BaseException):
    """A bug in the core, from any function."""

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
    def read_ios(self) -> int:
        """Read commands completed."""
    @property
    def read_merges(self) -> int:
        """Bios merged into waiting reads."""
    @property
    def read_sectors(self) -> int:
        """Sectors read."""
    @property
    def read_ticks_ns(self) -> int:
        """Sum over reads of the time from insertion to completion, ns."""
    @property
    def write_ios(self) -> int:
        """Write commands completed."""
    @property
    def write_merges(self) -> int:
        """Bios merged into waiting writes."""
    @property
    def write_sectors(self) -> int:
        """Sectors written."""
    @property
    def write_ticks_ns(self) -> int:
        """Sum over writes of the time from insertion to completion, ns."""
    @property
    def flush_ios(self) -> int:
        """Flush commands completed."""
    @property
    def flush_ticks_ns(self) -> int:
        """Sum over flushes of the time from issue to completion, ns."""
    @property
    def discard_ios(self) -> int:
        """Discards completed."""
    @property
    def discard_ticks_ns(self) -> int:
        """Sum over discards of the time from insertion to completion, ns."""
    @property
    def io_ticks_ns(self) -> int:
        """Time during which at least one request was waiting or in flight, ns."""
    @property
    def in_queue_ns(self) -> int:
        """Integral over time of the requests waiting or in flight, ns."""
    @property
    def joined_ns(self) -> int:
        """Time for which two requests were counted that were merged later, ns."""
    @property
    def in_flight_ns(self) -> int:
        """Integral over time of the commands in flight, ns."""
    @property
    def service_ns(self) -> int:
        """Sum over commands of the time from issue to completion, ns."""
    @property
    def disk_busy_ns(self) -> int:
        """Time for which the disk model was busy, ns."""
    @property
    def depth_max(self) -> int:
        """The maximum of requests waiting or in flight."""

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
    """A finished run: `crates/blklab-core/src/result.rs` explains the fields."""

    @property
    def summary(self) -> RunSummary:
        """The scalars."""

    def columns(self) -> list[str]:
        """Names for `column`: ``series.read_bytes``, ``overview.sector``,
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
    window: tuple[int, int, int] | None = None,
    until_ns: int | None = None,
) -> Run:
    """Run to the end without the GIL, or to `until_ns`. `window`: begin and end in ns, and the
    maximum number of requests, for the columns ``detail`` and ``decisions``. InputError for bad
    input, KeyboardInterrupt when cancelled, RuntimeError when the run cannot continue."""

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
        """Its first byte, if all files are contiguous on one device."""

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
        """None if not known."""
    @property
    def writes(self) -> bool:
        """Or trims."""
    @property
    def direct(self) -> bool:
        """All of its I/O bypasses the page cache."""
    @property
    def cgroups(self) -> list[FioCgroup]:
        """Without the root, each after its parent."""

    def write(self, places: Sequence[tuple[str, int | None]], cgroup: str | None) -> str:
        """The job file, with the path of each file in the order of `describe` and, for a part of a
        device, its first byte. All cgroups are inside `cgroup`, if there is one. InputError if
        fio's job files cannot express it."""

    def read(self, text: str, duration_ns: int) -> Run:
        """The processes' results, from fio's ``json+``, without those of the disk. InputError with
        one line if it is not valid, or if one of fio's processes failed."""

class BlockEvents:
    """Traces the requests of a disk, from the pages of tracefs; `devices` are the numbers of the
    disk and its partitions. Times count from `epoch_ns` of ``CLOCK_MONOTONIC``. With `job`,
    requests are attributed to its processes, on a device that begins at `first_sector` of the disk.
    InputError with one line if a text of tracefs lacks a needed field."""

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
        """The needed events of ``events/block``, with their `formats`."""

    def take(self, page: bytes) -> None:
        """A page of ``trace_pipe_raw`` of any CPU."""

    def advance(self, until_ns: int) -> None:
        """All events up to this time, of every CPU, have been passed in."""

    def finish(self) -> tuple[Run, int]:
        """``overview`` and ``detail``; ``series`` of the queue and ``disk``'s ``in_flight_ns``,
        ``service_ns`` and ``depth_max``, if no events were missing; and the number of gaps."""

@final
class TraceFormat:
    """A format of traces."""

    FIELDS: ClassVar[list[str]]
    @property
    def name(self) -> str: ...
    @property
    def about(self) -> str:
        """What it is, in one line."""

@final
class RecordingColumn:
    """A column of recordings."""

    FIELDS: ClassVar[list[str]]
    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str:
        """``int64``, ``uint32``, ``uint16`` or ``text``."""
    @property
    def nullable(self) -> bool: ...
    @property
    def help(self) -> str: ...

@final
class TraceFindingKind:
    """A kind of findings."""

    FIELDS: ClassVar[list[str]]
    @property
    def name(self) -> str: ...
    @property
    def weight(self) -> Literal["note", "warning", "unusable"]: ...
    @property
    def text(self) -> str: ...

@final
class TraceFinding:
    """What is odd about a trace."""

    FIELDS: ClassVar[list[str]]
    @property
    def kind(self) -> str: ...
    @property
    def weight(self) -> Literal["note", "warning", "unusable"]: ...
    @property
    def count(self) -> int:
        """How often it was found."""
    @property
    def first(self) -> int:
        """The first line or record with it, from 1; 0 if it is the whole trace."""
    @property
    def found(self) -> str:
        """What was found there; may be empty."""
    @property
    def text(self) -> str:
        """What it means, and what is done about it."""

@final
class TraceFigures:
    """Quantiles of some values, with three digits."""

    FIELDS: ClassVar[list[str]]
    @property
    def count(self) -> int: ...
    @property
    def min(self) -> int: ...
    @property
    def mean(self) -> float: ...
    @property
    def p50(self) -> int: ...
    @property
    def p90(self) -> int: ...
    @property
    def p99(self) -> int: ...
    @property
    def p999(self) -> int: ...
    @property
    def max(self) -> int: ...

@final
class TraceOperation:
    """The I/Os of one operation."""

    FIELDS: ClassVar[list[str]]
    @property
    def name(self) -> str: ...
    @property
    def count(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def sync(self) -> int:
        """I/Os with this flag, as the next four."""
    @property
    def read_ahead(self) -> int: ...
    @property
    def meta(self) -> int: ...
    @property
    def fua(self) -> int: ...
    @property
    def preflush(self) -> int: ...
    @property
    def sizes_bytes(self) -> TraceFigures: ...
    @property
    def common_sizes(self) -> list[tuple[int, int]]:
        """Bytes and how many, the most frequent first; 1,000 at most."""
    @property
    def q2c_ns(self) -> TraceFigures:
        """From queue to completion."""

@final
class TraceProcess:
    """The I/Os of one process."""

    FIELDS: ClassVar[list[str]]
    @property
    def pid(self) -> int:
        """0 if it is not known."""
    @property
    def name(self) -> str: ...
    @property
    def count(self) -> int: ...
    @property
    def read_bytes(self) -> int: ...
    @property
    def written_bytes(self) -> int: ...
    @property
    def sequential(self) -> int:
        """I/Os that begin where its one before ended."""
    @property
    def mean_q2c_ns(self) -> float | None:
        """None if no I/O completes."""
    @property
    def working_set_bytes(self) -> int:
        """Areas of 1 MiB with its I/O, in bytes."""
    @property
    def thinks(self) -> int:
        """Its pauses: from the end of all of its I/O to its next arrival."""
    @property
    def think_mean_ns(self) -> float | None:
        """None without a pause."""
    @property
    def think_median_ns(self) -> float | None:
        """True to a tenth; None without a pause."""

@final
class TraceCgroup:
    """The I/Os of one cgroup."""

    FIELDS: ClassVar[list[str]]
    @property
    def number(self) -> int:
        """The kernel's number; 0 for I/Os whose cgroup is not known."""
    @property
    def path(self) -> str:
        """From the root of the hierarchy, which is ``/``; empty if it is not known."""
    @property
    def count(self) -> int: ...
    @property
    def read_bytes(self) -> int: ...
    @property
    def written_bytes(self) -> int: ...
    @property
    def sequential(self) -> int:
        """I/Os that begin where its one before ended."""
    @property
    def mean_q2c_ns(self) -> float | None:
        """None if no I/O completes."""
    @property
    def working_set_bytes(self) -> int | None:
        """Areas of 1 MiB with its I/O, in bytes; None if the cgroup is not known."""
    @property
    def thinks(self) -> int:
        """Its pauses: from the end of all of its I/O to its next arrival."""
    @property
    def think_mean_ns(self) -> float | None:
        """None without a pause."""
    @property
    def think_median_ns(self) -> float | None:
        """True to a tenth; None without a pause."""

@final
class TraceReading:
    """A trace that was read: its header, what is wrong with it, its figures."""

    FIELDS: ClassVar[list[str]]
    @property
    def format(self) -> str:
        """The name of the format."""
    @property
    def source(self) -> str:
        """The format with its version; of a recording, what it was made from."""
    @property
    def compression(self) -> str | None: ...
    @property
    def files(self) -> int: ...
    @property
    def level(self) -> Literal["file", "bio", "request"]:
        """Where the I/Os were recorded."""
    @property
    def resolution_ns(self) -> int:
        """The step of the recorded clock."""
    @property
    def spread(self) -> bool:
        """I/Os of one step were spread over it."""
    @property
    def begun_unix_ns(self) -> int | None:
        """The wall clock at time 0."""
    @property
    def machine(self) -> str | None: ...
    @property
    def scheduler(self) -> str | None:
        """Under which it was recorded, with the settings that are not the defaults, if known."""
    @property
    def capacity_sectors(self) -> int | None:
        """The disk's size."""
    @property
    def findings(self) -> list[TraceFinding]:
        """The heaviest first."""
    @property
    def count(self) -> int:
        """How many I/Os."""
    @property
    def last_ns(self) -> int:
        """The last arrival, from the first."""
    @property
    def end_ns(self) -> int:
        """The last completion."""
    @property
    def end_sector(self) -> int:
        """The sector after the highest."""
    @property
    def lost(self) -> int:
        """Events that the tracer lost."""
    @property
    def sequential(self) -> int:
        """I/Os that begin where the one before on their device ended."""
    @property
    def devices(self) -> list[tuple[str, int]]:
        """Names and I/Os; 1,000 at most."""
    @property
    def operations(self) -> list[TraceOperation]: ...
    @property
    def processes(self) -> list[TraceProcess]:
        """The one with the most I/Os first; 1,000 at most."""
    @property
    def process_count(self) -> int:
        """All of them."""
    @property
    def cgroups(self) -> list[TraceCgroup]:
        """The 1,000 with the most I/Os; empty if none is known."""
    @property
    def cgroup_count(self) -> int: ...
    @property
    def areas_incomplete(self) -> bool:
        """There were too many areas to count all of each process and cgroup."""
    @property
    def seeks_sectors(self) -> TraceFigures:
        """Distances from the end of an I/O to the next of its device; without sequential ones."""
    @property
    def q2q_ns(self) -> TraceFigures:
        """Between arrivals."""
    @property
    def q2i_ns(self) -> TraceFigures:
        """From queue to the scheduler."""
    @property
    def i2d_ns(self) -> TraceFigures:
        """From the scheduler, or queue, to the disk."""
    @property
    def d2c_ns(self) -> TraceFigures:
        """From issue to completion."""
    @property
    def q2c_ns(self) -> TraceFigures:
        """From queue to completion."""
    @property
    def think_ns(self) -> TraceFigures:
        """From the end of all I/O of a process to its next arrival."""
    @property
    def working_set_bytes(self) -> int:
        """The size of all areas of 1 MiB with I/O, below 16 TiB."""
    @property
    def depth(self) -> TraceFigures:
        """I/Os in flight or waiting at an arrival, with it."""

def trace_formats() -> list[TraceFormat]:
    """The formats of traces, in the order of lists."""

@final
class TraceOverTime:
    """A trace over time: counts and sums of each step, for reads, writes and others."""

    FIELDS: ClassVar[list[str]]
    @property
    def step_ns(self) -> int:
        """The length of a step; the first one begins with the trace."""
    @property
    def ios(self) -> list[list[int]]:
        """I/Os that were queued in each step."""
    @property
    def bytes(self) -> list[list[int]]:
        """Their bytes."""
    @property
    def under_way_ns(self) -> list[int]:
        """The time for which I/Os were under way, added up over all of them."""
    @property
    def place_sectors(self) -> int:
        """The size of a row of `places`."""
    @property
    def places(self) -> list[list[list[int]]]:
        """I/Os by step and by place, from the disk's start."""
    @property
    def latency_min_ns(self) -> int:
        """Where the rows of `latencies` begin: four for each doubling."""
    @property
    def latencies(self) -> list[list[list[int]]]:
        """Completed I/Os by step and by time from queue to completion."""

@final
class LikeProcess:
    """What a job file can say of a recorded process; lists of three are of reads, writes,
    discards."""

    FIELDS: ClassVar[list[str]]
    @property
    def pid(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def counts(self) -> list[int]: ...
    @property
    def sizes(self) -> list[list[tuple[int, int]]]:
        """Bytes, and how many I/Os."""
    @property
    def flushes(self) -> int: ...
    @property
    def sequential(self) -> int:
        """Those that begin where the one before ended."""
    @property
    def span_sectors(self) -> tuple[int, int]:
        """The first, and the one after the last."""
    @property
    def first_ns(self) -> int:
        """Its first arrival."""
    @property
    def depth(self) -> int:
        """The most under way at once."""
    @property
    def pauses(self) -> int:
        """Arrivals before which nothing was under way."""
    @property
    def paused_ns(self) -> int:
        """How long in all."""

@final
class TraceLikeness:
    """What a job file can say of a trace."""

    FIELDS: ClassVar[list[str]]
    @property
    def processes(self) -> list[LikeProcess]:
        """The one with the most I/Os first."""
    @property
    def left_out(self) -> int:
        """I/Os that no job file can say."""

def trace_likeness(
    path: Path,
    *,
    format: str | None = None,  # noqa: A002
    device: str | None = None,
    keep_steps: bool = False,
) -> TraceLikeness:
    """Read a trace in one pass, for a job file that resembles it. InputError."""

@final
class ServedOwner:
    """A process or a cgroup."""

    FIELDS: ClassVar[list[str]]
    @property
    def number(self) -> int: ...
    @property
    def name(self) -> str:
        """The process's name, or the cgroup's path; empty if it is not known."""

@final
class ServedCounts:
    """What came and was served of one process or cgroup in one step of time. Lists of two are of
    reads and others."""

    FIELDS: ClassVar[list[str]]
    @property
    def step(self) -> int: ...
    @property
    def row(self) -> int:
        """Its row in `TraceServed.processes` or `cgroups`."""
    @property
    def came(self) -> int:
        """I/Os that were queued."""
    @property
    def ios(self) -> list[int]:
        """I/Os that were issued; where no issue is recorded, those that completed."""
    @property
    def bytes(self) -> list[int]: ...
    @property
    def waited(self) -> int:
        """Those of `ios` whose wait is known."""
    @property
    def wait_ns(self) -> int:
        """The sum of their waits, from queue to issue."""
    @property
    def wait_max_ns(self) -> int: ...
    @property
    def completed(self) -> int:
        """Those of `ios` whose time at the disk is known."""
    @property
    def disk_ns(self) -> int:
        """The sum of their times at the disk, from issue to completion."""

@final
class ServedIo:
    """An I/O of a trace."""

    FIELDS: ClassVar[list[str]]
    @property
    def number(self) -> int:
        """Its line or record, from 1."""
    @property
    def process(self) -> int:
        """A row of `TraceServed.processes`."""
    @property
    def op(self) -> str: ...
    @property
    def sector(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def queued_ns(self) -> int: ...
    @property
    def inserted_ns(self) -> int | None: ...
    @property
    def issued_ns(self) -> int | None: ...
    @property
    def completed_ns(self) -> int | None: ...

@final
class ServedGot:
    """I/Os of one process; lists of two are of reads and others."""

    FIELDS: ClassVar[list[str]]
    @property
    def process(self) -> int: ...
    @property
    def ios(self) -> list[int]: ...
    @property
    def bytes(self) -> list[int]: ...

@final
class ServedSlow:
    """A slow I/O, and what the disk did meanwhile; by process, the one with the most bytes
    first."""

    FIELDS: ClassVar[list[str]]
    @property
    def io(self) -> ServedIo:
        """It completes."""
    @property
    def cgroup(self) -> int:
        """A row of `TraceServed.cgroups`."""
    @property
    def step(self) -> int:
        """The step in which it came."""
    @property
    def issued(self) -> list[ServedGot]:
        """I/Os that were issued while it waited: from its queue time to before its issue."""
    @property
    def completed(self) -> list[ServedGot]:
        """I/Os that were completed while the disk had it: from its issue to before its completion;
        from its queue time where no issue is recorded."""
    @property
    def listed(self) -> list[ServedIo]:
        """The first 12 of `issued`, in order of their issues."""

@final
class TraceServed:
    """What was served in a part of a trace."""

    FIELDS: ClassVar[list[str]]
    @property
    def from_ns(self) -> int: ...
    @property
    def end_ns(self) -> int:
        """The last completion, or arrival, of what came."""
    @property
    def step_ns(self) -> int: ...
    @property
    def processes(self) -> list[ServedOwner]: ...
    @property
    def cgroups(self) -> list[ServedOwner]: ...
    @property
    def of_processes(self) -> list[ServedCounts]:
        """By step and row."""
    @property
    def of_cgroups(self) -> list[ServedCounts]: ...
    @property
    def slow(self) -> list[ServedSlow]:
        """The slowest first; reads, synchronous writes and flushes before others."""

@final
class TraceIos:
    """I/Os of a trace, as columns."""

    FIELDS: ClassVar[list[str]]
    @property
    def processes(self) -> list[tuple[int, str]]: ...
    @property
    def devices(self) -> list[str]: ...
    @property
    def count(self) -> int:
        """All I/Os of the window, also those that are left out."""
    @property
    def number(self) -> list[int]: ...
    @property
    def process(self) -> list[int]:
        """A row of `processes`."""
    @property
    def device(self) -> list[int]: ...
    @property
    def op(self) -> list[str]: ...
    @property
    def sector(self) -> list[int]: ...
    @property
    def sectors(self) -> list[int]: ...
    @property
    def queued_ns(self) -> list[int]: ...
    @property
    def inserted_ns(self) -> list[int | None]: ...
    @property
    def issued_ns(self) -> list[int | None]: ...
    @property
    def completed_ns(self) -> list[int]: ...

def trace_served(
    path: Path,
    *,
    from_ns: int,
    until_ns: int,
    steps: int = 1,
    slowest: int = 0,
    distinct: bool = False,
    listed: bool = False,
    processes: Sequence[tuple[int, str]] | None = None,
    cgroups: Sequence[tuple[int, str]] | None = None,
    format: str | None = None,  # noqa: A002
    device: str | None = None,
    keep_steps: bool = False,
) -> TraceServed:
    """What came and was served from `from_ns` to before `until_ns`, in at most `steps` steps; the
    `slowest` slowest I/Os of each step, of each process one if `distinct`, with what the disk did
    meanwhile, and with `listed` one by one. Reads, synchronous writes and flushes come before
    others, for which no process waits. Only `processes` and `cgroups` have a row of their own.
    InputError."""

def trace_ios(
    path: Path,
    *,
    from_ns: int,
    until_ns: int,
    most: int,
    format: str | None = None,  # noqa: A002
    device: str | None = None,
    keep_steps: bool = False,
) -> TraceIos:
    """The first `most` I/Os that are queued in the window and complete. InputError."""

def trace_over_time(
    path: Path,
    *,
    format: str | None = None,  # noqa: A002
    device: str | None = None,
    keep_steps: bool = False,
) -> TraceOverTime:
    """Read a trace in one pass, for pictures over time. InputError."""

def trace_format_of(path: Path) -> str | None:
    """The name of a file's format; None if it is no trace. InputError if it cannot be read."""

def trace_files(path: Path) -> list[Path]:
    """The files of a trace: blktrace has one for each CPU."""

def trace_finding_kinds() -> list[TraceFindingKind]:
    """The kinds of findings, in the order of lists."""

def recording_columns() -> list[RecordingColumn]:
    """The columns of recordings, in their order."""

def read_trace(
    path: Path,
    *,
    format: str | None = None,  # noqa: A002
    device: str | None = None,
    keep_steps: bool = False,
    capacity_sectors: int | None = None,
    plugs: bool = False,
    cgroups: Sequence[tuple[int, str]] = (),
    out: Path | None = None,
) -> TraceReading:
    """Read a trace in one pass; write it to the new file `out` as a recording. With `plugs`,
    records of blktrace have those of all plugs; `cgroups` are the paths of their numbers of
    cgroups. InputError; OSError if `out` cannot be written."""

@final
class TraceEdit:
    """What is kept of a trace, and what is changed; InputError for an unknown operation."""

    def __init__(
        self,
        *,
        from_ns: int = 0,
        until_ns: int | None = None,
        processes: Sequence[str] = (),
        cgroups: Sequence[str] = (),
        operations: Sequence[str] = (),
        sectors: tuple[int, int] | None = None,
        lengths: tuple[int, int] | None = None,
        stretch: float = 1.0,
        scale: tuple[int, int] | None = None,
        shift: int = 0,
        secret: tuple[int, int] | None = None,
    ) -> None:
        """A window of queue times; names or numbers of processes; numbers of cgroups, or paths with
        all below them; `sectors` and `lengths` from and
        to; times multiplied by `stretch`; places scaled from a size to another, then shifted, all
        in sectors; for `secret`, a seed and the end of the disk, names and places are hidden."""

def edit_traces(
    traces: Sequence[tuple[Path, TraceEdit]],
    out: Path,
    *,
    format: str | None = None,  # noqa: A002
    device: str | None = None,
) -> int:
    """Write all I/Os of all traces to the new file `out`; return their number. InputError; OSError
    if `out` cannot be written."""

@final
class ReplayNotes:
    """What a replay does not have as it was recorded."""

    FIELDS: ClassVar[list[str]]
    @property
    def processes(self) -> int: ...
    @property
    def left_out(self) -> int:
        """I/Os that are not replayed."""
    @property
    def moved(self) -> int:
        """I/Os with another address."""
    @property
    def joined(self) -> int:
        """I/Os of processes beyond the largest number, which share one."""
    @property
    def enlarged(self) -> int:
        """I/Os that are longer than recorded, for a disk with larger blocks."""
    @property
    def cgroups(self) -> int:
        """Cgroups beside the root."""
    @property
    def unnamed(self) -> int:
        """Those of which the recording has a number and no path."""
    @property
    def movers(self) -> int:
        """Processes with I/Os in several of them."""
    @property
    def writes(self) -> bool:
        """Some write or discard."""

@final
class BeyondProcess:
    """What real processes cannot submit as it was recorded."""

    FIELDS: ClassVar[list[str]]
    @property
    def asynchronous(self) -> int:
        """Asynchronous writes."""
    @property
    def cut(self) -> int:
        """I/Os that are longer than a bio of direct I/O."""
    @property
    def discards(self) -> int:
        """Discards."""
    @property
    def marked(self) -> int:
        """I/Os with a flag that only the kernel sets."""

class Recording:
    """A part of a trace, in memory, as a load."""

    def __init__(
        self,
        path: Path,
        *,
        format: str | None = None,  # noqa: A002
        device: str | None = None,
        keep_steps: bool = False,
        from_ns: int = 0,
        until_ns: int | None = None,
    ) -> None:
        """The I/Os from `from_ns` to before `until_ns`, whose times then count from `from_ns`.
        InputError."""
    @property
    def count(self) -> int: ...
    @property
    def last_ns(self) -> int:
        """The time of the last I/O."""
    @property
    def completed(self) -> int:
        """I/Os with a recorded completion."""
    @property
    def end_sector(self) -> int:
        """The sector after the last one of any I/O."""
    @property
    def devices(self) -> list[str]:
        """Those with I/Os."""
    @property
    def scheduler(self) -> str | None:
        """Under which it was recorded, with the settings that are not the defaults, if known."""
    @property
    def level(self) -> Literal["file", "bio", "request"]:
        """Where it was recorded."""

@final
class Replay:
    """A recording, and how it is replayed."""

    def __init__(
        self,
        recording: Recording,
        way: str,
        fit: str,
        *,
        speed: int = 1_000_000,
        loops: int = 1,
        length_ns: int | None = None,
        cgroups: Sequence[tuple[str, int]] | None = (),
        label: str = "",
    ) -> None:
        """`cgroups` are the weights of some cgroups by their paths, or None for a replay with all
        processes in the root. `way` is ``open``, ``closed`` or ``inferred``, `fit` ``refuse``,
        ``wrap`` or ``scale``;
        `speed` is in millionths of the recorded one; a loop lasts `length_ns`, or until the last
        arrival or completion. The names of processes begin with `label` where there are several
        replays. InputError."""

def replay(
    replays: Sequence[Replay],
    disk: Disk,
    scheduler: Scheduler,
    host: Host,
    seed: int,
    cancel: CancelToken | None,
    window: tuple[int, int, int] | None = None,
    out: Path | None = None,
    until_ns: int | None = None,
) -> tuple[Run, ReplayNotes]:
    """Replay side by side to the end without the GIL; `window`, `until_ns` as of `simulate`; with
    `out`, a new file, the replay is recorded there. InputError, KeyboardInterrupt, RuntimeError as
    of `simulate`; OSError of writing."""

def simulate_beside(
    job: Job,
    replays: Sequence[Replay],
    disk: Disk,
    scheduler: Scheduler,
    host: Host,
    seed: int,
    cancel: CancelToken | None,
    window: tuple[int, int, int] | None = None,
    until_ns: int | None = None,
) -> tuple[Run, ReplayNotes]:
    """Run a job file as by `simulate`, with replays beside its processes, whose jobs come last.
    InputError, KeyboardInterrupt, RuntimeError as of `simulate`."""

def replay_load(replays: Sequence[Replay], disk: Disk) -> tuple[bytes, ReplayNotes, BeyondProcess]:
    """The replay on that disk for a driver of real processes, as bytes that blklab-guest reads.
    InputError as of `replay`."""

def replay_load_on(
    replays: Sequence[Replay], size_bytes: int, block_bytes: int, near_bytes: int
) -> tuple[bytes, ReplayNotes, BeyondProcess, list[tuple[int, int]]]:
    """The same on a file or a device of that size, whose blocks have `block_bytes`, as bytes that
    blklab-replay reads; and the places that the I/Os use: first byte and length, rising, with gaps
    of less than `near_bytes` filled. InputError as of `replay`."""

def record(
    job: Job,
    disk: Disk,
    scheduler: Scheduler,
    host: Host,
    seed: int,
    out: Path,
    cancel: CancelToken | None,
) -> tuple[Run, int]:
    """Run as by `simulate`, and write the I/O to `out`, a new file, as a recording: also returns
    the number of I/Os. OSError if it cannot be written."""
