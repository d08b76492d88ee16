"""The `kernel` rig: the real kernel's schedulers in front of a disk model, in virtual time.

Each run is a guest: the first process of a user-mode Linux serves the disk model, sets the
scheduler, runs the job and leaves its result in the run's directory. Work on the guest's CPU takes
no time, and the page cache is the kernel's. Of the modelled host, memory and the dirty limits are
those of the guest, and the native driver's processes do its CPU work; the rest is
`blklab.domain.specs.guest`, and every result notes this. The kernel
accepts or refuses schedulers and tunables that the simulator does not have. ``kyber@mine`` runs on
the kernel `mine`, whatever the rig's own kernel is.
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, BinaryIO

from blklab import _core, programs
from blklab.base import binaries
from blklab.domain import core, recordings, scheduler, specs
from blklab.domain.conditions import KernelData, KernelRigData
from blklab.domain.experiment import Disk, Experiment, LaidOut, RigSpec, SchedulerSpec
from blklab.domain.result import DIRECTIONS, Result
from blklab.domain.scheduler import Scheduler
from blklab.errors import InputError, RunError, nearest
from blklab.rigs import check_workload
from blklab.rigs.kernel import DRIVERS, cache, file_systems, memory, modelled_host, outcome, wall
from blklab.rigs.kernel.boot import Guest, TimeTravel, boot
from blklab.rigs.kernel.program_load import ProgramLoad
from blklab.rigs.kernel.rundir import RunDirectory
from blklab.rigs.kernel.view import HERE, View
from blklab.rigs.loaded import LoadedRecordings
from blklab.rigs.modelled import ModelledDisks
from blklab.rigs.written_run import COLUMNS, SCALARS, SCALARS_BYTES_MAX, WrittenRun

_MIB_DIRECT = 256
_MIB_BESIDE_CACHE = 80
# Beside each page of the cache: its `struct page`, and its part of a node of the tree of pages.
_BESIDE_PAGE = 1 / 64 + 1 / 441
# What a file system keeps in memory beside the pages of files.
_MIB_FILE_SYSTEM = 32
# A guest has each I/O of a load as bytes, twice in a list, with its outcome, by its sector, and at
# the end with its events: some 650 bytes for each of 51.
_OF_LOAD = 14
# Two threads and a context.
_OF_PROCESS_BYTES = 192 << 10
_OF_CGROUP_BYTES = 32 << 10
_LOAD = "replay.bin"
_TIMEOUT_S = 1800.0
_FREE = "free"
_ONCE_PERMILLE = 1000
_CPU_PERMILLE_MAX = 1_000_000
_FIO_BYTES_MAX = 64 << 20
_CGROUPS = "cgroups.txt"
_CGROUPS_BYTES_MAX = 4 << 20
_CGROUP = re.compile(r"(\d{1,19})\t(/.*)", re.ASCII)
# In per cent of `nr_requests`. bfq uses the value of mq-deadline, which is set before it.
_ASYNC_SHARE = {"bfq": 100}
_TIME_TRAVEL: TimeTravel = "inf-cpu"
_CLOCKS: Mapping[TimeTravel, str] = {
    "inf-cpu": "virtual, CPU work takes no time",
    "on": "virtual, CPU work takes this machine's time",
    "off": "this machine's",
}


@dataclass(frozen=True)
class _Work:
    """What a guest runs."""

    order: Mapping[str, Any]
    """``run`` in ``guest.json``."""
    memory_mib: int
    """The guest's memory, without what its kernel keeps free."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    """For the result."""
    view: View | None = None
    """What the guest sees besides the system; None is its first program only."""
    around: Mapping[str, Any] = field(default_factory=dict)
    """Further parts of ``guest.json``."""
    program: ProgramLoad | None = None
    """The program, if it is one."""
    files_bytes: int | None = None
    """The size of a job's files, of which the page cache can hold no more, and of what is beside
    them; None if it has no files."""
    cpus: int = 1
    """The CPUs for which the kernel has queues of requests."""
    page_cache_kib: int | None = None
    """What the page cache can hold: the guest keeps the rest of its memory from it. None leaves it
    all."""

    @property
    def guest_mib(self) -> int:
        """All of its memory."""
        return self.memory_mib + modelled_host.KEPT_FREE_MIB

    @property
    def needed_bytes(self) -> int:
        """What it may need of this machine's memory, which holds only used pages. None stays free
        for good: freed ones are used again in turn."""
        memory_bytes = self.guest_mib << 20
        if self.program is not None:
            return self.program.memory_bytes(self.memory_mib)
        if self.files_bytes is None:
            return memory_bytes
        return min(memory_bytes, self.files_bytes + (_MIB_DIRECT << 20))


@dataclass(frozen=True)
class Ran:
    """A guest that has ended."""

    result: Result
    begun_ns: int | None
    """When a program's measurement began, on the clock of the block layer's events; None for a
    job."""
    cgroups: tuple[tuple[int, str], ...] = ()
    """The cgroups of traced processes: the kernel's numbers, and paths."""


class KernelRig(ModelledDisks):
    """See :class:`blklab.rigs.Rig`.

    `kernel` is the name or key of a built kernel, by default the last one without changes; `driver`
    is one of :data:`blklab.rigs.kernel.DRIVERS`, by default the native one. With
    `late_disk` a run with a late disk is valid: for code that keeps the guest's CPU busy, on which
    the disk's server runs too.
    """

    name = "kernel"

    def __init__(
        self,
        kernel: str | None = None,
        driver: str | None = None,
        late_disk: str | None = None,
        cpu: str | None = None,
    ) -> None:
        self._cpu_permille = cpu_permille(cpu)
        if driver is not None and driver not in DRIVERS:
            raise InputError(f"--driver: no '{driver}'{nearest(driver, DRIVERS)}")
        self._driver = driver or DRIVERS[0]
        self._late_disk = late_disk is not None
        self._kernel = cache.chosen(kernel)
        self.spec = RigSpec(
            self.name, kernel=self._kernel.key, driver=driver, late_disk=self._late_disk, cpu=cpu
        )
        self._init = binaries.find("blklab-guest")
        self._recordings = LoadedRecordings()
        self._layouts = file_systems.Layouts()
        self._guests: set[Guest] = set()
        self._lock = threading.Lock()
        self._cancelled = False

    @property
    def made(self) -> cache.Kernel:
        """The kernel of schedulers that name none."""
        return self._kernel

    def describe(self) -> KernelRigData:
        """See :class:`blklab.rigs.Rig`."""
        kernel = _told(self._kernel)
        disk = "of its transport" if self._kernel.has_transports else "ublk, without a budget"
        text = f"{kernel['text']}, driver {self._driver}, disk {disk}, clock {_TIME_TRAVEL}"
        hz = self._kernel.hz
        if self._driver == "native":
            clock, host = (
                "virtual",
                f"CPUs as modelled, {hz} ticks per second, files on the bare disk",
            )
            beside = f"; real programs: 1 CPU, work {self._time_of_programs or 'in no time'}"
        else:
            times = self._time_of_programs
            programs_too = f"that of programs {times}" if times else "nor does that of programs"
            clock, beside = f"{_CLOCKS[_TIME_TRAVEL]}, {programs_too}", ""
            host = f"1 CPU, {hz} ticks per second, no file system but those of programs"
        same = f"--host {specs.guest_name(self._kernel.as_guest, self._driver)}"
        return {
            "text": f"{text}: {clock}; host: {host} ({same}){beside}",
            "kernel": kernel,
            "driver": self._driver,
            "time_travel": _TIME_TRAVEL,
        }

    @property
    def _time_of_programs(self) -> str | None:
        """How long the CPU work of programs takes, in words; None if it takes no time."""
        if not self._cpu_permille:
            return None
        times = (
            "" if self._cpu_permille == _ONCE_PERMILLE else f" times {self._cpu_permille / 1000:g}"
        )
        return f"as long as here{times}"

    def check_host(self, changed: Mapping[str, int]) -> dict[str, int]:
        """See :class:`blklab.rigs.Rig`."""
        return modelled_host.check(changed, self._driver, self._kernel)

    def check_scheduler(self, spec: SchedulerSpec) -> Scheduler:
        """See :class:`blklab.rigs.Rig` and :mod:`blklab.domain.scheduler`.

        ``kernel`` is the kernel after an ``@``, in the form of `describe`.
        """
        checked, own = scheduler.parse(spec), spec.kernel
        return checked if own is None else replace(checked, kernel=_told(cache.find(own)))

    def position(self) -> tuple[float, float | None]:
        """See :class:`blklab.rigs.Rig`. A guest's clock cannot be seen from outside."""
        return 0.0, None

    @contextlib.contextmanager
    def prepared(
        self, experiments: Sequence[Experiment], tell: Callable[[str], None]
    ) -> Iterator[None]:
        """See :class:`blklab.rigs.Rig`. RunError if no guest can be started here."""
        wall.told()
        for experiment in experiments:
            if programs.is_program(experiment.job):
                kernel = self._kernel_of(experiment)
                name = experiment.job.name
                modelled_host.check_of_program(experiment.host, kernel, name)
                load = ProgramLoad.of(experiment, self._cpu_permille)
                load.check(kernel, self._program_mib(load))
        yield

    def alone(self, experiment: Experiment) -> tuple[RigSpec, Experiment]:
        """See :class:`blklab.rigs.Rig`."""
        own = experiment.scheduler.kernel
        if own is None:
            return self.spec, experiment
        keyed = replace(experiment.scheduler, kernel=cache.find(own).key)
        return self.spec, replace(experiment, scheduler=keyed)

    def run(self, experiment: Experiment) -> Result:
        """Boot a guest, let it run the job; see :class:`blklab.rigs.Rig`."""
        return self._run(experiment, None).result

    def trace(self, experiment: Experiment, out: BinaryIO) -> Ran:
        """Run it as `run` does, and write the block layer's events to `out`, as records of
        blktrace. RunError also if the guest lost some."""
        return self._run(experiment, out)

    def _run(self, experiment: Experiment, trace: BinaryIO | None) -> Ran:
        kernel = self._kernel_of(experiment)
        check_workload(self.spec, experiment.job)
        if recordings.is_recording(experiment.job):
            work = self._replay(experiment)
        elif programs.is_program(experiment.job):
            work = self._program(experiment)
        else:
            experiment = self._in_file_system(experiment, kernel)
            work = self._job(experiment)
        order = self._order(experiment, kernel, work, is_traced=trace is not None)
        files: dict[str, bytes | None] = {
            "disk.toml": experiment.disk.file.text.encode(),
            "guest.json": json.dumps(order).encode(),
            **work.files,
        }
        with (
            memory.GUESTS.taken(work.needed_bytes, lambda: self._cancelled),
            self._boot(kernel, files, work, experiment.seed) as guest,
        ):
            self._wait(guest)
            found = outcome.read(guest.run, outcome.OUTCOME)
            result, begun_ns = Result.from_run(_left(guest.run)), None
            if work.program is not None:
                answer = work.program.answer(guest.run, found)
                result = work.program.result(answer, found, result)
                begun_ns = answer["begun_ns"]
            if not self._late_disk:
                _check_lateness(found["disk"]["lateness"], result)
            of_load = work.program.notes(found) if work.program else work.notes
            cpus = modelled_host.kernel_cpus(core.check_host(experiment.host))
            notes = (*of_load, *outcome.notes(found, experiment.disk, cpus))
            cgroups: tuple[tuple[int, str], ...] = ()
            if trace is not None:
                _copy_trace(guest.run, found, trace)
                cgroups = _cgroups(guest.run)
            raw = result.raw if work.program else _raw(guest.run)
            return Ran(replace(result, notes=notes, raw=raw), begun_ns, cgroups)

    def _kernel_of(self, experiment: Experiment) -> cache.Kernel:
        """The experiment's own kernel, or the rig's."""
        own = experiment.scheduler.kernel
        return self._kernel if own is None else cache.find(own)

    def lay_out(self, name: str, disk: Disk, sizes: Sequence[int]) -> LaidOut:
        """Files of these sizes in the file system `name`; see `blklab.rigs.kernel.file_systems`."""
        return file_systems.lay_out(self._kernel, name, disk, sizes, self._wait)

    def cancel(self) -> None:
        """See :class:`blklab.rigs.Rig`."""
        with self._lock:
            self._cancelled = True
            guests = list(self._guests)
        for guest in guests:
            guest.kill()

    def _boot(
        self, kernel: cache.Kernel, files: Mapping[str, bytes | None], work: _Work, seed: int
    ) -> Guest:
        return boot(
            kernel.image,
            [str(HERE / self._init.name)],
            files,
            work.view
            or View(programs={self._init.name: self._init}, mountpoints=(file_systems.MOUNT,)),
            memory_mib=work.guest_mib,
            time_travel=_TIME_TRAVEL,
            seed=seed,
            timeout_s=_TIMEOUT_S,
            # A text of constant length, since that of the command line affects the free memory.
            options=(f"blklab.cpus={work.cpus:02}",),
        )

    def _wait(self, guest: Guest) -> None:
        with self._lock:
            if self._cancelled:
                raise KeyboardInterrupt
            self._guests.add(guest)
        try:
            guest.wait()
        except RunError:
            if self._cancelled:
                raise KeyboardInterrupt from None
            raise
        finally:
            with self._lock:
                self._guests.discard(guest)

    def _in_file_system(self, experiment: Experiment, kernel: cache.Kernel) -> Experiment:
        """With its files laid out in a file system, if the host has its journal."""
        host = self.check_host(experiment.host)
        if experiment.files is not None or not host.get("journal") or host["partitions"]:
            return experiment
        job = core.describe_job(experiment.job, experiment.ignore_unsupported)
        with core.core_types():
            sizes = job.file_sizes(core.disk_model(experiment.disk), experiment.seed)
        if not sizes:
            return experiment
        name = core.host_text("file_system", host["file_system"])
        name += ":lazytime" if host["lazytime"] else ""
        files = self._layouts.of(kernel, name, experiment.disk, sizes, self._wait)
        return replace(experiment, files=files)

    def _job(self, experiment: Experiment) -> _Work:
        host = self.check_host(experiment.host)
        job = core.describe_job(experiment.job, experiment.ignore_unsupported)
        is_native = self._driver == "native"
        order = {
            "text": _flat(job),
            "seed": experiment.seed,
            "files": None if experiment.files is None else experiment.files.places,
            "driver": self._driver,
            "host": modelled_host.of_native(host, self._kernel_of(experiment)) if is_native else {},
            "window": experiment.window and asdict(experiment.window),
        }
        page_cache_kib = None if core.is_direct(job) else host["memory_kb"]
        memory_mib = _MIB_DIRECT if page_cache_kib is None else _mib_with_cache(page_cache_kib)
        files: dict[str, bytes] = {}
        notes: tuple[str, ...] = ()
        if is_native and experiment.files is None and not host["partitions"]:
            notes = tuple(
                f"{what} is that of partitions: on the simulator --host partitions=1"
                for what in core.on_partitions(job)
            )
            notes += (core.UNCOMMITTED,) if core.commits(job) else ()
        if experiment.files is not None:
            image = file_systems.image_of(experiment.files)
            memory_mib += (len(image) >> 20) + _MIB_FILE_SYSTEM
            files[file_systems.IMAGE["from"]] = image
        if experiment.job.beside:
            files[_LOAD], more_mib, told = self._load(experiment)
            notes += told
            memory_mib += more_mib
            order |= {"driver": "native", "beside": _LOAD}
        with core.core_types():
            sizes = job.file_sizes(core.disk_model(experiment.disk), experiment.seed)
        held_bytes = sum(sizes) + sum(map(len, files.values()))
        return _Work(
            {"job": order},
            memory_mib,
            files,
            notes,
            files_bytes=held_bytes if sizes else None,
            page_cache_kib=page_cache_kib,
            cpus=self._cpus(experiment),
        )

    def _program(self, experiment: Experiment) -> _Work:
        load = ProgramLoad.of(experiment, self._cpu_permille)
        parts = load.order()
        return _Work(
            parts.pop("run"),
            self._program_mib(load),
            view=load.seen(self._init),
            around=parts,
            program=load,
        )

    def _program_mib(self, load: ProgramLoad) -> int:
        """Memory for a page cache as large as the modelled one, for the guest, and for the disk's
        data, of which the disk takes half of the memory at most."""
        host = self.check_host(load.experiment.host)
        cache_mib = _mib_with_cache(host["memory_kb"])
        room_mib = -(-load.room_bytes >> 20)
        return max(cache_mib + room_mib, 2 * room_mib + _MIB_BESIDE_CACHE)

    def _replay(self, experiment: Experiment) -> _Work:
        load, more_mib, notes = self._load(experiment)
        order = {"file": _LOAD, "window": experiment.window and asdict(experiment.window)}
        cpus = self._cpus(experiment)
        return _Work({"replay": order}, _MIB_DIRECT + more_mib, {_LOAD: load}, notes, cpus=cpus)

    def _cpus(self, experiment: Experiment) -> int:
        """The CPUs for which the guest's kernel has queues."""
        if self._driver != "native" or not self._kernel_of(experiment).has_cpus:
            return 1
        return modelled_host.kernel_cpus(self.check_host(experiment.host))

    def _load(self, experiment: Experiment) -> tuple[bytes, int, tuple[str, ...]]:
        """The workload's recordings for the guest, the memory that they need there, and notes."""
        replays = self._recordings.replays(experiment.job)
        disk = core.disk_model(experiment.disk)
        with core.core_types():
            load, told, beyond = _core.replay_load(replays, disk)
        groups_bytes = told.cgroups * _OF_CGROUP_BYTES
        more_mib = (len(load) * _OF_LOAD + told.processes * _OF_PROCESS_BYTES + groups_bytes) >> 20
        how = (
            "the native driver replays it, without CPU work: the recorded times contain it"
            if recordings.is_recording(experiment.job)
            else "the native driver runs the job file, and replays the recordings beside it, which "
            "take no CPU work: their times contain it"
        )
        recorded = recordings.every(experiment.job)
        notes = (
            how,
            *recordings.notes(told, recorded),
            *recordings.cgroup_notes(told, recorded),
            *recordings.beyond(beyond, "the disk has none" if disk.limits.rotational else ""),
        )
        return load, more_mib, notes

    def _order(
        self,
        experiment: Experiment,
        kernel: cache.Kernel,
        work: _Work,
        *,
        is_traced: bool,
    ) -> dict[str, Any]:
        """``guest.json``."""
        chosen = scheduler.parse(experiment.scheduler)
        host = self.check_host(experiment.host)
        limits = core.disk_model(experiment.disk).limits
        requests = {} if kernel.has_transports else _requests(chosen.name, limits)
        depth = _async_depth(chosen.name, requests and requests | chosen.changed, kernel.version)
        queue = requests | depth
        files = experiment.files
        data: dict[str, Any] = {"data": "none" if work.program is None else "memory"}
        if files is not None:
            data = {"data": "memory", "image": file_systems.IMAGE}
        return {
            "disk": {
                "file": "disk.toml",
                "overrides": list(experiment.disk.overrides),
                "seed": experiment.seed,
                **data,
            },
            "file_system": None if files is None else file_systems.order_of(files),
            **chosen.for_guest(queue, kernel.version),
            "sysctl": modelled_host.sysctls(host),
            "page_cache_kib": work.page_cache_kib,
            "trace": "blktrace" if is_traced else None,
            "run": work.order,
            **work.around,
        }


def _left(run: RunDirectory) -> WrittenRun:
    """The result of the guest. RunError if there is none."""
    try:
        scalars = run.read(SCALARS, SCALARS_BYTES_MAX)
        columns = run.read(COLUMNS, run.size_mib << 20)
    except FileNotFoundError as error:
        raise RunError(f"the guest left no result: {error.strerror}") from None
    return WrittenRun(scalars, columns, "the guest")


def _copy_trace(run: RunDirectory, found: outcome.Outcome, out: BinaryIO) -> None:
    traced = found["trace"]
    if traced is None:
        raise RunError("the guest left no trace")
    if traced["lost"]:
        raise RunError(f"the guest lost {traced['lost']} of its events")
    run.copy(traced["file"], out)


def _cgroups(run: RunDirectory) -> tuple[tuple[int, str], ...]:
    """The numbers and paths of the cgroups that were traced; nothing if all processes were in the
    root."""
    try:
        text = run.read(_CGROUPS, _CGROUPS_BYTES_MAX).decode("utf-8", "replace")
    except FileNotFoundError:
        return ()
    lines = [_CGROUP.fullmatch(line) for line in text.split("\n")[:-1]]
    if any(line is None for line in lines):
        raise RunError(f"the guest's {_CGROUPS} does not have the expected format")
    return tuple((int(line[1]), line[2]) for line in lines if line is not None)


def _raw(run: RunDirectory) -> dict[str, bytes]:
    """fio's output in the guest; empty for the native driver."""
    try:
        return {"fio.json": run.read("fio.json", _FIO_BYTES_MAX)}
    except FileNotFoundError:
        return {}


def _told(kernel: cache.Kernel) -> KernelData:
    return {
        "text": kernel.text,
        "label": kernel.label,
        "key": kernel.key,
        "version": kernel.version,
        "source": kernel.source,
        "patches": kernel.patches,
        "added": kernel.added,
        "config": kernel.config,
    }


def cpu_permille(text: str | None) -> int:
    """Thousandths of the CPU time of programs that pass. InputError for another text than ``free``
    or a factor."""
    if text == _FREE:
        return 0
    try:
        permille = round(float(text or "1") * 1000)
    except (ValueError, OverflowError):
        permille = 0
    if not 1 <= permille <= _CPU_PERMILLE_MAX:
        raise InputError(
            f"--cpu: expected '{_FREE}' or a factor from 0.001 to {_CPU_PERMILLE_MAX // 1000}, "
            f"found '{text}'"
        )
    return permille


def _requests(name: str, limits: _core.DiskLimits) -> dict[str, int]:
    """`nr_requests` of a SATA disk that takes fewer commands than its adapter; ublk has no
    adapter."""
    fewer = limits.hw_queues == 1 and limits.queue_depth < scheduler.ADAPTER_TAGS
    return {"nr_requests": 2 * scheduler.ADAPTER_TAGS} if fewer and name != "none" else {}


def _async_depth(name: str, queue: Mapping[str, Any], version: str) -> dict[str, int]:
    """`async_depth` of such a disk: writing `nr_requests` keeps the proportion of two to one."""
    share = _ASYNC_SHARE.get(name)
    if not queue or share is None or not scheduler.has_queue_async_depth(version):
        return {}
    return {"async_depth": queue["nr_requests"] * share // 100}


def _flat(job: _core.Job) -> str:
    """The job file with its variables, includes and `[global]` sections expanded."""
    lines = []
    for section in job.jobs:
        lines.append(f"[{section.name}]")
        lines += [f"{name}={value}" if value else name for name, value in section.options]
    return "\n".join(lines) + "\n"


def _mib_with_cache(cache_kib: int) -> int:
    """A guest's memory for a page cache of this size, and some that the guest will hold."""
    return round(cache_kib * (1 + _BESIDE_PAGE)) // 1024 + _MIB_BESIDE_CACHE


def _check_lateness(lateness: outcome.Lateness, result: Result) -> None:
    """RunError if the disk was too late."""
    if result.figure is None:
        sides = [job.direction(name) for job in result.jobs for name in DIRECTIONS]
        ios = sum(side.ios for side in sides)
        latency_ns = sum(side.lat.mean_ns * side.ios for side in sides) / max(ios, 1)
    else:
        disk = result.disk
        latency_ns = (disk.read_ticks_ns + disk.write_ticks_ns) / max(
            disk.read_ios + disk.write_ios, 1
        )
    if why := outcome.too_late(lateness, latency_ns):
        raise RunError(f"{why}; run fewer guests at a time (--jobs 1)")
