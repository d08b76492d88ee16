"""Comparisons in the store: begin, resume, remove.

Runs are stored as soon as they end, those that ended together in one transaction. A failing store
does not end the comparison: unstored runs are tried again with the next ones and at the end, and
their figures are in `results.json` in any case.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import starmap
from typing import Any, TypedDict

from sqlalchemy import Connection, delete, select, update

from blklab.domain.events import Finished
from blklab.domain.measurement import Measurement
from blklab.domain.setup import SetupData
from blklab.errors import InputError, StoreError
from blklab.store import keys, origin, packing, read, request
from blklab.store.database import Store
from blklab.store.origin import facts
from blklab.store.read import Run
from blklab.store.request import Request
from blklab.store.schema import AXIS, COMPARISON, RAW, RUN, STUDY


class _Columns(TypedDict, total=False):
    """Columns of the comparison."""

    setup: bytes
    planned: int
    ended_at: str
    owner: None
    """Its process has ended."""


@dataclass
class InStore:
    """See `Keeper`."""

    store: Store
    id: int
    kept: Mapping[int, Measurement] = field(default_factory=dict)
    lost: str = ""
    _waiting: dict[int, Finished] = field(default_factory=dict)
    _revised: _Columns = field(default_factory=_Columns)
    """Those not written yet."""

    @property
    def name(self) -> str:
        """See `Keeper`."""
        return str(self.id)

    def keep(self, runs: Mapping[int, Finished]) -> None:
        """See `Keeper`."""
        self._waiting.update(runs)
        self._write()

    def take_over(self, keys_of: Mapping[int, str]) -> int:
        """See `Keeper`."""
        try:
            with self.store.writing() as connection:
                found = keys.take_over(connection, self.id, keys_of)
        except StoreError:
            # They are run again.
            return 0
        self.kept = {**self.kept, **found}
        return len(found)

    def revise(self, described: SetupData, planned: int) -> None:
        """See `Keeper`."""
        self._revised = {"setup": packing.pack_json(described), "planned": planned}
        self._write()

    def release(self) -> None:
        """See `Keeper`."""
        self._revised["owner"] = None
        self._write()

    def finish(self) -> None:
        """See `Keeper`."""
        self._revised.update({"ended_at": now(), "owner": None})
        self._write()

    def _write(self) -> None:
        """Write everything that is not written yet, or nothing."""
        try:
            with self.store.writing() as connection:
                if self._revised:
                    connection.execute(
                        update(COMPARISON).where(COMPARISON.c.id == self.id).values(**self._revised)
                    )
                insert_runs(connection, self.id, starmap(_run, self._waiting.items()))
                keys.insert(
                    connection,
                    self.id,
                    {
                        number: (finished.key, finished.measurement)
                        for number, finished in self._waiting.items()
                        if finished.key
                    },
                )
        except StoreError as error:
            count = len(self._waiting)
            what = f"{count} run{'s are' if count > 1 else ' is'} not stored: " if count else ""
            self.lost = f"{what}{error}"
        except keys.OtherFiguresError as error:
            # It is not stored; the others are, at the end.
            del self._waiting[error.number]
            raise
        else:
            self._waiting.clear()
            self._revised = _Columns()
            self.lost = ""


def begin(
    store: Store,
    described: SetupData,
    asked: Request,
    planned: int,
    *,
    study: tuple[int, str, str] | None = None,
) -> InStore:
    """A new comparison; `study` is the number, the name and the part, if it belongs to a study."""
    study_id, study_name, part = study or (None, None, None)
    with store.writing() as connection:
        number = insert_comparison(
            connection,
            described,
            uid=uuid.uuid4().hex,
            begun_at=now(),
            rig=described["rig"],
            machine=origin.machine(),
            objective=asked.objective,
            planned=planned,
            study_id=study_id,
            study=study_name,
            part=part,
            facts=packing.pack_json(facts(described["rig"])),
            request=request.to_bytes(asked),
            owner=origin.mark(),
        )
    return InStore(store, number)


def go_on(store: Store, number: int) -> InStore:
    """A killed comparison, taken over by this process. InputError if another process still runs
    it."""
    with store.writing() as connection:
        row = connection.execute(select(COMPARISON.c.owner).where(COMPARISON.c.id == number)).one()
        if process := origin.alive(row.owner):
            raise InputError(f"{number} is being run by process {process}")
        connection.execute(
            update(COMPARISON).where(COMPARISON.c.id == number).values(owner=origin.mark())
        )
        kept = read.measurements(connection, number)
    return InStore(store, number, kept)


def insert_comparison(connection: Connection, setup: SetupData, **columns: Any) -> int:
    """Insert a comparison without its runs, with its searchable names; returns its number."""
    for name in ("rig", "machine", "study", "part"):
        if columns[name] is not None:
            columns[name] = packing.text(columns[name])
    made = connection.execute(COMPARISON.insert().values(setup=packing.pack_json(setup), **columns))
    [number] = made.inserted_primary_key or (0,)
    _insert_axes(connection, number, setup)
    return int(number)


def _insert_axes(connection: Connection, number: int, setup: SetupData) -> None:
    names = {
        "disk": [row["label"] for row in setup["disks"]],
        "workload": [row["name"] for row in setup["workloads"]],
        "scheduler": [row["label"] for row in setup["schedulers"]],
    }
    rows: list[dict[str, int | str]] = [
        {"comparison_id": number, "kind": kind, "place": place, "label": packing.text(label)}
        for kind, labels in names.items()
        for place, label in enumerate(labels)
    ]
    if rows:
        connection.execute(AXIS.insert(), rows)


def insert_runs(connection: Connection, comparison: int, runs: Iterable[Run]) -> None:
    """Runs with everything."""
    rows: list[dict[str, Any]] = []
    raw: list[dict[str, Any]] = []
    for run in runs:
        own = {"comparison_id": comparison, "number": run.number}
        rows.append(own | _columns(run))
        raw += (
            own | {"name": packing.text(name), "body": packing.pack(body)}
            for name, body in run.raw.items()
        )
    for table, values in ((RUN, rows), (RAW, raw)):
        if values:
            connection.execute(table.insert(), values)


def _columns(run: Run) -> dict[str, Any]:
    measured = run.measurement
    return {
        "disk": packing.text(measured.disk),
        "workload": packing.text(measured.workload),
        "scheduler": packing.text(measured.scheduler),
        "repeat": measured.repeat,
        "seed": str(measured.seed),
        "begun_at": run.begun_at,
        "ended_at": run.ended_at,
        "duration_ns": measured.duration_ns,
        "bytes_per_s": measured.bytes_per_s,
        "ios_per_s": measured.ios_per_s,
        "measurement": packing.pack_json(measured),
        "device_before": _packed(run.device_before),
        "device_after": _packed(run.device_after),
    }


def _run(number: int, finished: Finished) -> Run:
    return Run(
        number,
        finished.begun_at.isoformat(timespec="milliseconds"),
        finished.ended_at.isoformat(timespec="milliseconds"),
        finished.measurement,
        finished.device_before,
        finished.device_after,
        finished.raw,
    )


def now() -> str:
    """UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _packed(value: Mapping[str, Any] | None) -> bytes | None:
    return None if value is None else packing.pack_json(value)


@dataclass(frozen=True)
class Left:
    """The unfinished part of a comparison."""

    id: int
    setup: SetupData
    request: bytes
    study_id: int | None


def left(store: Store, number: int | None, *, study: bool) -> Left:
    """The comparison of that number, else the latest incomplete one that no process runs; of a
    study or not.

    A complete comparison may be named; then no run is left. InputError if there is none, or if it
    was imported.
    """
    query = select(
        COMPARISON.c.id,
        COMPARISON.c.setup,
        COMPARISON.c.request,
        COMPARISON.c.imported_at,
        COMPARISON.c.study_id,
        COMPARISON.c.study,
        COMPARISON.c.owner,
    )
    if number is None:
        query = query.where(COMPARISON.c.ended_at.is_(None), COMPARISON.c.request.is_not(None))
        wanted = COMPARISON.c.study.is_not(None) if study else COMPARISON.c.study.is_(None)
        query = query.where(wanted).order_by(COMPARISON.c.id.desc())
    else:
        query = query.where(COMPARISON.c.id == number)
    with store.reading() as connection:
        rows = [
            row
            for row in connection.execute(query)
            if number is not None or not origin.alive(row.owner)
        ]
    if not rows:
        what = f"no comparison {number}" if number else "no unfinished comparison"
        raise InputError(f"--resume: {what}; see: blklab results")
    row = rows[0]
    if row.request is None and row.imported_at is not None:
        raise InputError(f"{row.id} was imported: only the machine that began it can resume it")
    if row.request is None:
        raise InputError(f"{row.id} is a single run, which has ended; to run it again: blklab fio")
    if (row.study is None) == study:
        command = "compare" if row.study is None else "run"
        raise InputError(f"{row.id} is resumed with: blklab {command} --resume {row.id}")
    return Left(
        row.id,
        packing.setup(f"comparison {row.id}: setup", row.setup),
        row.request,
        row.study_id,
    )


def remove(store: Store, numbers: Sequence[int]) -> None:
    """Remove all of them with their runs, or none. InputError if one does not exist or still
    runs."""
    with store.writing() as connection:
        found = {
            row.id: row
            for row in connection.execute(
                select(COMPARISON.c.id, COMPARISON.c.owner).where(COMPARISON.c.id.in_(numbers))
            )
        }
        for number in numbers:
            if number not in found:
                raise InputError(f"no comparison {number}; see: blklab results")
            if process := origin.alive(found[number].owner):
                raise InputError(f"{number} is being run by process {process}")
        connection.execute(delete(COMPARISON).where(COMPARISON.c.id.in_(numbers)))
        left = select(COMPARISON.c.study_id).where(COMPARISON.c.study_id.is_not(None))
        connection.execute(delete(STUDY).where(STUDY.c.id.not_in(left)))
