"""The readers of traces against one trace in four formats.

``python -m validation.traces [FOLDER]``. The folder, or the environment variable BLKLAB_TRACES,
has ``cloudPhysicsIO.vscsi``, ``.csv``, ``.oracleGeneral.bin`` and ``.txt`` of libCacheSim's
``data/``, which are not part of this repository, and any other traces. The four must give the same
I/Os, as far as each format holds them; every other trace must be read to its end. The size of each
recording is printed. The exit code is 1 if something differs or cannot be read, or if an I/O takes
12 bytes or more.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow.ipc

import blklab
from blklab.errors import BlklabError

_VARIABLE = "BLKLAB_TRACES"
_BYTES_MAX = 12.0
_IOS_MIN = 10_000
"""In recordings of smaller traces the names of columns take the most bytes."""
_FIRST = "cloudPhysicsIO.vscsi"
_HELD = {
    "cloudPhysicsIO.csv": ("sector", "sectors", "op", "second"),
    "cloudPhysicsIO.oracleGeneral.bin": ("sector", "first length", "second"),
    "cloudPhysicsIO.txt": ("sector",),
}
"""What each of the other formats holds of an I/O. oracleGeneral has a cache's objects: each keeps
the length of its first access."""
_NOT_TRACES = (".md",)
_SECOND_NS = 1_000_000_000


def main(arguments: Sequence[str] | None = None) -> int:
    """See the head of the file."""
    parser = argparse.ArgumentParser(prog="python -m validation.traces", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help=f"default: ${_VARIABLE}")
    asked = parser.parse_args(arguments)
    folder = asked.folder or (Path(named) if (named := os.environ.get(_VARIABLE)) else None)
    if folder is None:
        print(f"skipped: no folder with traces; name it, or set {_VARIABLE}")
        return 0
    files = sorted(path for path in folder.iterdir() if path.suffix not in _NOT_TRACES)
    if not files:
        print(f"{folder}: no trace there", file=sys.stderr)
        return 2
    good = True
    columns = {}
    with tempfile.TemporaryDirectory(prefix="blklab-traces-") as place:
        for file in files:
            try:
                made = blklab.import_trace(file, Path(place, file.name), keep_steps=True)
            except BlklabError as error:
                print(f"{file.name}: {error}")
                good = False
                continue
            each = made.recording_bytes / made.reading.count
            small = made.reading.count >= _IOS_MIN and each >= _BYTES_MAX
            good &= not small
            note = f"; more than {_BYTES_MAX:g}" if small else ""
            told = f"{made.reading.source}, {made.reading.count:,} I/Os, {each:.2f} bytes each"
            print(f"{file.name}: {told}{note}")
            if file.name == _FIRST or file.name in _HELD:
                columns[file.name] = _columns(made.path)
    for name, held in _HELD.items():
        if name in columns and _FIRST in columns:
            good &= _agree(name, columns[name], columns[_FIRST], held)
    return 0 if good else 1


def _columns(recording: Path) -> dict[str, np.ndarray]:
    table = pyarrow.ipc.open_stream(recording).read_all().to_pandas()
    return {
        "sector": table["sector"].to_numpy(),
        "sectors": table["sectors"].to_numpy(),
        "op": table["op"].astype(str).to_numpy(),
        "time_ns": table["gap_ns"].cumsum().to_numpy(),
    }


def _agree(
    name: str,
    columns: dict[str, np.ndarray],
    first: dict[str, np.ndarray],
    held: Sequence[str],
) -> bool:
    every = len(columns["sector"]) == len(first["sector"])
    for what in held:
        if not every:
            break
        if what == "second":
            # The first time of the trace is somewhere in its second.
            ours, theirs = columns["time_ns"], first["time_ns"]
            same = bool(np.all(np.abs(ours - theirs) < _SECOND_NS))
        elif what == "first length":
            _, where, which = np.unique(first["sector"], return_index=True, return_inverse=True)
            same = bool(np.array_equal(columns["sectors"], first["sectors"][where[which]]))
        else:
            same = bool(np.array_equal(columns[what], first[what]))
        every &= same
    print(f"{name}: {', '.join(held)} as in {_FIRST}: {'yes' if every else 'NO'}")
    return every


if __name__ == "__main__":
    sys.exit(main())
