"""Open the store, with the single runs that wait for it."""

from __future__ import annotations

from collections.abc import Callable

from blklab.store import single
from blklab.store.database import Store, open_database
from blklab.store.place import StorePlace


def exists(place: StorePlace) -> bool:
    """Whether there is anything; of a server that is not asked."""
    return place.file is None or place.file.exists() or bool(single.files(place))


def open_store(
    place: StorePlace,
    *,
    durable: bool = False,
    make: bool = True,
    tell: Callable[[str], None] = lambda _: None,
) -> Store:
    """As `open_database`, and take in what waits; `tell` is given a line for what cannot be.
    StoreError."""
    there = single.files(place)
    # Before its file goes, a run has to be in the store for good.
    store = open_database(place, durable=durable or bool(there), make=make or bool(there))
    if there:
        for line in single.take_in(store, there):
            tell(line)
    return store
