"""The Rust core. All JSON strings are UTF-8 documents; errors are one line of text."""

from collections.abc import Mapping, Sequence
from pathlib import Path

def version() -> str: ...
def profile_guided() -> bool:
    """Whether a profile guided the compiler: such a core is faster."""

def schedulers() -> str:
    """[{"name", "summary", "follows", "tunables": [{"name", "unit", "default", "min", "max",
    "help"}]}]"""

def decision_kinds() -> list[str]:
    """The kinds of decisions that schedulers note, in the order of their numbers."""

def environment() -> str:
    """{"queue": [...], "page cache": [...], "host": [...]}: tables as those of schedulers."""

def disk_files() -> dict[str, str]:
    """The texts of the shipped disks' files, by name."""

def disk_keys() -> str:
    """The table of keys of each kind of disk."""

def disk_ranges() -> str:
    """[{"keys", "unit", "range", "why"}]: how far off an estimate may be; the first that fits."""

def workload_options() -> str:
    """[{"name", "aliases", "type", "default", "help", "status", "why"}]"""

def give_up_rights(write: Sequence[Path]) -> bool:
    """From now on this thread, and all that it starts, changes nothing but what is below these
    paths, and has of root's rights those about files only. False where the kernel has no Landlock:
    then files everywhere may still be changed. RuntimeError if it fails."""

class Host:
    """Costs of the modelled host and sizes of its page cache."""

    def __init__(self, changed: Mapping[str, int] = ...) -> None:
        """The defaults with some changed; ValueError."""
    @property
    def values(self) -> dict[str, int]:
        """Every tunable of host and page cache."""

class Disk:
    """A disk model."""

    def __init__(self, text: str, path: str, overrides: Sequence[tuple[str, str]] = ()) -> None:
        """A disk file with keys changed; ValueError with ``file:line: ...``."""
    def describe(self) -> str:
        """{"name", "summary", "kind", "transport", "limits": {...}, "longest_wait_ms": {"reads",
        "any"} of 4 KiB at full depth or None, "validation": {"validated", "independent", "met",
        "needed", "text"}, "published": [{"figure", "role", "value", "tolerance_percent",
        "not_met", "source"}], "parameters": [{"key", "value", "unit", "help", "source",
        "range"}]}"""
    def draw(self, seed: int) -> tuple[str, list[tuple[str, float]]]:
        """A disk drawn from the ranges of the file's estimates: its file, and what was drawn, of
        a list the first number."""
    def validate(self) -> str:
        """[{"figure", "role", "unit", "model", "published", "tolerance_percent", "met", "not_met",
        "source"}]; ``role`` is calibrated or checked"""
    def replay(self, trace: Sequence[tuple[int, int, int, bool]], seed: int) -> list[int]:
        """Nanoseconds that each (gap_ns, sector, sectors, is a write) takes, given one at a time,
        each so long after the end of the one before; ValueError if the disk does not have it."""

class Job:
    """A job file."""

    def __init__(
        self,
        text: str,
        path: str,
        env: Mapping[str, str],
        host: Host,
        ignore_unsupported: bool = False,
        real: bool = False,
    ) -> None:
        """ValueError with ``file:line: ...`` if the file is not a job file that can be simulated,
        or, if `real`, handed to real fio on a real disk."""
    def describe(self) -> str:
        """{"path", "global": [[name, value]], "jobs": [{"name", "description", "line", "clones",
        "options"}], "ignored": [{"path", "line", "name", "value", "why"}], "without_effect":
        [...]}"""

class Scheduler:
    """A scheduler with its tunables."""

    def __init__(self, text: str, real: bool = False) -> None:
        """``name[:tunable=value,...]``: a scheduler of the simulator, or with `real` one of any
        kernel, whose other tunables are not checked. ValueError."""
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
    """Name and tunables of the same text, no value checked. ValueError."""

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

class Run:
    """A finished run: `crates/blklab-core/src/result.rs` says what the fields mean."""

    @property
    def summary(self) -> str:
        """The scalars, as JSON."""

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
    most, of what the columns ``detail`` and ``decisions`` keep. ValueError for bad input,
    KeyboardInterrupt when cancelled, RuntimeError when the run cannot go on."""

class FioJob:
    """A job file for real fio, its files laid on `room_bytes`; ValueError as `parse_job`."""

    def __init__(
        self,
        text: str,
        path: str,
        env: Mapping[str, str],
        ignore_unsupported: bool,
        room_bytes: int,
        seed: int,
    ) -> None: ...
    def describe(self) -> str:
        """{"files": [{"path", "is_device", "size_bytes", "start_bytes"}], "processes",
        "ends_by_ns" (null if it is not known), "writes" (or trims), "direct", "cgroups":
        [{"path", "weight"}] without the root}"""

    def write(self, places: Sequence[tuple[str, int | None]], cgroup: str | None) -> str:
        """The job file; of each file, in the order of `describe`, its path and, if it is a piece
        of a device, its first byte. All cgroups are inside `cgroup`, if there is one. ValueError if
        that cannot be said to fio."""

    def read(self, text: str, duration_ns: int) -> Run:
        """The processes' results, from fio's ``json+``; nothing of the disk. ValueError with one
        line if it is none, or if one of fio's processes failed."""

class BlockEvents:
    """Follows the requests of the disk whose numbers (and those of its partitions) are
    `devices`, by the pages of tracefs. Times count from `epoch_ns` of ``CLOCK_MONOTONIC``. With
    `job` it is known whose a request is, on a device that begins at `first_sector` of the disk.
    ValueError with one line if a text of tracefs does not say what is needed."""

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
