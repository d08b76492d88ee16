"""Put comparisons that are documents into the store, all or none."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from sqlalchemy import select

from blklab.store import keep, packing
from blklab.store.database import Store
from blklab.store.exchange import ComparisonDocument
from blklab.store.read import Run
from blklab.store.schema import COMPARISON


def put(
    store: Store, several: Sequence[ComparisonDocument], *, elsewhere: bool = True
) -> tuple[list[int], list[int]]:
    """Numbers of those that were put there, and of those that were there already.

    They were run `elsewhere`, or are this machine's own.
    """
    new, old = [], []
    with store.writing() as connection:
        for one in several:
            there = connection.execute(
                select(COMPARISON.c.id).where(COMPARISON.c.uid == one.uid)
            ).scalar()
            if there is not None:
                old.append(there)
                continue
            made = connection.execute(
                COMPARISON.insert().values(
                    uid=one.uid,
                    begun_at=_utc(one.begun_at),
                    ended_at=None if one.ended_at is None else _utc(one.ended_at),
                    imported_at=keep.now() if elsewhere else None,
                    rig=packing.text(one.rig),
                    machine=packing.text(one.machine),
                    objective=one.objective,
                    planned=one.planned,
                    study=None if one.study is None else packing.text(one.study),
                    part=None if one.part is None else packing.text(one.part),
                    setup=packing.pack_json(one.setup),
                    facts=packing.pack_json(one.facts),
                )
            )
            [number] = made.inserted_primary_key or (0,)
            keep.insert_axes(connection, number, one.setup)
            for run in one.runs:
                kept = Run(
                    run.number,
                    _utc(run.begun_at),
                    _utc(run.ended_at),
                    run.measurement,
                    run.device_before,
                    run.device_after,
                    run.raw,
                )
                keep.insert_run(connection, number, kept)
            new.append(number)
    return new, old


def _utc(text: str) -> str:
    return datetime.fromisoformat(text).astimezone(UTC).isoformat(timespec="milliseconds")
