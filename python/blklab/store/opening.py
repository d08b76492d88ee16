"""Open the store, and import the single runs that wait for it."""

from __future__ import annotations

from collections.abc import Callable

from blklab.store import single
from blklab.store.database import Store, open_database
from blklab.store.place import StorePlace


def exists(place: StorePlace) -> bool:
    """Whether the store may have data; a server is not queried."""
    return place.file is None or place.file.exists() or bool(single.files(place))


def open_store(
    place: StorePlace,
    *,
    durable: bool = False,
    make: bool = True,
    tell: Callable[[str], None] = lambda _: None,
) -> Store:
    """As `open_database`, and import the waiting runs; `tell` receives a line for each failure.
    StoreError."""
    there = single.files(place)
    # A run must be safely stored before its file is removed.
    store = open_database(place, durable=durable or bool(there), make=make or bool(there))
    if there:
        for line in single.take_in(store, there):
            tell(line)
    return store
