"""Comparisons that were begun and have not run to their end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from blklab.errors import InputError
from blklab.store import owner, packing
from blklab.store.database import Store
from blklab.store.schema import COMPARISON


@dataclass(frozen=True)
class Left:
    """What is left of a comparison."""

    id: int
    setup: dict[str, Any]
    request: bytes
    study_id: int | None


def left(store: Store, number: int | None, *, study: bool) -> Left:
    """The one of that number, else the latest that nobody runs; of a study or of none.

    One that has run to its end may be named: there is nothing left to run then. InputError if
    there is none, or if it came from elsewhere.
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
            if number is not None or not owner.alive(row.owner)
        ]
    if not rows:
        what = f"no comparison {number}" if number else "nothing was left unfinished"
        raise InputError(f"--resume: {what}; see: blklab results")
    row = rows[0]
    if row.request is None and row.imported_at is not None:
        raise InputError(f"{row.id} was imported: it can only go on where it began")
    if row.request is None:
        raise InputError(f"{row.id} is a single run, which has ended; to run it again: blklab fio")
    if (row.study is None) == study:
        command = "compare" if row.study is None else "run"
        raise InputError(f"{row.id} is resumed with: blklab {command} --resume {row.id}")
    return Left(
        row.id,
        packing.column(f"comparison {row.id}: setup", row.setup, dict[str, Any]),
        row.request,
        row.study_id,
    )
