"""Import comparisons from documents into the store."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import cast

from sqlalchemy import Connection, select
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, InterfaceError, ProgrammingError

from blklab.domain.setup import SetupData
from blklab.store import keep, packing
from blklab.store.database import Store
from blklab.store.document import ComparisonDocument
from blklab.store.read import Run
from blklab.store.schema import COMPARISON

_OF_THE_DOCUMENT = (
    *(LookupError, OverflowError, TypeError, ValueError),
    *(DataError, IntegrityError, InterfaceError, ProgrammingError),
)
"""Errors for a document that the tables refuse. A locked or full store raises others."""


def put(
    store: Store, several: Sequence[ComparisonDocument], *, elsewhere: bool = True
) -> tuple[list[int], list[int]]:
    """Import all or none; returns the numbers of the new ones, and of those that were already
    stored.

    They were run `elsewhere`, or on this machine.
    """
    new: list[int] = []
    old: list[int] = []
    with store.writing() as connection:
        for one in several:
            there, number = _put(connection, one, elsewhere)
            (old if there else new).append(number)
    return new, old


def put_each(store: Store, several: Sequence[ComparisonDocument]) -> list[str]:
    """Import this machine's own as far as possible; returns the reason for each failure, empty for
    success. StoreError if the store cannot be written to; then none is stored."""
    why = []
    with store.writing() as connection:
        for one in several:
            try:
                with connection.begin_nested():
                    _put(connection, one, False)
                why.append("")
            except _OF_THE_DOCUMENT as error:
                found = error.orig if isinstance(error, DBAPIError) and error.orig else error
                why.append(f"{type(found).__name__}: {' '.join(str(found).split())}")
    return why


def _put(connection: Connection, one: ComparisonDocument, elsewhere: bool) -> tuple[bool, int]:
    """Whether it was already stored; its number."""
    there = connection.execute(select(COMPARISON.c.id).where(COMPARISON.c.uid == one.uid)).scalar()
    if there is not None:
        return True, there
    number = keep.insert_comparison(
        connection,
        cast(SetupData, one.setup),
        uid=one.uid,
        begun_at=_utc(one.begun_at),
        ended_at=None if one.ended_at is None else _utc(one.ended_at),
        imported_at=keep.now() if elsewhere else None,
        rig=one.rig,
        machine=one.machine,
        objective=one.objective,
        planned=one.planned,
        study=one.study,
        part=one.part,
        facts=packing.pack_json(one.facts),
    )
    kept = (
        Run(
            run.number,
            _utc(run.begun_at),
            _utc(run.ended_at),
            run.measurement,
            run.device_before,
            run.device_after,
            run.raw,
        )
        for run in one.runs
    )
    keep.insert_runs(connection, number, kept)
    return False, number


def _utc(text: str) -> str:
    return datetime.fromisoformat(text).astimezone(UTC).isoformat(timespec="milliseconds")
