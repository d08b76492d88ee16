"""Recordings of Linux 4.12.4: runs, the order of issue, and cfq's slices.

The folder has ``runs.csv`` (a row for each process and direction of each run), the job files in
``jobs/``, the first requests of each run in the order of issue in ``issue/*.csv.gz``, and cfq's
slices in ``slices/*.csv.gz``.
"""

from __future__ import annotations

import csv
import gzip
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

NO_DATA = "N"
"""The operation of a command without data, which passes the scheduler by."""


@dataclass(frozen=True)
class Row:
    """fio's figures of one process and one direction."""

    process: int
    job: str
    direction: str
    ios: int
    iops: float
    p99_us: float
    max_us: float


@dataclass(frozen=True)
class Issued:
    """One request as the driver got it."""

    at_ns: int
    op: str
    sector: int
    sectors: int
    process: int | None
    came_ns: int


@dataclass(frozen=True)
class Slice:
    """One turn of a queue of cfq."""

    begin_ns: int
    end_ns: int | None
    process: str
    """``A`` for a queue of asynchronous requests."""
    slice_ns: int | None
    """None if it ended before its first request completed."""
    dispatched: int


@dataclass(frozen=True)
class Run:
    """One run."""

    name: str
    workload: str
    scheduler: str
    """In blklab's form, with settings."""
    depth: int
    service_us: int
    job: str
    """The text of the job file."""
    rows: tuple[Row, ...]
    issued: tuple[Issued, ...]
    slices: tuple[Slice, ...]

    @property
    def kind(self) -> str:
        """The scheduler without settings."""
        return self.scheduler.partition(":")[0]

    def order_of_start(self) -> list[int]:
        """The processes, by the arrival of their first request; then those without any."""
        first: dict[int, int] = {}
        for one in self.issued:
            if one.process is not None:
                first[one.process] = min(one.came_ns, first.get(one.process, one.came_ns))
        every = {row.process for row in self.rows}
        return sorted(every, key=lambda process: (first.get(process, 1 << 63), process))


def runs(folder: Path) -> list[Run]:
    """All runs of the folder, in the order of ``runs.csv``."""
    by_name: dict[str, list[dict[str, str]]] = defaultdict(list)
    with (folder / "runs.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            by_name[row["run"]].append(row)
    return [_run(folder, rows) for rows in by_name.values()]


def _run(folder: Path, rows: list[dict[str, str]]) -> Run:
    first = rows[0]
    settings = first["settings"].replace(" ", ",")
    return Run(
        name=first["run"],
        workload=first["workload"],
        scheduler=first["scheduler"] + (f":{settings}" if settings else ""),
        depth=int(first["depth"]),
        service_us=int(first["service_us"]),
        job=(folder / "jobs" / first["job_file"]).read_text(encoding="utf-8"),
        rows=tuple(
            Row(
                int(row["proc"]),
                row["job"],
                row["dir"],
                int(row["ios"]),
                float(row["iops"]),
                float(row["lat_p99_us"]),
                float(row["lat_max_us"]),
            )
            for row in rows
        ),
        issued=tuple(_issued(row) for row in _table(folder / "issue", first["issue_file"])),
        slices=tuple(_slice(row) for row in _table(folder / "slices", first["slices_file"])),
    )


def _table(folder: Path, name: str) -> list[dict[str, str]]:
    if not name:
        return []
    with gzip.open(folder / name, "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _issued(row: dict[str, str]) -> Issued:
    at_ns = int(row["t_ns"])
    return Issued(
        at_ns,
        row["op"],
        int(row["sector"]),
        int(row["sectors"]),
        int(row["proc"]) if row["proc"] else None,
        at_ns - int(row["wait_ns"] or 0),
    )


def _slice(row: dict[str, str]) -> Slice:
    return Slice(
        int(row["begin_ns"]),
        int(row["end_ns"]) if row["end_ns"] else None,
        row["proc"],
        int(row["slice_ns"]) if row["slice_ns"] else None,
        int(row["dispatched"] or 0),
    )
