"""Take comparisons out of the store."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import delete, select

from blklab.errors import InputError
from blklab.store import owner
from blklab.store.database import Store
from blklab.store.schema import COMPARISON, STUDY


def remove(store: Store, numbers: Sequence[int]) -> None:
    """All of them, with their runs, or none. InputError if one is not there or still runs."""
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
            if process := owner.alive(found[number].owner):
                raise InputError(f"{number} is being run by process {process}")
        connection.execute(delete(COMPARISON).where(COMPARISON.c.id.in_(numbers)))
        left = select(COMPARISON.c.study_id).where(COMPARISON.c.study_id.is_not(None))
        connection.execute(delete(STUDY).where(STUDY.c.id.not_in(left)))
