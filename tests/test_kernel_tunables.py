"""A real kernel's treatment of tunables: ticks, one that changes another, and refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import blklab
from blklab.errors import RunError
from blklab.rigs.kernel import outcome
from blklab.rigs.kernel.rundir import RunDirectory
from tests import real_kernel
from tests.test_cli import run

JOB = "[a]\nrw=randread\nbs=4k\ndirect=1\nsize=1g\nnumber_ios=20\n"


def notes(spec: str, disk: str = "950pro-256gb:hw_queues=1,queue_depth=128") -> tuple[str, ...]:
    kernel = real_kernel.image().parent.name
    made = blklab.simulate(
        JOB, disk=disk, scheduler=spec, rig="kernel", kernel=kernel, driver="native"
    )
    return made.notes


def test_a_time_in_milliseconds_is_kept_as_given() -> None:
    assert notes("mq-deadline:read_expire=120,fifo_batch=7") == ()
    assert notes("mq-deadline:prio_aging_expire=1,read_expire=125,fifo_batch=7") == ()


@pytest.fixture
def coarse(monkeypatch: pytest.MonkeyPatch) -> str:
    """A note of a kernel with 100 ticks per second, in every guest's result."""
    read = outcome.read

    def rounded(run: RunDirectory, decoder: Any) -> dict[str, Any]:
        row = {"tunable": "queue/iosched/write_expire", "asked": "4999", "set": "5000"}
        found: dict[str, Any] = read(run, decoder)
        return found | {"rounded": [row]}

    monkeypatch.setattr(outcome, "read", rounded)
    return "write_expire=4999 is 5000: the kernel counts in ticks"


def test_nr_requests_and_async_depth_are_both_as_they_were_asked_for() -> None:
    assert notes("mq-deadline:async_depth=512,nr_requests=512") == ()
    assert notes("mq-deadline:async_depth=3,nr_requests=16") == ()


def test_async_depth_follows_nr_requests_where_the_rig_sets_it_itself() -> None:
    # Of a SATA disk without NCQ, under bfq, it is all of nr_requests, and no more can be.
    assert notes("bfq:nr_requests=8", "wd10ezrx:ncq=off") == ()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("mq-deadline:async_depth=512", "queue/async_depth=512: the kernel made 256 of it"),
        ("mq-deadline:front_merge=1", "iosched/front_merge: no such tunable; there are: .*front_m"),
    ],
)
def test_a_value_that_the_kernel_changes_beyond_rounding_is_refused(
    spec: str, message: str
) -> None:
    with pytest.raises(RunError, match=message):
        notes(spec)


def test_a_comparison_shows_and_keeps_rounded_tunables(tmp_path: Path, coarse: str) -> None:
    kernel = real_kernel.image().parent.name
    (tmp_path / "j.fio").write_text(JOB)
    spec = "mq-deadline:write_expire=4999"
    arguments = ["compare", "--rig", "kernel", "--kernel", kernel, "--driver", "native"]
    arguments += [
        "--disk",
        "950pro-256gb:hw_queues=1,queue_depth=128",
        "--workload",
        str(tmp_path / "j.fio"),
    ]
    arguments += ["--scheduler", spec, "--repeats", "2", "--out", str(tmp_path)]
    told = f"{spec}: {coarse}"
    assert " ".join(run(*arguments).stdout.split()).count(f"Note: {told}") == 1
    assert told in (tmp_path / "report.html").read_text()
    rows = json.loads((tmp_path / "results.json").read_text())["runs"]
    assert [row["notes"] for row in rows] == [[told.removeprefix(f"{spec}: ")]] * 2


def test_a_single_run_reports_rounded_tunables_on_stderr(tmp_path: Path, coarse: str) -> None:
    kernel = real_kernel.image().parent.name
    (tmp_path / "j.fio").write_text(JOB)
    where = (
        "--disk",
        "950pro-256gb:hw_queues=1,queue_depth=128",
        "--kernel",
        kernel,
        "--scheduler",
        "mq-deadline:write_expire=4999",
    )
    once = run("fio", str(tmp_path / "j.fio"), "--rig", "kernel", "--driver", "native", *where)
    told = once.stderr.splitlines()
    assert told[0].startswith("blklab: Linux ")
    assert [line for line in told[1:] if "not validated" not in line] == [f"blklab: {coarse}"]
    program = run("kernel", "run", *where, "--", "true")
    assert f"blklab: {coarse}\n" in program.stderr
