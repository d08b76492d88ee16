"""A reference drive: its facts, its requests, and their response times."""

from __future__ import annotations

import csv
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blklab import _core
from validation.facts import disk_file


@dataclass(frozen=True)
class Drive:
    """Facts and trace of one drive."""

    name: str
    facts: dict[str, Any]
    trace: list[tuple[int, int, int, bool]]
    """Gap before the request in ns, first sector, sectors, whether it is a write."""
    measured_ms: list[float]

    def simulated_ms(self, seed: int) -> list[float]:
        """The model's response time of each request."""
        times = _core.Disk(disk_file(self.facts), self.name).replay(self.trace, seed)
        return [ns / 1e6 for ns in times]


def drives(folder: Path) -> list[Drive]:
    """All drives of a folder that has ``ID.toml`` and ``ID.csv`` for each."""
    return [_read(path) for path in sorted(folder.glob("*.toml"))]


def _read(path: Path) -> Drive:
    facts = tomllib.loads(path.read_text(encoding="utf-8"))
    with path.with_suffix(".csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    gaps_ns = [round(float(row["gap_before_us"]) * 1e3) for row in rows]
    trace = [
        (gap_ns, int(row["lba"]), int(row["sectors"]), row["op"] == "W")
        for gap_ns, row in zip(gaps_ns, rows, strict=True)
    ]
    return Drive(facts["id"], facts, trace, [float(row["response_us"]) / 1e3 for row in rows])
