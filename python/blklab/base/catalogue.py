"""Find a disk or a workload: a path, the user's own, or one shipped with blklab."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from blklab.base import homes
from blklab.base.files import text_content
from blklab.base.text import shown, utf8
from blklab.errors import InputError, unknown

_BYTES_MAX = 16 << 20
"""Disks and job files are some kilobytes."""


@dataclass(frozen=True)
class Entry:
    """A found file: its name, its path and its text."""

    name: str
    path: Path
    """For a file in the core: its name with the suffix."""
    text: str
    in_core: bool = False
    """It ships inside the core: there is no file at `path`."""
    kind: Literal["file", "program", "recording"] = "file"
    """A workload can be a real program, or recorded I/O: then `text` holds what it is and its
    parameters."""
    beside: tuple[Entry, ...] = ()
    """Further recordings that are replayed at the same time on the same disk."""

    @property
    def place(self) -> str:
        """The file's path, for messages and for the core."""
        return utf8(str(self.path))


@dataclass(frozen=True)
class Catalogue:
    """One kind of file, by name."""

    kind: str
    """For messages: ``disk`` or ``workload``."""
    suffix: str
    """With its dot."""
    packaged: Path
    """The directory shipped with blklab; the user's own has its name."""
    variable: str
    """Environment variable naming a further directory, searched first."""
    in_core: Mapping[str, str] = field(default_factory=dict)
    """Texts that ship inside the core, by name."""

    def directories(self) -> list[Path]:
        """The directories of names; the first that has the name wins."""
        own = os.environ.get(self.variable)
        places = [homes.expanded(own)] if own else []
        # Without a home directory, only the shipped files.
        with contextlib.suppress(homes.NoHomeError):
            places.append(homes.data() / "blklab" / self.packaged.name)
        return [*places, self.packaged]

    def paths(self) -> dict[str, Path]:
        """Every file by name, sorted by name."""
        found: dict[str, Path] = {}
        for directory in self.directories():
            for path in self._files(directory):
                found.setdefault(path.stem, path)
        return dict(sorted(found.items()))

    def names(self) -> list[str]:
        """All names, sorted."""
        return sorted({*self.paths(), *self.in_core})

    def find(self, what: str) -> Entry:
        """The file of that name or at that path. InputError if there is none."""
        if "\0" in what:
            raise InputError(f"no {self.kind} '{what}': no file's name has a NUL")
        if what.endswith(self.suffix) or os.sep in what:
            return self.read(homes.expanded(what))
        paths = self.paths()
        if what in paths:
            return self.read(paths[what])
        if what in self.in_core:
            return Entry(what, Path(what + self.suffix), self.in_core[what], in_core=True)
        raise unknown(f"no {self.kind} '{what}'", what, {*paths, *self.in_core})

    def read(self, path: Path) -> Entry:
        """The file at `path`. InputError if it cannot be read as text."""
        text = text_content(path, _BYTES_MAX, f"a {self.kind}")
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        return Entry(shown(path.stem), path, text)

    def _files(self, directory: Path) -> Iterator[Path]:
        try:
            yield from sorted(directory.glob(f"*{self.suffix}"))
        except PermissionError:
            # Another user's home, as under sudo -u: the shipped files are still there.
            return
        except OSError as error:
            raise InputError(f"{directory}: {error.strerror or error}") from error
