"""The store for commands that look at what is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from blklab.cli import console
from blklab.store import place

if TYPE_CHECKING:
    from blklab.store.database import Store


def opened(store: str | None) -> Store:
    """StoreError, one line, if there is none or if it cannot be used."""
    from blklab.store.opening import open_store

    return open_store(place.find(store), make=False, tell=console.print_note)
