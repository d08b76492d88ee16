"""An open database: created, upgraded, every error in one line."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, select, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from blklab.errors import StoreError
from blklab.store import schema
from blklab.store.packing import DamagedError
from blklab.store.place import StorePlace

_WAIT_S = 5.0
"""The time to wait for another writing process: a transaction of ours takes milliseconds."""
_LOCK = 0x626C6B6C
"""The number of PostgreSQL's advisory lock for creating tables: chosen arbitrarily."""
_REASONS = {
    "database is locked": "locked by another process",
    "file is not a database": "not a store of blklab, or damaged",
    "database disk image is malformed": "damaged",
    "readonly database": "may not be written",
    "database or disk is full": "no space left on the device",
    "disk i/o error": "cannot be read or written (disk I/O error)",
    "unable to open": "cannot be opened",
}
"""SQLite's texts, and blklab's messages."""

_ERRORS = (SQLAlchemyError, DamagedError, UnicodeError, OSError)
"""Errors of an unusable database."""


class Store:
    """An open store. Used from one thread; its connections end with it, closed or not."""

    def __init__(self, place: StorePlace, engine: Engine) -> None:
        self.place = place
        self._engine = engine
        # If only the garbage collector closed a connection to a server, it would warn about it.
        weakref.finalize(self, engine.dispose)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that sees one state. StoreError."""
        with self._telling(), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction: all or nothing. StoreError."""
        with self._telling(), self._engine.connect() as made:
            connection = made.execution_options(blklab_writes=True)
            with connection.begin():
                yield connection

    def close(self) -> None:
        """Optional: without it, nothing is lost."""
        with self._telling():
            self._engine.dispose()

    @contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except _ERRORS as error:
            raise wrong(self.place, error) from error


def wrong(place: StorePlace, error: Exception) -> StoreError:
    """The error at that store, in one line."""
    if isinstance(error, (DamagedError, UnicodeError)):
        return StoreError(f"{place.text}: damaged: {error}")
    found = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    said = " ".join(str(found).split()) or type(found).__name__
    known = (mine for theirs, mine in _REASONS.items() if theirs in said.lower())
    reason = next(known, said) if place.file else said
    return StoreError(f"{place.text}: {reason}")


def open_database(place: StorePlace, *, durable: bool = False, make: bool = True) -> Store:
    """Open the store, create it if necessary (unless `make` is false), and upgrade it.

    With `durable`, each write is on the disk when the call returns; without, a power cut may lose
    the last runs (a kill loses nothing, and older runs are safe). StoreError.
    """
    try:
        if place.file is not None and make:
            place.file.parent.mkdir(parents=True, exist_ok=True)
        if place.file is not None and not make and not place.file.exists():
            raise FileNotFoundError("no store there yet")
        store = Store(place, _engine(place, durable))
        try:
            _bring_up_to_date(store)
        except BaseException:
            # Its connection would stay open for as long as the error object exists.
            store.close()
            raise
    except _ERRORS as error:
        reason = error.strerror or str(error) if isinstance(error, OSError) else None
        raise StoreError(f"{place.text}: {reason}") if reason else wrong(place, error) from error
    except ImportError as error:
        raise StoreError(
            f"{place.text}: psycopg is not installed: pip install 'blklab[postgresql]'"
        ) from error
    return store


def _engine(place: StorePlace, durable: bool) -> Engine:
    if place.file is None:
        return create_engine(place.url, connect_args={"connect_timeout": int(_WAIT_S)})
    file = place.file.absolute()
    writable = os.access(file if file.exists() else file.parent, os.W_OK)
    if writable:
        return _prepared(create_engine(place.url, connect_args={"timeout": _WAIT_S}), durable)
    # With a log beside the file, another process may be writing. Without one nothing changes, and
    # SQLite need not create files there, for which it may have no permission.
    log = file.with_name(file.name + "-wal")
    still = {} if log.exists() else {"immutable": "1"}
    url = URL.create(
        "sqlite", database=f"file:{quote(str(file))}", query={"mode": "ro", "uri": "true"} | still
    )
    return _prepared(create_engine(url, connect_args={"timeout": _WAIT_S}), durable)


def _prepared(engine: Engine, durable: bool) -> Engine:
    """We begin transactions ourselves: Python's module would create tables outside them."""

    @event.listens_for(engine, "connect")
    def connect(connection: Any, _: Any) -> None:
        connection.isolation_level = None
        for pragma in ("foreign_keys=ON", f"synchronous={'FULL' if durable else 'NORMAL'}"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("blklab_writes")
        # A transaction that reads before it writes must not be overtaken in between.
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _bring_up_to_date(store: Store) -> None:
    with store.reading() as connection:
        version = _version(store, connection)
    if version == schema.VERSION:
        return
    if version is None and store.place.file is not None:
        _use_a_log(store)
    with store.writing() as connection:
        if store.place.file is None:
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        # Another process may have created them meanwhile.
        version = _version(store, connection)
        if version is None:
            schema.METADATA.create_all(connection)
            connection.execute(schema.MARK.insert().values(version=schema.VERSION))
            return
        for wanted in range(version + 1, schema.VERSION + 1):
            schema.STEPS[wanted](connection)
        connection.execute(schema.MARK.update().values(version=schema.VERSION))


def _version(store: Store, connection: Connection) -> int | None:
    """The store's version; None for an empty database. StoreError if it is not blklab's, or of a
    newer blklab."""
    tables = inspect(connection).get_table_names()
    if schema.MARK.name not in tables:
        if tables:
            raise StoreError(
                f"{store.place.text}: a database, but not a store of blklab: it has "
                f"'{min(tables)}' and no '{schema.MARK.name}'"
            )
        return None
    version = connection.execute(select(schema.MARK.c.version)).scalar()
    if not isinstance(version, int) or version < 1:
        raise StoreError(f"{store.place.text}: damaged: its version is {version!r}")
    if version > schema.VERSION:
        raise StoreError(
            f"{store.place.text}: of version {version}, made by a newer blklab; this one knows "
            f"up to version {schema.VERSION}"
        )
    return version


def _use_a_log(store: Store) -> None:
    """Write-ahead logging: readers do not wait for writers. The file keeps this setting."""
    with store._telling(), store._engine.connect() as connection:
        raw = connection.connection.driver_connection
        assert raw is not None, "it is connected"
        raw.execute("PRAGMA journal_mode=WAL")
