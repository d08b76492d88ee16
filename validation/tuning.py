"""The search of ``blklab tune`` against the true optimum of spaces that can be enumerated.

``python -m validation.tuning --enumerate`` runs every setting of ten spaces once, some ten minutes,
and keeps the best of each in ``docs/data/tuning.json``. ``python -m validation.tuning`` searches
each space with at most one setting in twenty and exits with 1 unless the search comes within 1 % of
the optimum in nine of ten.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blklab.base.catalogue import Entry
from blklab.base.limits import JOBS_DEFAULT
from blklab.domain import defaults, specs
from blklab.domain.experiment import SchedulerSpec
from blklab.domain.space import Space, spaces
from blklab.execute import Local
from blklab.rigs.sim import SimRig
from blklab.tuning import goal
from blklab.tuning.bench import Bench, Question
from blklab.tuning.search import search
from blklab.tuning.tried import Tried

DATA = Path(__file__).resolve().parents[1] / "docs/data/tuning.json"
SHARE = 0.05
"""The part of the settings that a search may try."""
NEAR = math.log(1.01)
NEEDED = 0.9
"""The part of the spaces in which it must come that near."""
_SEED = 1
_CHUNK = 200
_ROUNDING = 1e-9
_BESIDE = """[global]
direct=1
size=512m
runtime=300ms
time_based
[reader]
rw=randread
bs=4k
[writer]
rw=randwrite
bs=64k
ioengine=libaio
iodepth=32
"""
_STREAMS = """[global]
size=512m
runtime=300ms
time_based
[stream]
rw=read
bs=128k
[log]
direct=1
rw=write
bs=16k
ioengine=libaio
iodepth=8
[random]
direct=1
rw=randread
bs=8k
ioengine=libaio
iodepth=4
"""
LOADS = {"reader beside writer": _BESIDE, "stream, log, random": _STREAMS}
KNOBS = {
    "mq-deadline": ("writes_starved", "fifo_batch", "nr_requests", "max_sectors_kb"),
    "kyber": ("read_lat_nsec", "write_lat_nsec", "nr_requests", "max_sectors_kb"),
    "bfq": ("slice_idle", "low_latency", "strict_guarantees", "timeout_sync", "nr_requests"),
}
PLACES = (
    ("wd10ezrx", "mq-deadline"),
    ("desktop-5900rpm", "bfq"),
    ("sas-10k", "mq-deadline"),
    ("su800-128gb", "bfq"),
    ("950pro-256gb", "kyber"),
)


@dataclass(frozen=True)
class Pair:
    """A disk and a load, and the space that is searched for them."""

    disk: str
    load: str
    space: Space

    def bench(self) -> Bench:
        """A bench without runs."""
        rig = SimRig()
        disk = specs.disk(self.disk)
        question = Question(
            disk,
            (Entry(self.load, Path("load.fio"), LOADS[self.load]),),
            goal.parse("both"),
            SchedulerSpec(defaults.of_linux(disk)),
            _SEED,
            worst_case=False,
        )
        return Bench(question, rig, Local(JOBS_DEFAULT, rig), Tried(None, print))

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.space.name} on {self.disk}: {self.load}"


def pairs() -> list[Pair]:
    """All ten."""
    found = []
    for disk, scheduler in PLACES:
        [space] = spaces([SchedulerSpec(scheduler)])
        found += [Pair(disk, load, space.only(KNOBS[scheduler])) for load in LOADS]
    return found


def enumerated(pair: Pair) -> dict[str, Any]:
    """The best of all settings."""
    bench = pair.bench()
    every = list(pair.space.all())
    best, best_gain, begun = every[0], -math.inf, time.monotonic()
    for start in range(0, len(every), _CHUNK):
        chunk = every[start : start + _CHUNK]
        for spec, score in zip(chunk, bench.scores(chunk), strict=True):
            if score is not None and score.gains[0] > best_gain:
                best, best_gain = spec, score.gains[0]
        bench.forget()
    print(f"{pair.name}: {len(every):,} settings in {time.monotonic() - begun:.0f} s", flush=True)
    return {
        "disk": pair.disk,
        "load": pair.load,
        "scheduler": pair.space.name,
        "points": len(every),
        "best": best.text,
        "gain": best_gain,
    }


def searched(pair: Pair, row: dict[str, Any]) -> dict[str, Any]:
    """`row` with what a search finds. SystemExit if the optimum is not what it was."""
    bench = pair.bench()
    [now] = bench.scores([specs.scheduler(row["best"])])
    if now is None or abs(now.gains[0] - row["gain"]) > _ROUNDING:
        sys.exit(f"{pair.name}: the simulator has changed; run again with --enumerate")
    allowed = int(SHARE * row["points"])
    # What the defaults and the screening take, and the last step.
    others = 1 + 6 * len(pair.space.knobs) + 3 * len(pair.space.knobs)
    found = search(pair.bench(), [pair.space], allowed - others, _SEED)
    spec, score = found.best[0]
    return {
        **row,
        "found": spec.text,
        "found_gain": score.gains[0],
        "tried": found.trials,
        "regret": math.exp(row["gain"] - score.gains[0]) - 1.0,
    }


def main() -> None:
    """Both steps."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--enumerate", action="store_true", help="find the optima again")
    asked = parser.parse_args()
    every = pairs()
    if asked.enumerate:
        rows = [enumerated(pair) for pair in every]
    else:
        rows = json.loads(DATA.read_text())["rows"]
    rows = [searched(pair, row) for pair, row in zip(every, rows, strict=True)]
    DATA.write_text(json.dumps({"share": SHARE, "rows": rows}, indent=1) + "\n")
    near = 0
    for pair, row in zip(every, rows, strict=True):
        is_near = math.log1p(row["regret"]) <= NEAR and row["tried"] <= SHARE * row["points"]
        near += is_near
        print(
            f"{'ok  ' if is_near else 'MISS'} {pair.name}: {row['regret']:.2%} from the optimum, "
            f"{row['tried']} of {row['points']:,} settings tried"
        )
    print(f"within 1 % in {near} of {len(rows)}")
    sys.exit(near < NEEDED * len(rows))


if __name__ == "__main__":
    main()
