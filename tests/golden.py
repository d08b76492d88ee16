"""Stored hashes of the simulator's results: they show that a change of the code has changed no
result.

``python -m tests.golden`` simulates every case again and exits 1 if one differs; `--scheduler`
selects the cases of one scheduler, `--sample` a number of cases, drawn by `--seed`; `--write`
stores the new hashes after an intended change (with `--scheduler`, of its cases only). The cases:
each shipped load on each disk under each scheduler; each tunable at two drawn values; mixtures of
processes drawn by seed, with settings and hosts drawn too.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import math
import random
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from blklab import _core
from blklab.base.catalogue import Entry
from blklab.disks import DISKS
from blklab.domain import specs
from blklab.domain.core import environment, schedulers
from blklab.domain.experiment import Experiment, Window
from blklab.domain.result import Levels, PercentileSeries
from blklab.errors import BlklabError
from blklab.rigs.sim import SimRig
from blklab.workloads import WORKLOADS
from tests.random_jobs import job_file

KEPT = Path(__file__).parent / "data/golden.txt"
"""A line for each case: its hash and its label."""
_TUNED_ON = (("wd10ezrx", "desktop"), ("su800-128gb", "oltp"))
"""Disks and workloads for the cases of single tunables."""
_RANDOM = 240
_LATER = {"cfq-2008": 30}
"""Schedulers that came after those mixtures were drawn, and how many mixtures of its own each has:
drawn among the others, it would change all of their cases."""
_LATER_DISKS = ("mx200-250gb", "spinpoint-f1")
"""Disks that came after the mixtures were drawn: they are not among those drawn."""
_IDEAL = "constant"
"""Not a model of a real disk; other tests compare it with closed forms."""
_HOST_NAMES = ("memory_kib", "cpus", "submit_ns", "complete_ns")
_CHOSEN_BY_KERNEL = {"max_sectors_kb": 1280, "read_ahead_kb": 128}
"""Where the default stands for the kernel's choice, values are drawn near these."""
_NOT_HASHED = (Levels, PercentileSeries)
"""Parts of a result that came after the hashes; what they count is in its series, too:
`every_io_and_all_time_in_the_queue_is_in_its_row`, tests/test_over_time.py."""
_VALUE_MAX = 1 << 40
"""The largest drawn value of a tunable: some have no other bound than an integer's."""


@dataclass(frozen=True)
class Case:
    """One run."""

    disk: str
    load: str
    """The name of a shipped workload, or ``random:SEED``."""
    scheduler: str
    seed: int = 1
    host: tuple[tuple[str, int], ...] = ()

    @property
    def label(self) -> str:
        """All its parts, on one line."""
        host = " ".join(f"{name}={value}" for name, value in self.host)
        return f"{self.disk} {self.load} {self.scheduler} seed={self.seed} {host}".strip()

    def experiment(self) -> Experiment:
        """The rig's input."""
        kind, _, number = self.load.partition(":")
        job = (
            Entry(self.load, Path(self.load), job_file(int(number)))
            if kind == "random"
            else specs.workload(self.load)
        )
        return Experiment(
            job,
            specs.disk(self.disk),
            specs.scheduler(self.scheduler),
            self.seed,
            dict(self.host),
            window=Window(requests=500),
        )


def cases() -> list[Case]:
    """All cases, the same in every call."""
    names = [row.name for row in schedulers()]
    disks, loads = [name for name in DISKS.names() if name != _IDEAL], sorted(WORKLOADS.paths())
    shipped = [Case(disk, load, name) for disk in disks for load in loads for name in names]
    drawn = [name for name in disks if name not in _LATER_DISKS]
    return [*shipped, *_tuned(), *_drawn(drawn, names)]


def _tuned() -> Iterator[Case]:
    chance = random.Random("tunables")
    for row in schedulers():
        for tunable in row.tunables:
            for disk, load in _TUNED_ON:
                values = {_value(chance, tunable) for _ in range(2)}
                for value in sorted(values):
                    yield Case(disk, load, f"{row.name}:{tunable.name}={value}")


def _drawn(disks: list[str], names: list[str]) -> Iterator[Case]:
    first = [name for name in names if name not in _LATER]
    yield from _mixtures(disks, first, random.Random("mixtures"), range(_RANDOM))
    seeds = range(_RANDOM, _RANDOM + sum(_LATER.values()))
    for name, number in _LATER.items():
        yield from _mixtures(disks, [name], random.Random(f"mixtures {name}"), seeds[:number])
        seeds = seeds[number:]


def _mixtures(
    disks: list[str], names: list[str], chance: random.Random, seeds: range
) -> Iterator[Case]:
    tables = {row.name: row.tunables for row in schedulers()}
    host = [row for rows in environment().values() for row in rows if row.name in _HOST_NAMES]
    # A row that came later would change what chance draws for all cases.
    queue = [row for row in environment()["queue"] if row.name != "wbt_lat_usec"]
    for number in seeds:
        name = chance.choice(names)
        several = [row for row in [*tables[name], *queue] if chance.random() < 0.1]
        settings = ",".join(f"{row.name}={_value(chance, row)}" for row in several)
        changed = [(row.name, _value(chance, row)) for row in host if chance.random() < 0.2]
        yield Case(
            chance.choice(disks),
            f"random:{number}",
            f"{name}:{settings}" if settings else name,
            chance.randrange(1 << 32),
            tuple(changed),
        )


def _value(chance: random.Random, tunable: _core.Tunable) -> int:
    """Within its bounds and a factor of 16 of the default; the logarithm is uniform."""
    low, high = tunable.min, min(tunable.max, _VALUE_MAX)
    default = _CHOSEN_BY_KERNEL.get(tunable.name, tunable.default)
    near = max(low, default // 16), min(high, max(default, 1) * 16)
    if near[0] >= near[1] or near[0] < 0:
        return chance.randint(low, high)
    return round(math.exp(chance.uniform(math.log(near[0] + 1), math.log(near[1] + 1)))) - 1


def hashed(case: Case) -> str:
    """The hash of the whole result, or of the error's text."""
    digest = hashlib.blake2b(digest_size=8)
    try:
        _add(digest, SimRig().run(case.experiment()))
    except BlklabError as error:
        # For contradictory settings, the refusal is the result.
        digest.update(f"{type(error).__name__}: {error}".encode())
    return digest.hexdigest()


def _add(digest: Any, value: Any) -> None:
    """Adds every field with its name, recursively."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        for item in dataclasses.fields(value):
            # A part that this rig does not measure is left out: new ones leave the hashes alone.
            if item.default is None and getattr(value, item.name) is None:
                continue
            if isinstance(getattr(value, item.name), _NOT_HASHED):
                continue
            digest.update(f"\n{item.name}=".encode())
            _add(digest, getattr(value, item.name))
    elif isinstance(value, np.ndarray):
        digest.update(f"{value.dtype}{value.shape}".encode() + value.tobytes())
    elif isinstance(value, dict):
        for key in sorted(value):
            digest.update(f"\n{key}:".encode())
            _add(digest, value[key])
    elif isinstance(value, (list, tuple)):
        for each in value:
            digest.update(b",")
            _add(digest, each)
    else:
        digest.update(repr(value).encode())


def kept() -> dict[str, str]:
    """The stored hashes by case."""
    rows = (line.split(" ", 1) for line in KEPT.read_text().splitlines())
    return {label: digest for digest, label in rows}


def differing(several: list[Case], jobs: int | None = None) -> tuple[dict[str, str], list[str]]:
    """Today's hashes, and the cases whose stored hash differs."""
    right = kept() if KEPT.exists() else {}
    with ProcessPoolExecutor(jobs) as pool:
        found = dict(
            zip(
                (case.label for case in several),
                pool.map(hashed, several, chunksize=8),
                strict=True,
            )
        )
    return found, [label for label, digest in found.items() if right.get(label) != digest]


def main() -> int:
    """See the head of the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep what comes out as right")
    parser.add_argument("--sample", type=int, default=0, help="so many cases, not all")
    parser.add_argument("--seed", type=int, default=0, help="which cases")
    parser.add_argument("--scheduler", metavar="NAME", help="only its cases")
    parser.add_argument("--new", action="store_true", help="only cases without a kept hash")
    asked = parser.parse_args()
    several = cases()
    if asked.scheduler:
        known = sorted(row.name for row in schedulers())
        if asked.scheduler not in known:
            parser.error(f"no scheduler {asked.scheduler!r}; there are {', '.join(known)}")
        several = [case for case in several if case.scheduler.partition(":")[0] == asked.scheduler]
    if asked.new:
        there = kept()
        several = [case for case in several if case.label not in there]
    if asked.sample and asked.write:
        parser.error("--write keeps all cases, new ones, or those of one scheduler; not a sample")
    if asked.sample:
        several = random.Random(asked.seed).sample(several, min(asked.sample, len(several)))
    found, wrong = differing(several)
    if asked.write:
        now = (kept() if KEPT.exists() else {}) | found
        labels = [case.label for case in cases()]
        KEPT.write_text("".join(f"{now[label]} {label}\n" for label in labels if label in now))
    else:
        gone = set(kept()) - {case.label for case in cases()}
        wrong += [f"no longer a case: {label}" for label in sorted(gone)]
    for label in wrong:
        print(f"{'new' if asked.write else 'differs'}: {label}")
    print(f"{len(several)} cases, {len(wrong)} {'changed' if asked.write else 'differ'}")
    return 0 if asked.write else bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
