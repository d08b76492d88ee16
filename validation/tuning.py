"""The search of ``blklab tune`` against the true optimum of spaces that can be enumerated.

``python -m validation.tuning --enumerate`` runs every setting of ten spaces once, some ten minutes,
and keeps the best of each in ``docs/data/tuning.json``. ``python -m validation.tuning`` searches
each space at the cost of at most one setting in twenty and exits with 1 unless the search comes
within 1 % of the optimum in nine of ten. A search without short runs, at the same cost, is
beside it.

``python -m validation.tuning --confirmed``, some ten minutes, asks ``blklab.tune`` about shipped
loads on hard disks, with four seeds of the search each, and keeps what fresh seeds say of its
answers. It exits with 1 if one of these is not shown to be better.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import blklab
from blklab.base.catalogue import Entry
from blklab.base.limits import JOBS_DEFAULT
from blklab.domain import defaults, specs
from blklab.domain.experiment import SchedulerSpec
from blklab.domain.space import Space, spaces
from blklab.execute import Local
from blklab.experiment import statistics
from blklab.rigs.sim import SimRig
from blklab.tuning import goal
from blklab.tuning.bench import Bench, Question
from blklab.tuning.fidelity import SHARE, Fidelity, Levels
from blklab.tuning.search import search
from blklab.tuning.tried import Tried

DATA = Path(__file__).resolve().parents[1] / "docs/data/tuning.json"
PART = 0.05
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

ASKED = (
    ("sas-10k", "randrw-70", "p99"),
    ("desktop-5900rpm", "database-vs-backup", "both"),
    ("wd10ezrx", "randrw-60", "both"),
    ("wd10ezrx", "startup-vs-copy", "both"),
    ("desktop-5900rpm", "streams", "p99"),
    ("wd10ezrx", "oltp", "p99"),
)
"""Disk, load and objective of whole searches, where other settings are known to be better."""
_SEEDS = (1, 2, 3, 4)


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
    allowed = int(PART * row["points"])
    # What the defaults and the screening take, and the last step.
    others = 1 + 6 * len(pair.space.knobs) + 3 * len(pair.space.knobs)
    bench = pair.bench()
    short = Fidelity(lambda specs: bench.scores(specs, SHARE))
    found = search(bench, [pair.space], allowed - others, _SEED, Levels(short))
    whole = search(pair.bench(), [pair.space], allowed - others, _SEED)
    spec, score = found.best[0]
    return {
        **row,
        "found": spec.text,
        "found_gain": score.gains[0],
        "tried": math.ceil(found.cost),
        "regret": math.exp(row["gain"] - score.gains[0]) - 1.0,
        "short": found.short and asdict(found.short),
        "regret_whole": math.exp(row["gain"] - whole.best[0][1].gains[0]) - 1.0,
    }


def confirmed() -> list[dict[str, Any]]:
    """The answers of whole searches, with their gains on fresh seeds."""
    rows = []
    for disk, load, objective in ASKED:
        for seed in _SEEDS:
            found = blklab.tune(disk=disk, workloads=[load], objective=objective, seed=seed)
            rows.append(
                {
                    "disk": disk,
                    "load": load,
                    "objective": objective,
                    "seed": seed,
                    "best": found.best,
                    "gain": found.gain and asdict(found.gain),
                    "short": found.short and asdict(found.short),
                    "further": found.further and asdict(found.further),
                    "runs": found.runs,
                }
            )
            gain = 1.0 if found.gain is None else found.gain.estimate
            print(
                f"{disk}, {load}, {objective}, seed {seed}: {gain:.2f} times, {found.best}",
                flush=True,
            )
    return rows


def _gain(row: dict[str, Any]) -> float:
    return 1.0 if row["gain"] is None else float(row["gain"]["estimate"])


def _short_text(short: dict[str, Any] | None) -> str:
    if short is None:
        return "no short runs"
    tau = "unknown" if short["agreement"] is None else f"{short['agreement']:.2f}"
    used = f"{short['spared']} settings spared a whole run" if short["used"] else "not used"
    return f"short runs {used}, tau {tau}"


def main() -> None:
    """Both steps."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--enumerate", action="store_true", help="find the optima again")
    parser.add_argument("--confirmed", action="store_true", help="whole searches, on fresh seeds")
    asked = parser.parse_args()
    if asked.confirmed:
        begun = time.monotonic()
        document = json.loads(DATA.read_text()) | {"confirmed": (rows := confirmed())}
        DATA.write_text(json.dumps(document, indent=1) + "\n")
        gain = statistics.geometric_mean(list(map(_gain, rows)))
        short = sum(row["short"]["used"] for row in rows)
        print(
            f"{gain:.2f} times better on average, {(time.monotonic() - begun) / len(rows):.0f} s "
            f"each; short runs were used by {short} of {len(rows)} searches"
        )
        sys.exit(any(row["gain"] is None for row in rows))
    every = pairs()
    if asked.enumerate:
        rows = [enumerated(pair) for pair in every]
    else:
        rows = json.loads(DATA.read_text())["rows"]
    rows = [searched(pair, row) for pair, row in zip(every, rows, strict=True)]
    document = json.loads(DATA.read_text()) | {"share": PART, "rows": rows}
    DATA.write_text(json.dumps(document, indent=1) + "\n")
    near = 0
    for pair, row in zip(every, rows, strict=True):
        is_near = math.log1p(row["regret"]) <= NEAR and row["tried"] <= PART * row["points"]
        near += is_near
        print(
            f"{'ok  ' if is_near else 'MISS'} {pair.name}: {row['regret']:.2%} from the optimum, "
            f"{row['tried']} of {row['points']:,} runs; {_short_text(row['short'])}; "
            f"{row['regret_whole']:.2%} by whole runs alone"
        )
    print(f"within 1 % in {near} of {len(rows)}")
    sys.exit(near < NEEDED * len(rows))


if __name__ == "__main__":
    main()
