"""Runs by the hash of what they are: each is made once, and made twice it gives the same bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, TypeVar

from sqlalchemy import Connection, select

from blklab.base import plain
from blklab.domain.measurement import Measurement
from blklab.errors import RunError
from blklab.store import read
from blklab.store.schema import RUN, RUN_KEY

_AT_ONCE = 500
"""Keys in a statement: SQLite takes some thousand variables."""
_Row = TypeVar("_Row")


class OtherFiguresError(RunError):
    """A run has another one's key and other figures."""

    def __init__(self, message: str, number: int = 0) -> None:
        super().__init__(message)
        self.number = number
        """The run's."""


def insert(
    connection: Connection, comparison: int, runs: Mapping[int, tuple[str, Measurement]]
) -> None:
    """Note the keys of stored runs, by number. OtherFiguresError if a run of such a key has other
    bytes."""
    rows: list[dict[str, Any]] = [
        {
            "comparison_id": comparison,
            "number": number,
            "key": key,
            "digest": sha256(plain.encode(measured)).hexdigest(),
        }
        for number, (key, measured) in runs.items()
    ]
    for some in _some(rows):
        connection.execute(RUN_KEY.insert(), some)
        _check(connection, {row["key"]: row for row in some})


def _check(connection: Connection, rows: Mapping[str, Mapping[str, Any]]) -> None:
    """All runs of these keys have the same bytes."""
    for other in connection.execute(select(RUN_KEY).where(RUN_KEY.c.key.in_(list(rows)))):
        row = rows[other.key]
        if other.digest != row["digest"]:
            raise OtherFiguresError(
                f"run {row['number']} of comparison {row['comparison_id']} is that of comparison "
                f"{other.comparison_id}, run {other.number}, and has other figures: an error in "
                "blklab or in a machine; please report it",
                row["number"],
            )


def take_over(
    connection: Connection, comparison: int, keys: Mapping[int, str]
) -> dict[int, Measurement]:
    """Store the runs of these keys, by number, as runs of this comparison too, as far as any
    comparison has them; returns their figures."""
    found: dict[int, Measurement] = {}
    numbers = {key: number for number, key in keys.items()}
    for some in _some(list(numbers)):
        rows = connection.execute(
            select(RUN, RUN_KEY.c.key, RUN_KEY.c.digest)
            .join(RUN_KEY)
            .where(RUN_KEY.c.key.in_(some), RUN_KEY.c.comparison_id != comparison)
        ).mappings()
        for row in rows:
            number = numbers[row["key"]]
            if number in found:
                continue
            own = {"comparison_id": comparison, "number": number}
            found[number] = read.measurement(f"run {number}: measurement", row["measurement"])
            kept = {name: row[name] for name in RUN.c.keys()}  # noqa: SIM118
            connection.execute(RUN.insert().values(**(kept | own)))
            connection.execute(RUN_KEY.insert().values(key=row["key"], digest=row["digest"], **own))
    return found


def _some(rows: Sequence[_Row]) -> Iterator[Sequence[_Row]]:
    for start in range(0, len(rows), _AT_ONCE):
        yield rows[start : start + _AT_ONCE]
