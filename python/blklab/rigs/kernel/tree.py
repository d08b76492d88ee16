"""The build tree: a source's files with patches applied, stored between builds. make compares
times, so only files with changed bytes may get a new time.

The tree therefore follows its source file by file: hard links to an unpacked source in the cache,
copies of a user's own files. A write replaces a file and never changes it in place, so that the
other end of a link stays unchanged.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from blklab.base.files import write_whole
from blklab.rigs.kernel.source import Source

_Stamp = tuple[int, int]


@dataclass(frozen=True)
class _Note:
    """The recorded state of a tree."""

    files: dict[str, _Stamp] = field(default_factory=dict)
    patched: list[str] = field(default_factory=list)


class Tree:
    """A tree at `top`; its state is recorded in the file `note`. Needs its lock."""

    def __init__(self, top: Path, note: Path) -> None:
        self.top = top
        self._note = note
        try:
            row = msgspec.json.decode(note.read_bytes(), type=_Note)
        except (OSError, msgspec.MsgspecError, UnicodeError):
            # The state is unknown: every file is written again.
            row = _Note()
        self._stamps: dict[str, _Stamp] = dict(row.files)
        self._patched: set[str] = set(row.patched)

    def follow(
        self,
        source: Source,
        files: Mapping[str, os.stat_result],
        patched: Mapping[str, bytes | None],
    ) -> list[str]:
        """Update the tree to `source` with the `patched` files; returns the changed names.

        After an interruption, the next call completes the update.
        """
        stamps = {name: (found.st_size, found.st_mtime_ns) for name, found in files.items()}
        stale = {name for name, stamp in stamps.items() if self._stamps.get(name) != stamp}
        # First record the uncertain files, then write the files, then record the new state.
        unsure = stale | self._patched | set(patched)
        self._stamps = {name: s for name, s in self._stamps.items() if name not in unsure}
        gone = self._stamps.keys() - stamps.keys()
        if unsure or gone:
            self._keep(self._stamps, self._patched | set(patched))
        changed = [name for name in sorted(unsure - set(patched) - gone) if name in stamps
                   and self._take(source, name)]  # fmt: skip
        removed = (gone | (self._patched - stamps.keys())) - set(patched)
        changed += [name for name in sorted(removed) if self._write(name, None)]
        changed += [name for name, text in patched.items() if self._write(name, text)]
        if unsure or gone:
            self._stamps = {name: s for name, s in stamps.items() if name not in patched}
            self._patched = set(patched)
            self._keep(self._stamps, self._patched)
        return changed

    def _take(self, source: Source, name: str) -> bool:
        origin, target = source.top / name, self.top / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_symlink() or origin.is_symlink():
            link = origin.readlink() if origin.is_symlink() else None
            if link is not None and target.is_symlink() and target.readlink() == link:
                return False
            target.unlink(missing_ok=True)
            if link is not None:
                target.symlink_to(link)
                return True
        if not target.exists() and not source.own:
            target.hardlink_to(origin)
            return True
        text = origin.read_bytes()
        executable = os.access(origin, os.X_OK)
        return self._write(name, text, executable)

    def _write(self, name: str, text: bytes | None, executable: bool | None = None) -> bool:
        """Replace the file if its bytes differ; None removes it. True if it changed."""
        target = self.top / name
        if text is None:
            was_there = target.exists()
            target.unlink(missing_ok=True)
            return was_there
        if target.is_file() and target.read_bytes() == text:
            return False
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(f".{target.name}.blklab")
        partial.write_bytes(text)
        if executable if executable is not None else os.access(target, os.X_OK):
            partial.chmod(0o755)
        elif target.is_file():
            shutil.copymode(target, partial)
        partial.replace(target)
        return True

    def _keep(self, stamps: Mapping[str, _Stamp], patched: set[str]) -> None:
        row = {"files": stamps, "patched": sorted(patched)}
        write_whole(self._note, json.dumps(row))
