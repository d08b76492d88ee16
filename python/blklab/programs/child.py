"""The process that runs a program: ``python -m blklab.programs.child ORDER``.

ORDER is JSON: the workload's ``text``, ``seed``, ``directory``, ``device`` or null. When everything
is ready, it writes the line ``ready`` and waits for a line; then it measures, and writes JSON:
``value``, ``took_ns``, ``raw``, ``begun_ns``, ``duration_ns`` and ``cpu_s``. If something fails,
one line on stderr.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict

from blklab.base.catalogue import Entry
from blklab.errors import BlklabError
from blklab.programs import chosen
from blklab.programs.place import Place

READY = "ready"


class Order(TypedDict):
    """The argument."""

    text: str
    """The program with its parameters, as in an `Entry`."""
    seed: int
    directory: str
    device: str | None


class Answer(TypedDict):
    """The last line of output."""

    value: float
    took_ns: Sequence[int]
    raw: Mapping[str, str]
    begun_ns: int
    """When the measurement began, on CLOCK_MONOTONIC, as events of the block layer are stamped."""
    duration_ns: int
    cpu_s: float


def main(order_text: str) -> None:
    """Carry out the order."""
    order: Order = json.loads(order_text)
    what = chosen(Entry("", Path(), order["text"]))
    os.chdir(order["directory"])
    device = None if order["device"] is None else Path(order["device"])
    place = Place(Path(order["directory"]), device, order["seed"])
    measure = what.program.begin(what.values, place)
    print(READY, flush=True)
    if not sys.stdin.readline():
        # The parent process has gone.
        return
    cpu_s, start_ns = _cpu_s(), time.monotonic_ns()
    outcome = measure()
    duration_ns = time.monotonic_ns() - start_ns
    answer: Answer = {
        "value": outcome.value,
        "took_ns": outcome.took_ns,
        "raw": dict(outcome.raw),
        "begun_ns": start_ns,
        "duration_ns": duration_ns,
        "cpu_s": _cpu_s() - cpu_s,
    }
    print(json.dumps(answer), flush=True)


def _cpu_s() -> float:
    both = (resource.getrusage(of) for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except BlklabError as error:
        sys.exit(str(error))
    except (OSError, MemoryError) as error:
        sys.exit(f"{getattr(error, 'strerror', None) or error or type(error).__name__}")
