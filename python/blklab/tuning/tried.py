"""Runs that have been made, kept while a search goes on, so that it can be ended at any time.

A file of JSON lines beside the store, one for each run, appended when it ends: its hash
(of all inputs) and its figures. The same search takes its runs from there and comes to the same
place. A line cut short by a kill is left out, and the run is made again.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import msgspec

from blklab import _core


@dataclass(frozen=True)
class Run:
    """The figures of a run."""

    run: str
    """The hash of its task."""
    values: tuple[float | None, ...]
    """As `blklab.tuning.goal.Objective.values`."""
    jobs: tuple[str, ...] = ()
    """The names of its jobs, if there are several."""
    duration_ns: int = 0
    """The virtual time that it took."""


_DECODER = msgspec.json.Decoder(Run)


class Tried:
    """The kept runs of one search."""

    def __init__(self, path: Path | None, tell: Callable[[str], None]) -> None:
        self._path = path
        self._tell = tell
        self.runs: dict[str, Run] = {}
        """By the hash of the task."""
        if path is not None:
            self._read(path)

    @property
    def is_kept(self) -> bool:
        """Whether the runs are in a file."""
        return self._path is not None

    def keep(self, run: Run) -> None:
        """Append a run. If that fails, the search goes on without keeping, which is told once."""
        self.runs[run.run] = run
        if self._path is None:
            return
        line = msgspec.json.encode(run) + b"\n"
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a+b") as file:
                # After a line that a kill cut short.
                file.seek(0, os.SEEK_END)
                if file.tell():
                    file.seek(-1, os.SEEK_END)
                    line = line if file.read(1) == b"\n" else b"\n" + line
                file.write(line)
        except OSError as error:
            self._stop_keeping(self._path, error)

    def forget(self) -> None:
        """Remove the file: the search has its answer."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def _read(self, path: Path) -> None:
        try:
            lines = path.read_bytes().splitlines()
        except FileNotFoundError:
            return
        except OSError as error:
            self._stop_keeping(path, error)
            return
        for line in lines:
            try:
                run = _DECODER.decode(line)
            except msgspec.DecodeError:
                continue
            self.runs[run.run] = run

    def _stop_keeping(self, path: Path, error: OSError) -> None:
        self._tell(f"{path}: {error.strerror}: the search goes on, but is not kept")
        self._path = None


def of_search(question: str, directory: Path, tell: Callable[[str], None]) -> Tried:
    """The kept runs of a search, in a file of `directory`. `question` names the search; with
    another core its runs are others."""
    core = sha256(Path(_core.__file__).read_bytes()).hexdigest()
    name = sha256(f"{core} {question}".encode()).hexdigest()[:16]
    return Tried(directory / f"{name}.jsonl", tell)
