"""fio's ``normal`` output, for people."""

from __future__ import annotations

import math
from collections.abc import Sequence

from blklab.domain.histogram import Histogram
from blklab.fio.json_format import FIO_VERSION, share_of_group
from blklab.fio.status import (
    DirectionStatus,
    GroupStatus,
    JobStatus,
    Moments,
    Report,
    group_status,
    times_status,
)

_KIB = 1024
_SIG_FIGS = 4
# nsec_to_msec and nsec_to_usec in stat.c: when a latency is better read in a larger unit.
_SCALES = (("msec", 1e6, 2_000_000, 99_999_999, 1e6), ("usec", 1e3, 2_000, 99_999, 1e3))
_CLASSES = ("2", "4", "10", "20", "50", "100", "250", "500", "750", "1000")
_PER_LINE = 5
_TITLES = {"read": "   READ", "write": "  WRITE", "trim": "   TRIM"}


def header(report: Report) -> str:
    """The lines that fio prints before it starts."""
    lines = []
    for job in report.jobs:
        options = dict(job.options)
        lines.append(
            f"{job.name}: (g={job.group}): rw={options.get('rw', 'read')}, "
            f"bs={_block_sizes(options.get('bs', '4k'))}, "
            f"ioengine={options.get('ioengine', 'psync')}, iodepth={job.iodepth}\n"
        )
        if job.members > 1:
            lines.append("...\n")
    plural = "process" if report.processes == 1 else "processes"
    return "".join([*lines, f"{FIO_VERSION}\n", f"Starting {report.processes} {plural}\n"])


def body(report: Report) -> str:
    """The figures."""
    groups = sorted({job.group for job in report.jobs})
    parts = ["\n"]
    for job in report.jobs:
        members = [other for other in report.jobs if other.group == job.group]
        parts += _job(job, members, report)
    for group in groups:
        parts.append(f"\nRun status group {group} (all jobs):\n")
        members = [job for job in report.jobs if job.group == group]
        for direction, title in _TITLES.items():
            status = group_status(members, direction)
            if status:
                parts.append(f"{title}: {_group(status)}\n")
    return "".join([*parts, _disk(report), *_requests(report)])


def _job(job: JobStatus, members: Sequence[JobStatus], report: Report) -> list[str]:
    if not job.total_ios:
        return []
    title = f"{job.name}: (groupid={job.group}, jobs={job.members}): err= 0: pid={job.pid}"
    parts = [f"{title}: {report.end_text}\n"]
    for name, part in job.directions.items():
        if part.io_bytes:
            parts += _direction(name, part, job, group_status(members, name))
    below_us, below_ms, longer = job.latency_percent()
    parts += _latency_classes("nsec", _CLASSES, below_us)
    parts += _latency_classes("usec", _CLASSES, below_ms)
    parts += _latency_classes("msec", (*_CLASSES, "2000", ">=2000"), longer)
    if job.sync.count:
        parts.append("  fsync/fdatasync/sync_file_range:\n")
        parts.append(_latency("sync", job.sync))
        parts.append(_percentiles("sync", job.sync_hist, job.percentiles))
    user, system = job.cpu_percent()
    parts.append(
        f"  cpu          : usr={user:3.2f}%, sys={system:3.2f}%, "
        f"ctx={job.context_switches}, majf=0, minf=0\n"
    )
    depths = ("1", "2", "4", "8", "16", "32", ">=64")
    batches = ("0", "4", "8", "16", "32", "64", ">=64")
    parts.append(f"  IO depths    : {_levels(depths, job.depth_percent())}\n")
    parts.append(f"     submit    : {_levels(batches, job.submit_percent())}\n")
    parts.append(f"     complete  : {_levels(batches, job.complete_percent())}\n")
    issued = ",".join(str(part.total_ios) for part in job.directions.values())
    parts.append(
        f"     issued rwts: total={issued},{job.sync.count} short=0,0,0,0 dropped=0,0,0,0\n"
    )
    parts.append(f"     latency   : target=0, window=0, percentile=100.00%, depth={job.iodepth}\n")
    return parts


def _direction(
    name: str, part: DirectionStatus, job: JobStatus, group: GroupStatus | None
) -> list[str]:
    zones = "; 0 zone resets" if name == "write" else ""
    parts = [
        f"  {name}: IOPS={scaled(int(part.iops_rate), _SIG_FIGS)}, "
        f"BW={_both(part.bw_bytes, 'B/s')}"
        f"({scaled(part.io_bytes, _SIG_FIGS, 'B', binary=True)}/{part.runtime_ms}msec){zones}\n"
    ]
    for label, moments in (("slat", part.slat), ("clat", part.clat), (" lat", part.lat)):
        if moments.count:
            parts.append(_latency(label, moments))
    if part.clat.count:
        parts.append(_percentiles("clat", part.hist, job.percentiles))
    if part.bw.count:
        parts.append(_bandwidth(part, group))
    if part.iops.count:
        iops = part.iops
        parts.append(
            f"   iops        : min={int(iops.min):5d}, max={int(iops.max):5d}, "
            f"avg={iops.mean:5.2f}, stdev={iops.stddev:5.2f}, samples={iops.count}\n"
        )
    return parts


def _bandwidth(part: DirectionStatus, group: GroupStatus | None) -> str:
    bw = part.bw
    unit, divisor = ("MiB", _KIB) if bw.mean > _KIB * _KIB else ("KiB", 1)
    return (
        f"   bw ({unit:>5}/s): min={int(bw.min) // divisor:5d}, max={int(bw.max) // divisor:5d}, "
        f"per={share_of_group(part, group):3.2f}%, avg={bw.mean / divisor:5.2f}, "
        f"stdev={bw.stddev / divisor:5.2f}, samples={bw.count}\n"
    )


def _latency(label: str, moments: Moments) -> str:
    unit, divisor = "nsec", 1.0
    for larger, ns, above_min, above_max, above_dev in _SCALES:
        if moments.min > above_min and moments.max > above_max and moments.stddev > above_dev:
            unit, divisor = larger, ns
            break
    low = scaled(int(moments.min // divisor), 6)
    high = scaled(int(moments.max // divisor), 6)
    return (
        f"    {label} ({unit}): min={low}, max={high}, avg={moments.mean / divisor:5.2f}, "
        f"stdev={moments.stddev / divisor:5.2f}\n"
    )


def _percentiles(label: str, hist: Histogram, percentiles: tuple[float, ...]) -> str:
    if not percentiles:
        return ""
    values = hist.percentiles(percentiles).tolist()
    unit, steps = "nsec", 0
    for power, (larger, _, above_min, above_max, _) in zip((2, 1), _SCALES, strict=True):
        if values[0] > above_min and values[-1] > above_max:
            unit, steps = larger, power
            break
    width = max(5, int(math.log10(max(values[-1] // 1000**steps, 1)) + 1))
    for _ in range(steps):
        values = [-(-value // 1000) for value in values]
    # As many digits behind the point as the list was given with (`percentile_precision`).
    digits = max(len(f"{p:.10g}".partition(".")[2]) for p in percentiles)
    cells = [
        f" {p:{digits + 3}.{digits}f}th=[{v:{width}d}]"
        for p, v in zip(percentiles, values, strict=True)
    ]
    per_line = (80 - 7) // (digits + 10 + width)
    lines = [",".join(cells[i : i + per_line]) for i in range(0, len(cells), per_line)]
    return f"    {label} percentiles ({unit}):\n     |" + ",\n     |".join(lines) + "\n"


def _latency_classes(unit: str, names: Sequence[str], shares: list[float]) -> list[str]:
    shown = [
        f"{name}={share:3.2f}%" for name, share in zip(names, shares, strict=True) if share > 0
    ]
    return [
        f"  lat ({unit})   : {', '.join(shown[i : i + _PER_LINE])}\n"
        for i in range(0, len(shown), _PER_LINE)
    ]


def _levels(names: Sequence[str], shares: list[float]) -> str:
    return ", ".join(f"{name}={share:3.1f}%" for name, share in zip(names, shares, strict=True))


def _group(status: GroupStatus) -> str:
    low, low_si = _pair(status.min_bw, "B/s")
    high, high_si = _pair(status.max_bw, "B/s")
    return (
        f"bw={_both(status.agg, 'B/s')}, {low}-{high} ({low_si}-{high_si}), "
        f"io={_both(status.io_bytes, 'B')}, "
        f"run={status.min_runtime_ms}-{status.max_runtime_ms}msec"
    )


def _disk(report: Report) -> str:
    figures = report.disk_figures()
    return (
        "\nDisk stats (read/write):\n"
        f"  {report.disk_name}: ios={figures['read_ios']}/{figures['write_ios']}, "
        f"merge={figures['read_merges']}/{figures['write_merges']}, "
        f"ticks={figures['read_ticks']}/{figures['write_ticks']}, "
        f"in_queue={figures['in_queue']}, util={report.disk_util_percent:3.2f}%\n"
    )


def _requests(report: Report) -> list[str]:
    """Not fio's: queue time and service time, in fio's layout of latencies."""
    if not report.requests:
        return []
    one_in = report.requests_one_in
    kept = "each" if one_in == 1 else f"one in {one_in}"
    parts = [f"\nRequests of the disk ({kept}):\n"]
    for name, of in report.requests.items():
        parts.append(f"  {name}: requests={len(of.disk_ns)}\n")
        for label, took in (("queue", of.queue_ns), ("disk", of.disk_ns)):
            moments, hist = times_status(took)
            parts.append(_latency(label, moments))
            parts.append(_percentiles(label, hist, report.percentiles))
    return parts


def _pair(value: int, unit: str) -> tuple[str, str]:
    return scaled(value, _SIG_FIGS, unit, binary=True), scaled(value, _SIG_FIGS, unit)


def _both(value: int, unit: str) -> str:
    binary, decimal = _pair(value, unit)
    return f"{binary} ({decimal})"


def scaled(value: int, digits: int, unit: str = "", *, binary: bool = False) -> str:
    """fio's `num2str`: at most `digits` characters of figures, then prefix and unit."""
    step = 1024 if binary else 1000
    prefixes = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei") if binary else tuple(" kMGTPE")
    power, rest = 0, None
    while len(str(value)) > digits and power < len(prefixes) - 1:
        value, rest = divmod(value, step)
        power += 1
    prefix = prefixes[power].strip() + unit
    if rest is None:
        return f"{value}{prefix}"
    room = digits - len(str(value)) - 1
    if room < 1:
        return f"{value + (rest >= step // 2)}{prefix}"
    fraction = f"{rest / step:.{room}f}"
    carried = value + 1 if fraction.startswith("1") else value
    return f"{carried}.{fraction[2:]}{prefix}"


def _block_sizes(bs: str) -> str:
    """``4k`` or ``4k,8k,16k`` as fio shows it, one range per direction."""
    given = [_bytes(part) for part in bs.split(",")]
    filled = (given + [given[-1]] * 3)[:3]
    return ", ".join(f"({d}) {n}-{n}" for d, n in zip("RWT", filled, strict=True))


def _bytes(text: str) -> str:
    """A size option as ``4096B``, ``64.0KiB``; as written if it is not one number."""
    number = text.strip().lower().removesuffix("b").removesuffix("i")
    power = "kmgt".find(number[-1:]) + 1 if number else 0
    digits = number[:-1] if power else number
    if not digits.isdigit():
        return text.strip()
    return scaled(int(digits) * 1024**power, _SIG_FIGS, "B", binary=True)
