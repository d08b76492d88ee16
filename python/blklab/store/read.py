"""Read what is kept: the list of comparisons, one with all its runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, and_, func, select

from blklab.compare.measurement import Measurement, from_json
from blklab.compare.store import Results
from blklab.errors import InputError
from blklab.store import owner, packing
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
    """Runs that it was to have."""
    kept: int
    """Runs that it has."""
    state: str


@dataclass(frozen=True)
class Filter:
    """Which comparisons; what is empty lets all through."""

    ids: Sequence[int] = ()
    disks: Sequence[str] = ()
    workloads: Sequence[str] = ()
    schedulers: Sequence[str] = ()
    rigs: Sequence[str] = ()
    since: str = ""
    """ISO 8601, UTC."""


@dataclass(frozen=True)
class Run:
    """One run with all that was kept of it."""

    number: int
    begun_at: str
    ended_at: str
    measurement: Measurement
    device_before: Mapping[str, Any] | None = None
    device_after: Mapping[str, Any] | None = None
    raw: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Comparison:
    """One comparison with all that was kept of it."""

    listed: Listed
    setup: dict[str, Any]
    facts: dict[str, Any]
    runs: tuple[Run, ...]
    """In the order of the plan."""

    def results(self) -> Results:
        """As `results.json` has it: in the order for people.

        Of a partial one the repeats that are whole: figures of others would be of other seeds.
        """
        runs = [run.measurement for run in self.runs]
        if len(runs) == self.listed.planned:
            return Results(self.setup, ordered(self.setup, runs))
        in_repeat = self.listed.planned // self.setup["repeats"]
        counts = Counter(run.repeat for run in runs)
        whole = {repeat for repeat, count in counts.items() if count == in_repeat}
        kept = [run for run in runs if run.repeat in whole]
        return Results(self.setup | {"repeats": len(whole)}, ordered(self.setup, kept))


def ordered(setup: Mapping[str, Any], runs: Iterable[Measurement]) -> tuple[Measurement, ...]:
    """By disk, workload, scheduler and repeat, in the order of the set-up."""
    disks, workloads, schedulers = (
        {row[key]: place for place, row in enumerate(setup[name])}
        for name, key in (("disks", "label"), ("workloads", "name"), ("schedulers", "label"))
    )
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


def listed(store: Store, wanted: Filter | None = None) -> list[Listed]:
    """Those that the filter lets through, the latest first."""
    with store.reading() as connection:
        return _listed(connection, wanted or Filter())


def comparison(store: Store, number: int, *, raw: bool = False) -> Comparison:
    """One with all its runs; with what `raw` programs wrote too. InputError if there is none."""
    with store.reading() as connection:
        rows = _listed(connection, Filter(ids=[number]))
        if not rows:
            raise InputError(f"no comparison {number}; see: blklab results")
        kept = connection.execute(
            select(COMPARISON.c.setup, COMPARISON.c.facts).where(COMPARISON.c.id == number)
        ).one()
        raws = _raws(connection, number) if raw else {}
        runs = tuple(
            Run(
                row.number,
                row.begun_at,
                row.ended_at,
                _measurement(row.measurement),
                _document(row.device_before),
                _document(row.device_after),
                raws.get(row.number, {}),
            )
            for row in connection.execute(
                select(RUN).where(RUN.c.comparison_id == number).order_by(RUN.c.number)
            )
        )
        return Comparison(
            rows[0], packing.unpack_json(kept.setup), packing.unpack_json(kept.facts), runs
        )


def measurements(connection: Connection, number: int) -> dict[int, Measurement]:
    """The runs of a comparison, by number in the plan."""
    found = connection.execute(
        select(RUN.c.number, RUN.c.measurement)
        .where(RUN.c.comparison_id == number)
        .order_by(RUN.c.number)
    )
    return {row.number: _measurement(row.measurement) for row in found}


def _listed(connection: Connection, wanted: Filter) -> list[Listed]:
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
        select(COMPARISON).where(*_conditions(wanted)).order_by(COMPARISON.c.id.desc())
    )
    return [
        Listed(
            row.id,
            row.uid,
            row.begun_at,
            row.ended_at,
            row.imported_at,
            row.rig,
            row.machine,
            row.objective,
            row.study_id,
            row.study,
            row.part,
            tuple(labels.get((row.id, "disk"), ())),
            tuple(labels.get((row.id, "workload"), ())),
            tuple(labels.get((row.id, "scheduler"), ())),
            row.planned,
            counts.get(row.id, 0),
            _state(row),
        )
        for row in rows
    ]


def _state(row: Any) -> str:
    if row.ended_at is not None:
        return COMPLETE
    return RUNNING if owner.alive(row.owner) else PARTIAL


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


def _raws(connection: Connection, number: int) -> dict[int, dict[str, bytes]]:
    found: dict[int, dict[str, bytes]] = {}
    for row in connection.execute(
        select(RAW).where(RAW.c.comparison_id == number).order_by(RAW.c.number, RAW.c.name)
    ):
        found.setdefault(row.number, {})[row.name] = packing.unpack(row.body)
    return found


def _measurement(kept: bytes) -> Measurement:
    try:
        return from_json(packing.unpack_json(kept))
    except msgspec.ValidationError as error:
        raise DamagedError(f"a run is none ({error})") from error


def _document(kept: bytes | None) -> dict[str, Any] | None:
    return None if kept is None else packing.unpack_json(kept)
