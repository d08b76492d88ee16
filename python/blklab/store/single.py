"""A single run, as ``blklab fio`` makes it, kept as a comparison of one scheduler with itself."""

from __future__ import annotations

import contextlib
import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from blklab.domain.comparison import Planned
from blklab.domain.measurement import measure
from blklab.domain.result import Result
from blklab.errors import StoreError
from blklab.store import owner, waiting
from blklab.store.facts import facts

if TYPE_CHECKING:
    from blklab.store.database import Store
    from blklab.store.place import Place


@dataclass(frozen=True)
class Single:
    """Where one run is going to be kept."""

    place: Place
    described: dict[str, Any]
    """What `blklab.experiment.describe` tells."""
    server: Store | None = None
    """The open store where it is no file."""

    def keep(
        self, planned: Planned, result: Result, begun_at: datetime, ended_at: datetime
    ) -> None:
        """Both times are UTC. StoreError or RunError, one line, if it cannot be kept."""
        document = _document(self.described, planned, result, begun_at, ended_at)
        if self.server is not None:
            from blklab.store import importing, packing

            one = waiting.parsed(packing.pack_json(document))
            importing.put(self.server, [one], elsewhere=False)
            return
        waiting.put(self.place, document, durable=self.described["rig"] != "sim")
        if len(waiting.files(self.place)) % waiting.MANY == 0:
            from blklab.store.opening import open_store

            # It is stored; the next command that opens the store reports its problem.
            with contextlib.suppress(StoreError):
                open_store(self.place).close()


def _document(
    described: dict[str, Any],
    planned: Planned,
    result: Result,
    begun_at: datetime,
    ended_at: datetime,
) -> dict[str, Any]:
    """What `blklab.store.document.ComparisonDocument` is in JSON; without its class, whose making
    takes longer than to write it."""
    times = {
        "begun_at": begun_at.isoformat(timespec="milliseconds"),
        "ended_at": ended_at.isoformat(timespec="milliseconds"),
    }
    run = {
        "number": 0,
        **times,
        "measurement": measure(planned.experiment, result, repeat=0),
        "device_before": result.device_before,
        "device_after": result.device_after,
        "raw": result.raw,
    }
    return {
        "uid": uuid.uuid4().hex,
        **times,
        "rig": described["rig"],
        "machine": owner.machine(),
        "objective": "both",
        "planned": 1,
        "setup": described,
        "facts": facts(described["rig"]),
        "runs": [run],
    }
