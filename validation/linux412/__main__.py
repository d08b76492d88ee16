"""cfq, deadline and noop against Linux 4.12.4 on a disk of constant service time.

``python -m validation.linux412 [FOLDER] [--run WORD]``. The folder has recordings of user-mode
Linux 4.12.4 with scsi_debug in virtual time (`reference.py` lists the files); without an argument
the environment variable BLKLAB_LINUX412 names it. Each run is simulated on the same host. A row,
one process in one direction, is met if its IOPS are within 2 % and its 99th percentile within 5 %.
For each scheduler it prints the share of rows met, the share of cfq's turns with the same owner and
length, and the share of requests issued in the same order, which depends on single nanoseconds
where processes take turns. Each miss is listed. The exit code is 1 if a scheduler has less than 95
% of its rows.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

from validation.linux412.compare import (
    SHARE_MET,
    Found,
    found,
    lengths_share,
    order_share,
    owners_share,
)
from validation.linux412.reference import runs
from validation.linux412.simulated import simulate

_VARIABLE = "BLKLAB_LINUX412"
_ROW = "{:10} {:>5} {:>6} {:>8}   {:>13} {:>14} {:>12}"


@dataclass
class _Sums:
    """One scheduler's rows, and a share for each run."""

    rows: list[Found] = field(default_factory=list)
    owners: list[float] = field(default_factory=list)
    lengths: list[float] = field(default_factory=list)
    order: list[float] = field(default_factory=list)

    @property
    def met(self) -> float:
        return sum(row.met for row in self.rows) / len(self.rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """See the head of the file."""
    parser = argparse.ArgumentParser(prog="python -m validation.linux412", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help=f"default: ${_VARIABLE}")
    parser.add_argument("--run", default="", help="only runs with this in their names")
    asked = parser.parse_args(arguments)
    folder = asked.folder or (Path(named) if (named := os.environ.get(_VARIABLE)) else None)
    if folder is None:
        print(f"skipped: no folder with runs of Linux 4.12.4; name it, or set {_VARIABLE}")
        return 0
    if not (folder / "runs.csv").is_file():
        print(f"{folder}: no runs there; expected runs.csv, jobs/, issue/", file=sys.stderr)
        return 2
    sums: defaultdict[str, _Sums] = defaultdict(_Sums)
    for run in runs(folder):
        if asked.run not in run.name:
            continue
        simulated, of = simulate(run), sums[run.kind]
        for row in run.rows:
            of.rows.append(found(run.name, row, simulated.direction(row.process, row.direction)))
        of.order.append(order_share(simulated.issued(), run.issued))
        if run.slices:
            slices = simulated.slices()
            of.owners.append(owners_share(slices, run.slices))
            of.lengths.append(lengths_share(slices, run.slices))
    if not sums:
        print(f"{folder}: no run has '{asked.run}' in its name", file=sys.stderr)
        return 2
    heads = ("scheduler", "rows", "met", "share", "owners alike", "lengths alike", "order alike")
    print(_ROW.format(*heads))
    for kind, of in sums.items():
        shares = (of.owners, of.lengths, of.order)
        percents = [f"{100 * fmean(share):.1f} %" if share else "-" for share in shares]
        met = sum(row.met for row in of.rows)
        print(_ROW.format(kind, len(of.rows), met, f"{100 * of.met:.1f} %", *percents))
    for of in sums.values():
        for missed in of.rows:
            if not missed.met:
                print(f"missed: {missed.words()}")
    return 0 if all(of.met >= SHARE_MET for of in sums.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
