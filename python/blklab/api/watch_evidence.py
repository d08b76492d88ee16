"""Evidence for `blklab.watch`: a sample of the disk's requests, stored comparisons, or a quick
simulation."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from blklab.api.compare import Objective, compare
from blklab.api.record import described_disk
from blklab.api.traces import read_trace
from blklab.api.whatif import DRAWS, recording_entry, replays
from blklab.api.whatif import Load as ReplayedLoad
from blklab.base import scratch
from blklab.base.journal import Journal, default_directory
from blklab.base.signals import Signals
from blklab.domain import core, specs
from blklab.domain.recordings import WAYS
from blklab.domain.scheduler import in_core
from blklab.errors import BlklabError, InputError
from blklab.rigs import find_disk
from blklab.rigs.live import recording
from blklab.rigs.sim import SimRig
from blklab.watching import kept
from blklab.watching.evidence import Evidence, Figures
from blklab.watching.kinds import Seen
from blklab.watching.load import Load

_SAMPLE_S = 30.0
_SAMPLE_LEAST_S = 0.2
_SAMPLE_IOS = 20_000
"""A replay under all schedulers, in all ways and on all drawn disks then takes about a second of
CPU."""
_SAMPLE_IOS_LEAST = 200
"""With fewer, the 99th percentile is that of two I/Os."""
REPEATS = 10
"""How often a comparison is simulated."""


@dataclass(frozen=True)
class Sources:
    """Where the evidence about one disk comes from."""

    disk: str
    """The kernel's name."""
    disk_id: str
    """Its full id, by which live comparisons name it."""
    model: str
    """The disk model that stands for it."""
    drawn: bool
    """Whether the model only has its kind: see `kept.Wanted`."""
    objective: str
    store: str | None
    sample: bool
    """Whether its requests may be recorded."""
    signals: Signals
    tell: Callable[[str], None]
    """Receives a line for each unexpected finding."""
    told: list[str] = field(default_factory=list)
    """Leftovers of other processes that a recording has removed, a line each."""

    def about(self, seen: Seen, load: Load, schedulers: Sequence[str]) -> Evidence:
        """The evidence about such a load under these schedulers, as on the command line, the
        present one first. Where replays of a sample contradict each other, the workload that stands
        for its kind decides.

        An answer without `Evidence.cases` says why there are none; no error ends a watch.
        """
        names = [name for name in dict.fromkeys(schedulers) if _is_simulated(name)]
        present = next(iter(schedulers))
        found, why = None, ""
        try:
            if self.sample:
                found, why = self._of_sample(load, names)
            decides = found is not None and found.decides(present)
            if not decides and seen.kind.workload is not None:
                found = self._of_kind(seen.kind.workload, names)
        except BlklabError as error:
            why = str(error)
        if found is not None:
            return found
        return Evidence("", {}, (), why_none=why or "no workload stands for it")

    def _of_sample(self, load: Load, names: list[str]) -> tuple[Evidence | None, str]:
        """The requests of some seconds, replayed; None with the reason if they are too few."""
        rate = max(load.requests_per_s, 1e-9)
        span_s = min(_SAMPLE_S, max(_SAMPLE_LEAST_S, _SAMPLE_IOS / rate))
        with scratch.directory("watch") as place:
            out = place / "sample.rec"
            journal = Journal(default_directory())
            with recording.recording(
                [described_disk(self.disk)], out, journal, self.signals, self.told
            ) as made:
                made.begin()
                try:
                    time.sleep(span_s)
                finally:
                    made.finish()
            if made.ios < _SAMPLE_IOS_LEAST:
                return None, f"a sample of {span_s:.3g} s has only {made.ios} I/Os"
            source = f"a sample of {span_s:.3g} s, {made.ios} I/Os, replayed on {self.model}"
            draws = DRAWS if self.drawn else 0
            found = of_recording(out, self.model, names, self.objective, source, draws=draws)
            return found, ""

    def _of_kind(self, workload: str, names: list[str]) -> Evidence | None:
        """A stored comparison of the workload, else a new one, which is stored."""
        wanted = kept.Wanted(workload, names, self.objective, self.disk_id, self.model, self.drawn)
        with contextlib.suppress(InputError):
            if found := kept.find(wanted, self.store, self.tell):
                return found
        ran = compare(
            disks=[self.model],
            workloads=[workload],
            schedulers=names,
            repeats=REPEATS,
            vary_disk=self.drawn,
            objective=cast(Objective, self.objective),
            keep=True,
            store=self.store,
            max_parallel=1,
        )
        stored = "" if ran.kept is None else f"comparison {ran.kept}, "
        short = workload.partition(":")[0]
        source = f"{stored}{short} on {self.model}, simulated now"
        return kept.of_results(ran.results, self.model, wanted, source)


def _is_simulated(scheduler: str) -> bool:
    try:
        in_core(specs.scheduler(scheduler))
    except InputError:
        return False
    return True


def of_recording(
    recorded: Path, model: str, names: Sequence[str], objective: str, source: str, *, draws: int
) -> Evidence:
    """The evidence of a recording that is replayed on a disk model in all ways, and inferred on
    `draws` disks drawn from the ranges of its estimates. InputError, RunError."""
    place = SimRig()
    disk = find_disk(place, model)
    every = [specs.scheduler(name) for name in names]
    entry = recording_entry(recorded, fit="scale")
    drawn = [core.drawn_disk(disk, 1 + number) for number in range(draws)]
    # Inferred is the last one, and the estimate.
    *others, inferred = WAYS
    cases = [
        (disk, inferred),
        *((disk, way) for way in others),
        *((one, inferred) for one in drawn),
    ]
    loads = [ReplayedLoad(entry, on, one, way) for on, way in cases for one in every]
    rows = replays(loads, place, seed=1, host=specs.host(["guest"]))
    found = [Figures(float(row.latency_ns) or math.nan, row.bytes_per_s) for row in rows]
    each = len(every)
    costs = [
        {name: one.cost(objective) for name, one in zip(names, found[at : at + each], strict=True)}
        for at in range(0, len(found), each)
    ]
    reading = read_trace(recorded)
    share = sum(one.sequential for one in reading.processes) / max(reading.count, 1)
    figures = dict(zip(names, found[:each], strict=True))
    return Evidence(source, figures, tuple(costs), sequential=share)
