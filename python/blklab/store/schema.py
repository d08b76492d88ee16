"""The tables, their version, and the upgrade of a store from an earlier version.

A change of the tables is a step in `STEPS`; opening a store runs all steps that it lacks.
`tests/data/store-1.sql` and its successors are stores of earlier versions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
)

VERSION = 2

METADATA = MetaData()


class Blob(LargeBinary):
    """Bytes without conversion. From the integer 1,000,000, which an altered row of SQLite may hold
    instead of bytes, SQLAlchemy would make a million bytes; `blklab.store.packing` checks the
    type."""

    def result_processor(self, dialect: Any, coltype: Any) -> None:
        """None: no conversion."""


MARK = Table("blklab_store", METADATA, Column("version", Integer, nullable=False))
"""One row, which marks a database as a store of blklab."""

STUDY = Table(
    "study",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False),
    Column("begun_at", Text, nullable=False),
    Column("request", Blob, nullable=False),
    # Without this an id could be reused.
    sqlite_autoincrement=True,
)

COMPARISON = Table(
    "comparison",
    METADATA,
    Column("id", Integer, primary_key=True),
    # Stays the same when imported.
    Column("uid", Text, nullable=False, unique=True),
    # ISO 8601, UTC.
    Column("begun_at", Text, nullable=False),
    # Null until it is complete.
    Column("ended_at", Text),
    Column("imported_at", Text),
    Column("rig", Text, nullable=False),
    Column("machine", Text, nullable=False),
    Column("objective", Text, nullable=False),
    Column("planned", Integer, nullable=False),
    Column("study_id", ForeignKey("study.id", ondelete="SET NULL"), index=True),
    Column("study", Text),
    Column("part", Text),
    # `describe` in `blklab.experiment.describe`.
    Column("setup", Blob, nullable=False),
    # `blklab.store.origin`: versions, and the machine that ran it.
    Column("facts", Blob, nullable=False),
    # `blklab.store.request`: the data to resume it. Null if it was imported.
    Column("request", Blob),
    # `blklab.store.origin`: the process that runs it.
    Column("owner", Text),
    sqlite_autoincrement=True,
)

AXIS = Table(
    "axis",
    METADATA,
    Column("comparison_id", ForeignKey("comparison.id", ondelete="CASCADE"), primary_key=True),
    # disk, workload or scheduler.
    Column("kind", Text, primary_key=True),
    Column("place", Integer, primary_key=True),
    Column("label", Text, nullable=False),
)

RUN = Table(
    "run",
    METADATA,
    Column("comparison_id", ForeignKey("comparison.id", ondelete="CASCADE"), primary_key=True),
    # In the order of the plan, from 0.
    Column("number", Integer, primary_key=True),
    Column("disk", Text, nullable=False),
    Column("workload", Text, nullable=False),
    Column("scheduler", Text, nullable=False),
    Column("repeat", Integer, nullable=False),
    # 64 bits unsigned, which SQL integers do not support.
    Column("seed", Text, nullable=False),
    Column("begun_at", Text, nullable=False),
    Column("ended_at", Text, nullable=False),
    Column("duration_ns", BigInteger, nullable=False),
    Column("bytes_per_s", Float(53), nullable=False),
    Column("ios_per_s", Float(53), nullable=False),
    # `Measurement`, with its histograms.
    Column("measurement", Blob, nullable=False),
    # The rig's record of the device: its settings and state.
    Column("device_before", Blob),
    Column("device_after", Blob),
)

RAW = Table(
    "raw",
    METADATA,
    Column("comparison_id", Integer, primary_key=True),
    Column("number", Integer, primary_key=True),
    # `fio.json`, ...
    Column("name", Text, primary_key=True),
    Column("body", Blob, nullable=False),
    ForeignKeyConstraint(
        ["comparison_id", "number"], ["run.comparison_id", "run.number"], ondelete="CASCADE"
    ),
)

RUN_KEY = Table(
    "run_key",
    METADATA,
    Column("comparison_id", Integer, primary_key=True),
    Column("number", Integer, primary_key=True),
    # `blklab.execute.identity`: the hash of the code and of all inputs. Only runs that are the same
    # to the byte each time have one.
    Column("key", Text, nullable=False, index=True),
    # SHA-256 of the measurement.
    Column("digest", Text, nullable=False),
    ForeignKeyConstraint(
        ["comparison_id", "number"], ["run.comparison_id", "run.number"], ondelete="CASCADE"
    ),
)

STEPS: Mapping[int, Callable[[Connection], None]] = {2: RUN_KEY.create}
"""The upgrade steps, by the version that each produces."""
