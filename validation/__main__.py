"""The hard disk model against drives with a measurement of every request.

``python -m validation [FOLDER] [--out FOLDER]``. The folder has, for each drive, its facts
(``ID.toml``) and its trace (``ID.csv``), converted from DiskSim 4.0's ``valid/``; without an
argument the environment variable BLKLAB_DRIVES names it. With the facts alone the model replays the
trace. Mean error and demerit are printed beside DiskSim's; if one exceeds DiskSim's by more than
the noise, the exit code is 1. The files are not part of this repository: DiskSim's licence does not
mention the traces.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from validation import page
from validation.demerit import bar, distance
from validation.drive import drives

_VARIABLE = "BLKLAB_DRIVES"
_SEED = 1
_ROW = "{:16} {:>9} {:>9}   {:>8} {:>8}   {:>6}   {}"


def main(arguments: Sequence[str] | None = None) -> int:
    """See the head of the file."""
    parser = argparse.ArgumentParser(prog="python -m validation", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help=f"default: ${_VARIABLE}")
    parser.add_argument("--out", type=Path, default=Path("reports/validation"), help="for pages")
    asked = parser.parse_args(arguments)
    folder = asked.folder or (Path(named) if (named := os.environ.get(_VARIABLE)) else None)
    if folder is None:
        print(f"skipped: no folder with measured drives; name it, or set {_VARIABLE}")
        return 0
    found = drives(folder)
    if not found:
        print(f"{folder}: no drive there; expected ID.toml and ID.csv for each", file=sys.stderr)
        return 2
    asked.out.mkdir(parents=True, exist_ok=True)
    print(_ROW.format("drive", "mean err.", "DiskSim", "demerit", "DiskSim", "noise", "met"))
    every = True
    for drive in found:
        simulated = drive.simulated_ms(_SEED)
        ours, theirs = distance(simulated, drive.measured_ms), bar(drive.facts["disksim"])
        met = theirs.met(ours)
        every &= met
        print(
            _ROW.format(
                drive.name,
                f"{ours.mean_error:+.2f} %",
                f"{theirs.disksim.mean_error:+.2f} %",
                f"{ours.demerit:.2f} %",
                f"{theirs.disksim.demerit:.2f} %",
                f"{theirs.noise:.1f} %",
                "yes" if met else "NO",
            )
        )
        page.write(asked.out, drive.name, drive.measured_ms, simulated)
    print(f"distributions: {asked.out}/")
    return 0 if every else 1


if __name__ == "__main__":
    sys.exit(main())
