"""How fast traces are read.

``python benches/readers.py [--rounds N] [--out FILE.json]``. A trace of blktrace with four events
for each I/O, and the text that blkparse makes of it; each is read whole by ``blklab.read_trace``,
with all figures and findings, and by blkparse itself in the same rounds. The ratio to blkparse can
fail; the rates depend on the machine. Goals of rates: 10 million events a second from binary, 2
million from text.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import blklab
import figures
from figures import Figure

_ROUNDS = 7
_IOS = 400_000
_ACTIONS = {"queue": 1, "insert": 12, "issue": 7, "complete": 8}
_READ = 1 << 16
_MAGIC = 0x65617400 | 7
_RECORD = np.dtype(
    [
        ("magic", "<u4"), ("sequence", "<u4"), ("time", "<u8"), ("sector", "<u8"),
        ("bytes", "<u4"), ("action", "<u4"), ("pid", "<u4"), ("device", "<u4"), ("cpu", "<u4"),
        ("error", "<u2"), ("more", "<u2"),
    ]
)  # fmt: skip


def _trace(file: Path) -> int:
    """Write a trace of random reads, two at a time; the number of its events."""
    steps = len(_ACTIONS)
    events = np.zeros(_IOS * steps, _RECORD)
    io = np.repeat(np.arange(_IOS, dtype=np.uint64), steps)
    step = np.tile(np.arange(steps), _IOS)
    rng = np.random.default_rng(1)
    sectors = rng.integers(0, 1 << 28, _IOS).astype(np.uint64) * 8
    events["magic"] = _MAGIC
    events["time"] = io * 10_000 + np.array([0, 200, 400, 15_000], dtype=np.uint64)[step]
    events["sector"] = sectors[io]
    events["bytes"] = 4096
    events["action"] = np.array(list(_ACTIONS.values()), dtype=np.uint32)[step] | _READ
    events["pid"] = 1000
    events["device"] = 8 << 20
    events = events[np.argsort(events["time"], kind="stable")]
    events["sequence"] = np.arange(1, len(events) + 1)
    file.write_bytes(events.tobytes())
    return len(events)


def _seconds(act: Callable[[], object]) -> float:
    begun = time.perf_counter()
    act()
    return time.perf_counter() - begun


def _read(file: Path) -> None:
    reading = blklab.read_trace(file)
    assert reading.count == _IOS, reading.count


def measured(rounds: int) -> list[Figure]:
    """All figures, a value for each round."""
    blkparse = shutil.which("blkparse")
    assert blkparse is not None
    with tempfile.TemporaryDirectory() as name:
        binary, text = Path(name) / "sda.blktrace.0", Path(name) / "sda.txt"
        events = _trace(binary)
        parse = [blkparse, "-q", "-i", str(binary)]
        with text.open("wb") as out:
            subprocess.run(parse, stdout=out, stderr=subprocess.DEVNULL, check=True)

        def peer() -> None:
            nowhere = subprocess.DEVNULL
            subprocess.run(parse, stdout=nowhere, stderr=nowhere, check=True)

        _read(text)
        seconds: dict[str, list[float]] = {"binary": [], "text": [], "blkparse": []}
        for _ in range(rounds):
            seconds["binary"].append(_seconds(lambda: _read(binary)))
            seconds["blkparse"].append(_seconds(peer))
            seconds["text"].append(_seconds(lambda: _read(text)))

    def rate(which: str) -> tuple[float, ...]:
        return tuple(events / one / 1e6 for one in seconds[which])

    ratio = tuple(
        peer_s / own_s for peer_s, own_s in zip(seconds["blkparse"], seconds["binary"], strict=True)
    )
    unit = "million events/s"
    return [
        Figure("events from records of blktrace, with figures and findings", unit, None, True,
               rate("binary")),
        Figure("events from blkparse's text, with figures and findings", unit, None, True,
               rate("text")),
        Figure("records of blktrace beside blkparse, which prints them", "times", 1.0, True, ratio),
    ]  # fmt: skip


def main() -> int:
    """Measure, print, store; 1 if a goal is missed by more than `figures.LOSS`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=_ROUNDS)
    parser.add_argument("--out", type=Path, help="also write the figures there, as JSON")
    options = parser.parse_args()
    if shutil.which("blkparse") is None:
        print("readers of traces not measured: blkparse is missing: apt-get install blktrace")
        return 0
    machine = figures.machine()
    found = measured(options.rounds)
    intervals = figures.print_with_intervals(found)
    if options.out:
        figures.keep(options.out, options.rounds, machine, found, {"intervals": intervals})
    return figures.exit_code(found)


if __name__ == "__main__":
    sys.exit(main())
