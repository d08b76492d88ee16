"""fio's ``terse``, version 3: one line of fields per job."""

from __future__ import annotations

from blklab.fio.json_format import FIO_VERSION
from blklab.fio.status import DirectionStatus, GroupStatus, JobStatus, Moments, Report, group_status

# FIO_IO_U_LIST_MAX_LEN: the line always has this many percentiles.
_PERCENTILES = 20
_KIB = 1024


def render(report: Report) -> str:
    """A line for each job."""
    return "".join(_line(job, report) + "\n" for job in report.jobs)


def _line(job: JobStatus, report: Report) -> str:
    user, system = job.cpu_percent()
    group = [other for other in report.jobs if other.group == job.group]
    below_us, below_ms, longer = job.latency_percent()
    # The format is older than nanoseconds: latencies below 1 us count as below 2 us.
    below_ms[0] += sum(below_us)
    return ";".join(
        [
            "3",
            FIO_VERSION,
            _plain(job.name),
            str(job.group),
            "0",
            *_direction(job, job.read, group_status(group, "read")),
            *_direction(job, job.write, group_status(group, "write")),
            f"{user:f}%",
            f"{system:f}%",
            str(job.context_switches),
            "0",
            "0",
            *(f"{share:3.1f}%" for share in job.depth_percent()),
            *(f"{share:3.2f}%" for share in (*below_ms, *longer)),
            _plain(report.disk_name),
            *(str(figure) for figure in report.disk_figures().values()),
            f"{report.disk_util_percent:3.2f}%",
        ]
    )


def _direction(job: JobStatus, part: DirectionStatus, group: GroupStatus | None) -> list[str]:
    fields = [
        str(part.io_bytes // _KIB),
        str(part.bw_bytes // _KIB),
        str(int(part.iops_rate)),
        str(part.runtime_ms),
        *_latency_us(part.slat),
        *_latency_us(part.clat),
    ]
    # Even without samples, fio prints the list, with zeros.
    percentiles = job.percentiles
    values_ns = [0] * len(percentiles)
    if part.clat.count:
        values_ns = part.hist.percentiles(percentiles).tolist()
    fields += [f"{p:f}%={v // 1000}" for p, v in zip(percentiles, values_ns, strict=True)]
    fields += ["0%=0"] * (_PERCENTILES - len(percentiles))
    fields += _latency_us(part.lat)
    bw = part.bw
    share = 0.0
    if bw.count:
        per_group = group.agg // _KIB if group else 0
        share = min(100.0, bw.mean * 100 / per_group) if per_group else 100.0
    return [
        *fields,
        str(int(bw.min)),
        str(int(bw.max)),
        f"{share:f}%",
        f"{bw.mean:f}",
        f"{bw.stddev:f}",
    ]


def _latency_us(moments: Moments) -> list[str]:
    return [
        str(int(moments.min) // 1000),
        str(int(moments.max) // 1000),
        f"{moments.mean / 1000:f}",
        f"{moments.stddev / 1000:f}",
    ]


def _plain(name: str) -> str:
    """The format cannot quote: a separator in a name would shift all fields behind it."""
    return name.replace(";", ",").replace("\n", " ")
