"""Read the store: the list of comparisons, or one with all its runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, and_, func, select

from blklab.domain import check_runs
from blklab.domain.measurement import Measurement
from blklab.domain.results_file import Results
from blklab.domain.setup import SetupData, SetupDocument, Value
from blklab.errors import InputError
from blklab.store import origin, packing
from blklab.store.database import Store
from blklab.store.packing import DamagedError
from blklab.store.schema import AXIS, COMPARISON, RAW, RUN

COMPLETE, RUNNING, PARTIAL = "complete", "running", "partial"
KINDS = ("disk", "workload", "scheduler")


@dataclass(frozen=True)
class Listed:
    """One comparison, without its runs."""

    id: int
    uid: str
    begun_at: str
    """ISO 8601, UTC."""
    ended_at: str | None
    imported_at: str | None
    rig: str
    machine: str
    objective: str
    study_id: int | None
    study: str | None
    part: str | None
    disks: tuple[str, ...]
    workloads: tuple[str, ...]
    schedulers: tuple[str, ...]
    planned: int
    """The number of planned runs."""
    kept: int
    """The number of stored runs."""
    state: str
    """``complete``, ``running`` or ``partial``, which can be resumed."""

    @property
    def is_complete(self) -> bool:
        """Whether no run is left; it has fewer than `planned` if its budget stopped it."""
        return self.state == COMPLETE


@dataclass(frozen=True)
class Filter:
    """Selects comparisons; an empty field selects all."""

    ids: Sequence[int] = ()
    disks: Sequence[str] = ()
    workloads: Sequence[str] = ()
    schedulers: Sequence[str] = ()
    rigs: Sequence[str] = ()
    since: str = ""
    """ISO 8601, UTC."""


@dataclass(frozen=True)
class Run:
    """One run with all its stored data."""

    number: int
    begun_at: str
    ended_at: str
    measurement: Measurement
    device_before: Mapping[str, Any] | None = None
    device_after: Mapping[str, Any] | None = None
    raw: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Comparison:
    """One comparison with all its stored data."""

    listed: Listed
    setup: SetupData
    facts: dict[str, dict[str, Value]]
    runs: tuple[Run, ...]
    """In the order of the plan."""

    def results(self) -> Results:
        """As in `results.json`: in the order of tables.

        For a partial comparison only the complete repeats: schedulers in the others would have
        different seeds.
        """
        runs = [run.measurement for run in self.runs]
        if len(runs) == self.listed.planned:
            return Results(self.setup, ordered(self.setup, runs))
        in_repeat = self.listed.planned // self.setup["repeats"]
        counts = Counter(run.repeat for run in runs)
        whole = {repeat for repeat, count in counts.items() if count == in_repeat}
        kept = [run for run in runs if run.repeat in whole]
        return Results(self.setup | {"repeats": len(whole)}, ordered(self.setup, kept))


def ordered(setup: SetupData, runs: Iterable[Measurement]) -> tuple[Measurement, ...]:
    """By disk, workload, scheduler and repeat, in the order of the set-up."""
    disks = {row["label"]: place for place, row in enumerate(setup["disks"])}
    workloads = {row["name"]: place for place, row in enumerate(setup["workloads"])}
    schedulers = {row["label"]: place for place, row in enumerate(setup["schedulers"])}
    return tuple(
        sorted(
            runs,
            key=lambda run: (
                disks[run.disk],
                workloads[run.workload],
                schedulers[run.scheduler],
                run.repeat,
            ),
        )
    )


def _fails(line: str) -> None:
    raise DamagedError(line)


def listed(
    store: Store, wanted: Filter | None = None, tell: Callable[[str], None] = _fails
) -> list[Listed]:
    """The selected comparisons, the latest first; `tell` receives a line for each that is damaged
    and left out."""
    with store.reading() as connection:
        return _listed(connection, wanted or Filter(), tell)


def comparison(
    store: Store, number: int, *, raw: bool = False, tell: Callable[[str], None] = _fails
) -> Comparison:
    """One comparison with all its runs; with `raw`, also the output files of programs. `tell`
    receives a line for each run that is damaged and left out. InputError if there is none,
    StoreError if the data shared by all runs are damaged."""
    with store.reading() as connection:
        rows = _listed(connection, Filter(ids=[number]), _fails)
        if not rows:
            raise InputError(f"no comparison {number}; see: blklab results")
        kept = connection.execute(
            select(COMPARISON.c.setup, COMPARISON.c.facts).where(COMPARISON.c.id == number)
        ).one()
        where = f"comparison {number}"
        document = packing.column(f"{where}: setup", kept.setup, SetupDocument)
        setup = packing.setup(f"{where}: setup", kept.setup)
        facts = packing.column(f"{where}: facts", kept.facts, dict[str, dict[str, Value]])
        there, found = check_runs.expected(document), []
        for row in connection.execute(_RUNS.where(RUN.c.comparison_id == number)):
            try:
                raws = _raws(connection, where, number, row.number) if raw else {}
                one = _run(where, row, raws)
                if wrong := next(check_runs.wrong_in(one.measurement, there, document.repeats), ""):
                    raise DamagedError(f"{where}, run {one.number}: measurement: {wrong}")
                found.append(one)
            except DamagedError as error:
                tell(f"{error}; this run is left out")
        return Comparison(rows[0], setup, facts, tuple(found))


def measurements(connection: Connection, number: int) -> dict[int, Measurement]:
    """The runs of a comparison, by number in the plan."""
    rows = connection.execute(_RUNS.where(RUN.c.comparison_id == number))
    where = f"comparison {number}"
    return {
        row.number: measurement(f"{where}, run {row.number}: measurement", row.measurement)
        for row in rows
    }


_RUNS = select(
    RUN.c.number,
    RUN.c.begun_at,
    RUN.c.ended_at,
    RUN.c.measurement,
    RUN.c.device_before,
    RUN.c.device_after,
).order_by(RUN.c.number)


def _run(where: str, row: Any, raw: Mapping[str, bytes]) -> Run:
    """DamagedError, which names the run and the field."""
    where = f"{where}, run {row.number}"
    found = Run(
        row.number,
        row.begun_at,
        row.ended_at,
        measurement(f"{where}: measurement", row.measurement),
        _document(f"{where}: device_before", row.device_before),
        _document(f"{where}: device_after", row.device_after),
        raw,
    )
    for name, kind in (("number", int), ("begun_at", str), ("ended_at", str)):
        if not isinstance(value := getattr(found, name), kind):
            raise DamagedError(f"{where}: {name}: {type(value).__name__} in place of "
                               f"{kind.__name__}")  # fmt: skip
    return found


def _listed(connection: Connection, wanted: Filter, tell: Callable[[str], None]) -> list[Listed]:
    count = func.count().label("kept")
    counted = select(RUN.c.comparison_id, count).group_by(RUN.c.comparison_id)
    named = select(AXIS).order_by(AXIS.c.place)
    if wanted.ids:
        counted = counted.where(RUN.c.comparison_id.in_(wanted.ids))
        named = named.where(AXIS.c.comparison_id.in_(wanted.ids))
    counts = {row.comparison_id: row.kept for row in connection.execute(counted)}
    labels: dict[tuple[int, str], list[str]] = {}
    for row in connection.execute(named):
        labels.setdefault((row.comparison_id, row.kind), []).append(row.label)
    rows = connection.execute(
        select(*_OF_LISTED).where(*_conditions(wanted)).order_by(COMPARISON.c.id.desc())
    )
    found = []
    for row in rows:
        columns = {str(name): value for name, value in row._mapping.items()} | {
            "disks": labels.get((row.id, "disk"), []),
            "workloads": labels.get((row.id, "workload"), []),
            "schedulers": labels.get((row.id, "scheduler"), []),
            "kept": counts.get(row.id, 0),
            "state": _state(row),
        }
        try:
            # A column of SQLite accepts values of any type.
            found.append(msgspec.convert(columns, Listed))
        except msgspec.ValidationError as error:
            tell(f"comparison {row.id}: {error}")
    return found


_OF_LISTED = [column for column in COMPARISON.c if column.name not in {"setup", "facts", "request"}]
"""The columns that are not documents."""


def _state(row: Any) -> str:
    if row.ended_at is not None:
        return COMPLETE
    return RUNNING if origin.alive(row.owner) else PARTIAL


def _conditions(wanted: Filter) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = [
        COMPARISON.c.id.in_(
            select(AXIS.c.comparison_id).where(
                and_(AXIS.c.kind == kind, func.lower(AXIS.c.label).contains(name, autoescape=True))
            )
        )
        for kind, names in zip(
            KINDS, (wanted.disks, wanted.workloads, wanted.schedulers), strict=True
        )
        for name in map(str.lower, names)
    ]
    if wanted.ids:
        found.append(COMPARISON.c.id.in_(wanted.ids))
    if wanted.rigs:
        found.append(COMPARISON.c.rig.in_(wanted.rigs))
    if wanted.since:
        found.append(COMPARISON.c.begun_at >= wanted.since)
    return found


def _raws(connection: Connection, where: str, number: int, run: int) -> dict[str, bytes]:
    of_run = (RAW.c.comparison_id == number) & (RAW.c.number == run)
    found = {}
    for row in connection.execute(select(RAW).where(of_run).order_by(RAW.c.name)):
        try:
            found[str(row.name)] = packing.unpack(row.body)
        except DamagedError as error:
            raise DamagedError(f"{where}, run {run}: {row.name}: {error}") from error
    return found


def measurement(where: str, kept: Any) -> Measurement:
    """The measurement of a row. DamagedError, which names `where`."""
    return packing.column(where, kept, Measurement)


def _document(where: str, kept: Any) -> dict[str, Any] | None:
    return None if kept is None else packing.column(where, kept, dict[str, Any])
