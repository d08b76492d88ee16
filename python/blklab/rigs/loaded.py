"""Recordings in memory, for the rigs that replay them."""

from __future__ import annotations

import dataclasses
import threading

from blklab import _core
from blklab.domain import recordings


class LoadedRecordings:
    """The recordings of a rig, each read once for all of its runs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loaded: dict[recordings.Replay, _core.Recording] = {}

    def of(self, replay: recordings.Replay) -> _core.Recording:
        """InputError as of `recordings.load`."""
        # What is read does not depend on how it is replayed.
        key = dataclasses.replace(replay, way="open", fit="refuse")
        with self._lock:
            if key not in self._loaded:
                self._loaded[key] = recordings.load(key)
            return self._loaded[key]
