"""A process that watches a disk and sets bfq as soon as it may, until it is ended.

    python -m tests.watch_helper DISK

Prints each event; its evidence, which is given here, says that bfq is best under every load.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import blklab
from blklab.api import watch_evidence
from blklab.watching.evidence import Evidence, Figures
from blklab.watching.kinds import Seen
from blklab.watching.load import Load

FAST = blklab.WatchLimits(interval_s=0.1, steady=2, apply=True, sample=False)


def bfq_is_best(_: object, seen: Seen, load: Load, schedulers: Sequence[str]) -> Evidence:
    """As of `Sources.about`."""
    costs = {name: 1.0 if name == "bfq" else 3.0 for name in schedulers}
    figures = {name: Figures(1e6 * cost, 1e6 / cost) for name, cost in costs.items()}
    return Evidence("given", figures, (costs,), ("bfq",))


def main(name: str) -> None:
    """Watches the disk."""
    setattr(watch_evidence.Sources, "about", bfq_is_best)  # noqa: B010 (another signature)
    blklab.watch([name], limits=FAST, on_event=lambda event: print(event.what, flush=True))


if __name__ == "__main__":
    main(sys.argv[1])
