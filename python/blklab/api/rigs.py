"""Where to run."""

from __future__ import annotations

from blklab.rigs import RIGS


def rig_summaries() -> dict[str, str]:
    """What each rig runs, by its name."""
    return {name: known.summary for name, known in RIGS.items()}
