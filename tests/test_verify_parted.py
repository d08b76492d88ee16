"""Where the two rigs part: the first request of a cell that they do not issue alike."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

import blklab
from blklab.agreement.measure import Cell, Figures, Uncompared
from blklab.agreement.parted import compared, furthest
from blklab.cli import app
from tests import real_kernel
from tests.test_bisect import timeline

SAME = Figures(ios=100, bytes_per_s=1e6, p50_ns=100_000, p99_ns=200_000)


def cell(**other: float) -> Cell:
    """A cell whose kernel has these figures in place of the simulator's."""
    return Cell("disk", "disk", "none", "load", SAME, Figures(**{**SAME.__dict__, **other}), 1.0)


def test_the_furthest_are_those_that_use_most_of_the_bar_and_none_that_is_the_same() -> None:
    ended: dict[int, Cell | Uncompared] = {
        0: cell(),
        1: cell(bytes_per_s=1.02e6),
        2: cell(p99_ns=206_000),
        3: Uncompared("disk", "disk", "none", "load", "no reason"),
        4: cell(p50_ns=110_000),
    }
    assert furthest(ended, 5) == [4, 1, 2]
    assert furthest(ended, 1) == [4]


def test_requests_are_compared_with_their_times_and_without_their_processes() -> None:
    ours = timeline(("read", 0, 8, 1), ("write", 8, 8, 5))
    real = timeline(("read", 0, 8, 1), ("write", 8, 8, 6))
    found = compared(cell(), ours, real)
    assert found.difference is not None
    assert (found.difference.index, found.difference.kind, found.requests) == (1, "time", 2)
    real.rows[0] = "another"
    found = compared(cell(), ours, ours)
    assert found.difference is None
    real = timeline(("read", 0, 8, 1), ("write", 8, 8, 5))
    real.rows[0] = "another"
    assert compared(cell(), ours, real).difference is None


def test_requests_of_one_time_are_compared_in_any_order() -> None:
    ours = timeline(("read", 64, 8, 1), ("write", 8, 8, 1), ("read", 0, 8, 2))
    real = timeline(("write", 8, 8, 1), ("read", 64, 8, 1), ("read", 0, 8, 2))
    assert compared(cell(), ours, real).difference is None
    late = timeline(("write", 8, 8, 1), ("read", 0, 8, 2), ("read", 64, 8, 2))
    found = compared(cell(), ours, late).difference
    assert found is not None
    assert found.index == 0
    pair = found.after[0]
    assert [request and request.sector for request in pair] == [64, 8]


def test_a_cell_that_misses_is_shown_request_by_request(tmp_path: Path) -> None:
    """bfq beside XFS's log: one of the two cells of 636 that are not understood."""
    kernel = real_kernel.with_file_systems()
    out = tmp_path / "cells.json"
    done = CliRunner().invoke(
        app,
        [*("verify", "--fs", "xfs", "--load", "deliveries-buffered", "--load", "read-rand-qd1"),
        *("--disk", "wd10ezrx", "--scheduler", "bfq", "--differences", "3"),
        *("--kernel", kernel, "--out", str(out))],
    )  # fmt: skip
    assert done.exit_code == 1
    assert "deliveries-buffered, bfq, HDD, NCQ 32, xfs: " in done.stdout
    assert "then another request is issued" in " ".join(done.stdout.split())
    [row] = json.loads(out.read_text())["differences"]
    assert (row["cell"]["load"], row["difference"]["kind"]) == ("deliveries-buffered", "order")
    [ours, real] = row["difference"]["after"][0]
    assert ours["op"] in ("read", "write", "flush") and ours != real
    # The other cell is the same, and is not run again.
    found = blklab.verify(
        workloads=["read-rand-qd1"],
        disks=["su800-128gb"],
        schedulers=["none"],
        kernel=kernel,
        differences=2,
    )
    assert found.cells[0].sim == found.cells[0].kernel and found.differences == ()
