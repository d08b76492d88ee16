"""Keep a comparison while it runs: each run in a transaction of its own, as soon as it ends.

A store that fails does not end the comparison: what could not be kept is tried again with the
next run and at the end, and its figures are in `results.json` in any case.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, select, update

from blklab.domain.events import Finished
from blklab.domain.measurement import Measurement
from blklab.errors import InputError, StoreError
from blklab.store import owner, packing, read, request, schema
from blklab.store.database import Store
from blklab.store.facts import facts
from blklab.store.read import Run
from blklab.store.request import Request


@dataclass
class InStore:
    """See `Keeper`."""

    store: Store
    id: int
    kept: Mapping[int, Measurement] = field(default_factory=dict)
    lost: str = ""
    _waiting: dict[int, Finished] = field(default_factory=dict)
    _revised: dict[str, Any] = field(default_factory=dict)
    """Columns of the comparison that are not written yet."""

    @property
    def name(self) -> str:
        """See `Keeper`."""
        return str(self.id)

    def keep(self, number: int, finished: Finished) -> None:
        """See `Keeper`."""
        self._waiting[number] = finished
        self._write()

    def revise(self, described: Mapping[str, Any], planned: int) -> None:
        """See `Keeper`."""
        self._revised = {"setup": packing.pack_json(described), "planned": planned}
        self._write()

    def release(self) -> None:
        """See `Keeper`."""
        self._revised["owner"] = None
        self._write()

    def finish(self) -> None:
        """See `Keeper`."""
        self._revised |= {"ended_at": now(), "owner": None}
        self._write()

    def _write(self) -> None:
        """All that is not written yet, or nothing of it."""
        try:
            with self.store.writing() as connection:
                if self._revised:
                    connection.execute(
                        update(schema.COMPARISON)
                        .where(schema.COMPARISON.c.id == self.id)
                        .values(**self._revised)
                    )
                for number, finished in self._waiting.items():
                    insert_run(connection, self.id, _run(number, finished))
        except StoreError as error:
            count = len(self._waiting)
            what = f"{count} run{'s are' if count > 1 else ' is'} not stored: " if count else ""
            self.lost = f"{what}{error}"
        else:
            self._waiting.clear()
            self._revised.clear()
            self.lost = ""


def begin(
    store: Store,
    described: Mapping[str, Any],
    asked: Request,
    planned: int,
    *,
    study: tuple[int, str, str] | None = None,
) -> InStore:
    """A new comparison; `study` is the number, the name and the part, if it is of one."""
    study_id, study_name, part = study or (None, None, None)
    with store.writing() as connection:
        found = connection.execute(
            schema.COMPARISON.insert().values(
                uid=uuid.uuid4().hex,
                begun_at=now(),
                rig=described["rig"],
                machine=packing.text(owner.machine()),
                objective=asked.objective,
                planned=planned,
                study_id=study_id,
                study=None if study_name is None else packing.text(study_name),
                part=None if part is None else packing.text(part),
                setup=packing.pack_json(described),
                facts=packing.pack_json(facts(described["rig"])),
                request=request.to_bytes(asked),
                owner=owner.mark(),
            )
        )
        [number] = found.inserted_primary_key or (0,)
        insert_axes(connection, number, described)
    return InStore(store, number)


def go_on(store: Store, number: int) -> InStore:
    """A comparison that was killed, now of this process. InputError if another still runs it."""
    with store.writing() as connection:
        row = connection.execute(
            select(schema.COMPARISON.c.owner).where(schema.COMPARISON.c.id == number)
        ).one()
        if process := owner.alive(row.owner):
            raise InputError(f"{number} is being run by process {process}")
        connection.execute(
            update(schema.COMPARISON)
            .where(schema.COMPARISON.c.id == number)
            .values(owner=owner.mark())
        )
        kept = read.measurements(connection, number)
    return InStore(store, number, kept)


def insert_axes(connection: Connection, number: int, setup: Mapping[str, Any]) -> None:
    """What a comparison is found by."""
    names = {
        "disk": [row["label"] for row in setup["disks"]],
        "workload": [row["name"] for row in setup["workloads"]],
        "scheduler": [row["label"] for row in setup["schedulers"]],
    }
    rows: Sequence[dict[str, Any]] = [
        {"comparison_id": number, "kind": kind, "place": place, "label": packing.text(label)}
        for kind, labels in names.items()
        for place, label in enumerate(labels)
    ]
    if rows:
        connection.execute(schema.AXIS.insert(), rows)


def insert_run(connection: Connection, comparison: int, run: Run) -> None:
    """One run with everything."""
    measured = run.measurement
    connection.execute(
        schema.RUN.insert().values(
            comparison_id=comparison,
            number=run.number,
            disk=packing.text(measured.disk),
            workload=packing.text(measured.workload),
            scheduler=packing.text(measured.scheduler),
            repeat=measured.repeat,
            seed=str(measured.seed),
            begun_at=run.begun_at,
            ended_at=run.ended_at,
            duration_ns=measured.duration_ns,
            bytes_per_s=measured.bytes_per_s,
            ios_per_s=measured.ios_per_s,
            measurement=packing.pack_json(measured),
            device_before=_packed(run.device_before),
            device_after=_packed(run.device_after),
        )
    )
    if run.raw:
        connection.execute(
            schema.RAW.insert(),
            [
                {
                    "comparison_id": comparison,
                    "number": run.number,
                    "name": packing.text(name),
                    "body": packing.pack(body),
                }
                for name, body in run.raw.items()
            ],
        )


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
