"""Find a disk or a workload: a path, the user's own, or one that ships with blklab."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from blklab.errors import InputError, nearest

_CHARACTERS_MAX = 16 << 20
"""Disks and job files are some kilobytes."""


@dataclass(frozen=True)
class Entry:
    """A file that was found: its name, where it lies and what is in it."""

    name: str
    path: Path
    text: str


@dataclass(frozen=True)
class Catalogue:
    """One kind of file, by name."""

    kind: str
    """For messages: ``disk`` or ``workload``."""
    suffix: str
    """With its dot."""
    packaged: Path
    """The directory that ships with blklab."""
    variable: str
    """Environment variable naming a further directory, searched first."""

    def directories(self) -> list[Path]:
        """Where names are looked up; the first that has the name wins."""
        own = os.environ.get(self.variable)
        data = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
        places = [Path(own).expanduser()] if own else []
        places.append(Path(data).expanduser() / "blklab" / self.packaged.name)
        return [*places, self.packaged]

    def paths(self) -> dict[str, Path]:
        """Every file by name, sorted by name."""
        found: dict[str, Path] = {}
        for directory in self.directories():
            for path in self._files(directory):
                found.setdefault(path.stem, path)
        return dict(sorted(found.items()))

    def find(self, what: str) -> Entry:
        """The file of that name or at that path. InputError if there is none."""
        if what.endswith(self.suffix) or os.sep in what:
            return self.read(Path(what).expanduser())
        paths = self.paths()
        if what not in paths:
            raise InputError(f"no {self.kind} '{what}'{nearest(what, paths)}")
        return self.read(paths[what])

    def read(self, path: Path) -> Entry:
        """The file at `path`. InputError if it cannot be read as text."""
        try:
            with path.open(encoding="utf-8") as file:
                # A device or a pipe has no size to ask for, and may have no end.
                text = file.read(_CHARACTERS_MAX + 1)
            if len(text) > _CHARACTERS_MAX:
                raise InputError(
                    f"{path}: more than {_CHARACTERS_MAX} characters are no {self.kind}"
                )
            return Entry(path.stem, path, text)
        except UnicodeDecodeError as error:
            raise InputError(f"{path}: not a text file ({error.reason})") from error
        except OSError as error:
            raise InputError(f"{path}: {error.strerror or error}") from error

    def _files(self, directory: Path) -> Iterator[Path]:
        try:
            yield from sorted(directory.glob(f"*{self.suffix}"))
        except PermissionError:
            # Somebody else's home, as under sudo -u: what ships is there all the same.
            return
        except OSError as error:
            raise InputError(f"{directory}: {error.strerror or error}") from error
