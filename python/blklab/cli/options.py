"""The options that several commands have: the disk, where to run, and the store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import blklab
from blklab.api.names import rig_summaries
from blklab.base.text import shown
from blklab.base.units import span_ns
from blklab.cli import complete
from blklab.domain.defaults import LOCAL
from blklab.domain.experiment import RigSpec
from blklab.errors import InputError

DISK_HELP = "Disk model: name or file.toml[:key=value,...]."
TARGET_HELP = f"{DISK_HELP} With --rig live: a directory (test files are made there) or a device."

DiskName = Annotated[str, typer.Option("--disk", help=DISK_HELP, autocompletion=complete.disk)]
PluginFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--plugin",
        metavar="FILE.wasm",
        help="With --rig sim: a scheduler from a file of WebAssembly, which --scheduler then "
        "names; repeatable.",
    ),
]
TargetName = Annotated[str, typer.Option("--disk", help=TARGET_HELP, autocompletion=complete.disk)]
TraceFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="The trace, compressed or not; - for standard input. Of blktrace's files, any one.",
    ),
]
FormatName = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="The format; see: blklab trace formats. [default: detected]",
        autocompletion=complete.trace_format,
    ),
]
DeviceName = Annotated[
    str | None, typer.Option("--device", help="Only I/Os of this device, such as 8:0.")
]
ShareOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--share",
        metavar="DIR",
        help="A directory or file that the guest can read; repeatable.",
    ),
]
DataPlace = Annotated[
    str,
    typer.Option(
        "--data",
        metavar="memory|none|FILE",
        help="Where the disk's data are: in memory, in a sparse file that stays (a new one, "
        "or one that blklab made), or nowhere (reads give zeros).",
    ),
]
PlatterSeed = Annotated[
    int,
    typer.Option("--seed", min=0, max=2**63 - 1, help="Seed of the platter's position."),
]
_RIGS = ", ".join(f"{name} ({summary})" for name, summary in rig_summaries().items())
RigName = Annotated[
    str,
    typer.Option("--rig", help=f"Where to run: {_RIGS}.", autocompletion=complete.rig),
]
KernelName = Annotated[
    str | None,
    typer.Option(
        "--kernel",
        help="With --rig kernel: the kernel's name; see: blklab kernel list. "
        "[default: the newest without changes]",
        autocompletion=complete.kernel,
    ),
]
DriverName = Annotated[
    str | None,
    typer.Option(
        "--driver",
        help="With --rig kernel: native, which issues exactly the I/O of the simulator on the same "
        "modelled CPUs, or fio itself, whose CPU work takes no time. [default: native]",
        autocompletion=complete.driver,
    ),
]
CpuTime = Annotated[
    str | None,
    typer.Option(
        "--cpu",
        metavar="free|FACTOR",
        help="With --rig kernel: CPU work of programs takes the time that it uses of this "
        "machine's CPU times FACTOR, or with free no time, which repeats exactly. [default: 1]",
    ),
]
CacheState = Annotated[
    str | None,
    typer.Option(
        "--cache",
        help="With --rig live: page cache when a run begins: cold (empty) "
        "or warm (all files). [default: cold]",
        autocompletion=complete.cache,
    ),
]
WriteDevice = Annotated[
    bool,
    typer.Option(
        "--write-device",
        help="With --rig live: the job may write to the device itself, if it is not in use and "
        "holds no known data.",
    ),
]
Overwrite = Annotated[
    str | None,
    typer.Option(
        "--overwrite",
        metavar="ID",
        help="With --rig live: the job may write to the device with this full id if it is not in "
        "use. All its data is lost.",
    ),
]
TraceLatency = Annotated[
    bool,
    typer.Option(
        "--trace-latency",
        help="With --rig live: measure queue time and service time of each request "
        "from the kernel's block events.",
    ),
]
NoPrecondition = Annotated[
    bool,
    typer.Option(
        "--no-precondition",
        help="With --rig live: do not overwrite the part of a flash device that the jobs use "
        "before the first run.",
    ),
]
HostValues = Annotated[
    list[str] | None,
    typer.Option(
        "--host",
        help="name=value[,...] of the modelled host, see: blklab host; "
        "@FILE: a file of blklab host measure; guest: CPU work takes no time, as that of fio with "
        "--rig kernel.",
        autocompletion=complete.host,
    ),
]
IgnoreUnsupported = Annotated[
    bool, typer.Option(help="Leave out job options that are not simulated.")
]
StoreName = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="FILE|URL",
        help="Store of results: a file, or postgresql+psycopg://... [default: "
        "$BLKLAB_STORE, else blklab/results.db in your data directory]",
    ),
]
NoKeep = Annotated[bool, typer.Option("--no-keep", help="Do not store the results.")]
OnPlace = Annotated[
    str,
    typer.Option(
        "--on",
        metavar="URL",
        help="Where the runs are carried out: local (this process), a Dask scheduler "
        "(tcp://HOST:PORT, tls://HOST:PORT), or a cluster that Dask starts: local:WORKERS, "
        "ssh:HOST,HOST,..., slurm:JOBS.",
    ),
]
Resume = Annotated[
    bool,
    typer.Option("--resume", help="Continue an interrupted comparison: ID; default: the latest."),
]
_GO_WITH_RESUME = ("plugin", "resume", "store", "jobs", "on", "out", "objective", "as_json")


def spec(
    rig: str,
    *,
    kernel: str | None = None,
    driver: str | None = None,
    cache: str | None = None,
    write_device: bool = False,
    overwrite: str | None = None,
    trace_latency: bool = False,
    no_precondition: bool = False,
    cpu: str | None = None,
) -> RigSpec:
    """The rig that the options name."""
    return RigSpec(
        rig,
        kernel,
        driver,
        cache,
        write_device,
        overwrite,
        trace_latency,
        not no_precondition,
        cpu=cpu,
    )


def check_resume(context: typer.Context, resume: bool, argument: str) -> None:
    """InputError for an option that a resumed comparison cannot change."""
    told = [name for name in context.params if is_told(context, name)]
    if resume:
        if "no_keep" in told:
            raise InputError(
                "--no-keep: --resume continues a stored comparison, and stores the rest"
            )
        for name in told:
            if name not in (*_GO_WITH_RESUME, argument):
                raise InputError(f"--{name.replace('_', '-')}: --resume uses the original options")
    elif argument in told:
        raise InputError(
            f"'{context.params[argument]}': not expected; to resume a number, add --resume"
        )


def check_jobs(context: typer.Context, on: str) -> None:
    """InputError for a number of jobs with a cluster, whose workers decide it."""
    if on != LOCAL and is_told(context, "jobs"):
        raise InputError(f"--jobs: --on {shown(on)} runs as many as its workers have threads")


def is_told(context: typer.Context, name: str) -> bool:
    """Whether the user gave the option."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def bytes_of(option: str, text: str) -> int:
    """The bytes of ``500GB``, ``931GiB``, ``1000``."""
    units = {"": 1, "B": 1}
    for power, letter in enumerate("KMGT", 1):
        units[f"{letter}B"] = 1000**power
        units[f"{letter}IB"] = 1024**power
    number = text.rstrip("BbIiKkMmGgTt ")
    try:
        return int(float(number) * units[text[len(number) :].strip().upper()])
    except (KeyError, ValueError, OverflowError):
        raise InputError(
            f"{option}: found '{shown(text)}'; expected a size such as 500GB or 931GiB"
        ) from None


_LONG_S = {"m": 60.0, "h": 3600.0}


def seconds(option: str, text: str) -> float:
    """The seconds of ``10m``, ``2h``, or as `span_ns`. InputError."""
    number, unit = text[:-1], text[-1:]
    if unit in _LONG_S and not text.endswith("ms"):
        try:
            found = float(number) * _LONG_S[unit]
        except ValueError:
            found = -1.0
    else:
        found = (span_ns(text) or 0) / 1e9
    if not 0 < found < float("inf"):
        raise InputError(f"{option}: expected a time such as 30s, 10m or 2h, found '{shown(text)}'")
    return found


def use_plugins(files: list[Path] | None) -> None:
    """Loads the files of `--plugin`. InputError."""
    for file in files or ():
        blklab.load_plugin(file)
