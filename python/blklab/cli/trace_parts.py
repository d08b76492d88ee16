"""What was served in a part of a trace, as text of ``blklab trace show``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from blklab.base.text import shown
from blklab.base.units import duration_text, rate_text, size_text
from blklab.cli import console
from blklab.timelines import served as words

if TYPE_CHECKING:
    from blklab._core import TraceServed

_ROWS = 12
"""Processes, and cgroups."""
_GOT = 4
"""Processes that are named for a wait."""


def print_served(file: Path, found: TraceServed, *, until_ns: int) -> None:
    """Totals by process and cgroup, and the slowest I/Os."""
    processes = [words.process_name(owner) for owner in found.processes]
    rows = words.shares(processes, found.of_processes)
    end_ns = min(until_ns, max(found.end_ns, found.from_ns))
    span_s = max(end_ns - found.from_ns, 1) / 1e9
    moved = sum(row.bytes for row in rows)
    print(
        f"{shown(str(file))}, {words.at_text(found.from_ns)} to {words.at_text(end_ns)}: "
        f"{sum(row.came for row in rows):,} I/Os came, {sum(row.ios for row in rows):,} were "
        f"served ({size_text(moved)}, {rate_text(moved / span_s)})"
    )
    if all(row.wait_ns is None for row in rows):
        print("the trace has no issues: waits are not known, and served is what completed")
    _print_shares("process", rows)
    if any(owner.number for owner in found.cgroups):
        cgroups = [words.cgroup_name(owner) for owner in found.cgroups]
        _print_shares("cgroup", words.shares(cgroups, found.of_cgroups))
    for place, slow in enumerate(found.slow, 1):
        print()
        print(console.folded(f"{place}. {words.slow_words(slow, found)}", "", "   "))
        for line in words.meanwhile_words(slow, processes, _GOT):
            print(console.folded(line, "   ", "   "))
        for io in slow.listed:
            assert io.issued_ns is not None, "only issued ones are listed"
            later = "" if io.queued_ns <= slow.io.queued_ns else ", came later"
            what = f"{processes[io.process]}: {words.io_words(io)}{later}"
            print(f"   {words.at_text(io.issued_ns)}  {what}")
        left = sum(sum(one.ios) for one in slow.issued) - len(slow.listed)
        if left > 0 and slow.listed:
            print(f"   and {left:,} more")


def _print_shares(head: str, rows: Sequence[words.Share]) -> None:
    table = console.table(
        *(head, "came", "served", "read", "written", "wait", "longest", "at disk"),
        right=range(1, 8),
    )
    table.columns[0].no_wrap = True
    for row in rows[:_ROWS]:
        times = (row.wait_ns, row.wait_max_ns, row.disk_ns)
        table.add_row(
            row.name,
            f"{row.came:,}",
            f"{row.ios:,}",
            size_text(row.read_bytes),
            size_text(row.other_bytes),
            *("-" if value is None else duration_text(value) for value in times),
        )
    console.console().print(table)
    if len(rows) > _ROWS:
        print(f"and {len(rows) - _ROWS} more")
