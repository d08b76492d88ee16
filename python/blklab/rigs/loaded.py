"""Recordings in memory, for the rigs that replay them."""

from __future__ import annotations

import threading

from blklab import _core
from blklab.base.catalogue import Entry
from blklab.domain import recordings


class LoadedRecordings:
    """The recordings of a rig, each read once for all of its runs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loaded: dict[recordings.Replay, _core.Recording] = {}

    def of(self, replay: recordings.Replay) -> _core.Recording:
        """InputError as of `recordings.load`."""
        with self._lock:
            if replay.part not in self._loaded:
                self._loaded[replay.part] = recordings.load(replay.part)
            return self._loaded[replay.part]

    def replays(self, workload: Entry) -> list[_core.Replay]:
        """The workload's recordings, and how each is replayed. InputError as of
        `recordings.load`."""
        return [
            _core.Replay(
                self.of(one),
                one.way,
                one.fit,
                speed=one.speed_millionths,
                loops=one.loops,
                length_ns=one.length_ns,
                cgroups=None if one.cgroups == "none" else list(one.weights),
                label=label,
            )
            for label, one in recordings.labelled(workload)
        ]
