"""The place of the store: a file of SQLite, or the URL of a database."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from blklab.base import homes
from blklab.errors import InputError

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

VARIABLE = "BLKLAB_STORE"
_KINDS = ("sqlite", "postgresql+psycopg")


@dataclass(frozen=True)
class StorePlace:
    """A store that need not exist yet."""

    text: str
    """For display: the file, or the URL without its password."""
    file: Path | None
    """The file; None for a server."""
    chosen: bool
    """Whether the user named it."""
    server: URL | None = None
    """The URL; None for a file."""

    @property
    def url(self) -> URL:
        """For SQLAlchemy, which takes longer to load than a short run."""
        from sqlalchemy.engine import URL

        return self.server or URL.create("sqlite", database=str(self.file))


def find(given: str | None = None) -> StorePlace:
    """`given`, else ``$BLKLAB_STORE``, else ``blklab/results.db`` below ``$XDG_DATA_HOME`` or
    ``~/.local/share``. NoHomeError if there is no such place; InputError if it is neither a path
    nor the URL of a database we know."""
    named = given or os.environ.get(VARIABLE)
    if named is None or not named:
        return _file(homes.data() / "blklab/results.db", chosen=False)
    if "://" not in named:
        return _file(homes.expanded(named), chosen=True)
    return _url(named, "--store" if given else VARIABLE)


def _file(path: Path, *, chosen: bool) -> StorePlace:
    if path.is_dir():
        raise InputError(f"{path}: is a directory; a store is a file in it: {path / 'results.db'}")
    if path.exists() and not path.is_file():
        # SQLite would wait for ever for data from a pipe.
        raise InputError(f"{path}: not a regular file; a store is a file of SQLite, or a URL")
    return StorePlace(str(path), path, chosen)


def _url(text: str, option: str) -> StorePlace:
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        url = make_url(text)
    except (ArgumentError, ValueError) as error:
        # Not the text itself: it may hold a password.
        raise InputError(
            f"{option}: not the URL of a database; expected postgresql+psycopg://USER@HOST/NAME, "
            "or a file"
        ) from error
    if url.drivername == "postgresql":
        url = url.set(drivername="postgresql+psycopg")
    if url.drivername not in _KINDS:
        raise InputError(
            f"{option}: no store on '{url.drivername}'; there is: a file, {', '.join(_KINDS)}"
        )
    if url.drivername == "sqlite":
        if url.query or not url.database or url.database.startswith(("file:", ":memory:")):
            raise InputError(f"{option}: of sqlite a file is expected: sqlite:////path/results.db")
        return _file(Path(url.database), chosen=True)
    return StorePlace(url.render_as_string(hide_password=True), None, chosen=True, server=url)
