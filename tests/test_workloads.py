"""Job files with changed options, sweeps over one number, and the curves that they draw."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

import blklab
from blklab import programs
from blklab.base.catalogue import Entry
from blklab.cli import app
from blklab.domain import core, specs, sweep
from blklab.domain.comparison import Setup
from blklab.domain.results_file import load
from blklab.errors import InputError
from blklab.experiment.analyse import analyse
from blklab.report import sweeps as curves
from blklab.store import packing
from blklab.store.request import Request, request_from_bytes, to_bytes

TWO = """# two jobs
[global]
direct=1
bs=4k
[a]
rw=randread
size=64m
numjobs=2
[b]
rw=write
size=64m
"""


@pytest.fixture
def two(tmp_path: Path) -> Path:
    path = tmp_path / "two.fio"
    path.write_text(TWO)
    return path


def jobs(entry: Entry) -> list[dict[str, str]]:
    """Each job's options, by fio's main names."""
    told = core.describe_job(entry, ignore_unsupported=False).jobs
    return [dict(job.options) for job in told]


@pytest.mark.parametrize(
    ("changes", "options"),
    [
        # In its present place: in [global], or in the one job that sets it.
        ("bs=8k", [("bs", "8k"), ("bs", "8k")]),
        ("numjobs=5", [("numjobs", "5"), ("numjobs", None)]),
        # In no place: for all jobs.
        ("iodepth=3", [("iodepth", "3"), ("iodepth", "3")]),
        # By its other name, in place of the first.
        ("blocksize=16k", [("blocksize", "16k"), ("blocksize", "16k")]),
        ("blocksize=16k", [("bs", None), ("bs", None)]),
        # Values may have commas.
        ("bs=4k,8k,iodepth=2", [("bs", "4k,8k"), ("bs", "4k,8k")]),
        ("bs=4k,8k,iodepth=2", [("iodepth", "2"), ("iodepth", "2")]),
    ],
)
def test_an_option_is_changed_where_the_file_sets_it_else_for_all_jobs(
    changes: str, options: list[tuple[str, str | None]], two: Path
) -> None:
    entry = specs.workload(f"{two}:{changes}")
    assert entry.name == f"two:{changes}"
    assert [(name, job.get(name)) for (name, _), job in zip(options, jobs(entry), strict=True)] == (
        options
    )
    assert two.read_text() == TWO


def test_a_changed_option_is_simulated() -> None:
    assert [job["numjobs"] for job in jobs(specs.workload("randrw-70:numjobs=3"))] == ["3"]
    done = CliRunner().invoke(
        app,
        ["fio", "randrw-70:numjobs=3,runtime=1", "--disk", "wd10ezrx", "--output-format", "json"],
    )
    assert done.exit_code == 0, done.output
    [job] = json.loads(done.stdout)["jobs"]
    assert job["job options"]["numjobs"] == "3"
    assert job["read"]["total_ios"] / (job["read"]["total_ios"] + job["write"]["total_ios"]) > 0.6


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_real_fio_accepts_the_written_job_file(tmp_path: Path) -> None:
    file = tmp_path / "job.fio"
    file.write_text(specs.workload("randread:iodepth=8,ioengine=libaio").text)
    done = subprocess.run(["fio", "--parse-only", file], capture_output=True, text=True, check=True)
    assert "Unknown" not in done.stderr


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ("size=1g", "two: 'size' is set in several sections of PATH; change a copy"),
        ("numjob=4", "two:numjob=4: there is no option 'numjob'; did you mean 'numjobs'?"),
        ("numjobs=x", "two:numjobs=x: option 'numjobs': found 'x', expected a whole number, "
                      "1 to 4096"),
        ("bs=4k,blocksize=8k", "two: 'blocksize' is given twice"),
        ("bs=4k,=8k", "two:bs=4k,=8k: option 'bs': "),
        ("bs=4k;rm", "two: bs: '4k;rm' cannot stand in a job file's line"),
        ("bs=4k\n[c]", "two: bs: '4k\\n[c]' cannot stand in a job file's line"),
        ("bs=", "two: expected option=value behind ':', found 'bs='"),
    ],
)  # fmt: skip
def test_an_option_that_cannot_be_changed_is_one_line(
    changes: str, message: str, two: Path
) -> None:
    with pytest.raises(InputError) as error:
        specs.workload(f"{two}:{changes}")
    assert str(error.value).replace(str(two), "PATH").startswith(message)
    assert "\n" not in str(error.value)


def test_an_option_of_an_included_file_is_not_changed_behind_its_back(tmp_path: Path) -> None:
    (tmp_path / "more.inc").write_text("iodepth=4\n")
    (tmp_path / "job.fio").write_text("[a]\nsize=64m\nioengine=libaio\ninclude more.inc\n")
    with pytest.raises(InputError, match=r"^job: 'iodepth' is set in a file that .* includes"):
        specs.workload(f"{tmp_path}/job.fio:iodepth=8")
    # Its own options can be changed; the include is still found beside the file.
    [job] = jobs(specs.workload(f"{tmp_path}/job.fio:size=32m"))
    assert (job["size"], job["iodepth"]) == ("32m", "4")


def test_a_name_without_a_value_is_refused() -> None:
    with pytest.raises(InputError) as error:
        specs.workload("randread:iodepth")
    assert (
        str(error.value) == "randread: expected option=value behind ':', found 'randread:iodepth'"
    )


@pytest.mark.parametrize(
    ("spec", "loads"),
    [
        ("a:n=4..256", [f"a:n={n}" for n in (4, 8, 16, 32, 64, 128, 256)]),
        ("a:n=1..6", ["a:n=1", "a:n=2", "a:n=4", "a:n=6"]),
        ("a:m=2,n=3..6,x=y", ["a:m=2,n=3,x=y", "a:m=2,n=6,x=y"]),
        ("a:n=4", ["a:n=4"]),
        # No numbers: fio's own business.
        ("a:filename=../b", ["a:filename=../b"]),
        ("n=1..4", ["n=1..4"]),
    ],
)
def test_a_range_is_doubled_up_to_its_end(spec: str, loads: list[str]) -> None:
    assert sweep.expanded(spec) == loads


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("a:n=4..4", "n: expected a range that goes up, from 1 or more, found 4..4"),
        ("a:n=8..2", "n: expected a range that goes up, from 1 or more, found 8..2"),
        ("a:n=0..2", "n: expected a range that goes up, from 1 or more, found 0..2"),
        ("a:n=1..2,m=1..2", "expected one range, found 2"),
    ],
)
def test_a_range_that_is_none_is_one_line(spec: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        sweep.expanded(spec)
    assert str(error.value) == f"--workload {spec}: {message}"


@pytest.mark.parametrize(
    "command",
    [["workloads", "sqlite:copies=1..4"], ["fio", "sqlite:copies=1..4", "--disk", "wd10ezrx"]],
)
def test_a_command_for_one_workload_refuses_several(command: list[str]) -> None:
    with pytest.raises(InputError) as error:
        CliRunner().invoke(app, command, catch_exceptions=False)
    assert (
        str(error.value)
        == "sqlite:copies=1..4: means several workloads; only blklab compare accepts them"
    )


def test_programs_are_swept_like_job_files() -> None:
    entries = specs.workloads(["sqlite:insertions=9,copies=1..4", "randread"])
    assert [entry.name for entry in entries] == [
        *(f"sqlite:insertions=9,copies={copies}" for copies in (1, 2, 4)),
        "randread",
    ]
    assert [programs.chosen(entry).values["copies"] for entry in entries[:3]] == [1, 2, 4]
    with pytest.raises(InputError, match=r"^sqlite: copies: expected 1 to 64, found '128'$"):
        specs.workloads(["sqlite:copies=32..128"])


def test_workloads_that_differ_in_one_number_are_a_sweep_in_any_order() -> None:
    found = sweep.sweeps(["b:n=8", "b:m=1,n=16", "a", "b:n=4", "b:n=32,m=1", "a:n=1", "b:x=y"])
    assert [(one.load, one.parameter, one.members) for one in found] == [
        ("b", "n", ((4, "b:n=4"), (8, "b:n=8"))),
        ("b:m=1", "n", ((16, "b:m=1,n=16"), (32, "b:n=32,m=1"))),
    ]


def test_a_sweep_is_compared_and_its_curve_has_every_figure(tmp_path: Path) -> None:
    command = ["compare", "--disk", "wd10ezrx", "--workload", "randrw-70:runtime=2,numjobs=1..16",
               "--scheduler", "none", "--scheduler", "bfq", "--repeats", "2", "--exact-disk",
               "--out", str(tmp_path)]  # fmt: skip
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    results = load(tmp_path / "results.json")
    analysis = analyse(results.runs, "both")
    [curve] = curves.curves(analysis)
    assert (curve["parameter"], curve["numbers"]) == ("numjobs", [1, 2, 4, 8, 16])
    assert curve["name"] == "wd10ezrx: randrw-70:runtime=2 over numjobs"
    assert (curve["unit"], curve["p99"]) == ("MB/s", "p99 of reads, ms: less is better")
    assert set(curve["lines"]) == {"none", "bfq"}
    for cell, place in zip(analysis.cells, range(5), strict=True):
        for row in cell.rows:
            line = curve["lines"][row.scheduler]
            assert line["rate"][place][0] == pytest.approx(row.rate.estimate, rel=1e-3)
            assert line["p99"][place][0] == pytest.approx(row.p99.estimate / 1e6, rel=1e-3)
            assert line["p99"][place][1] <= line["p99"][place][0] <= line["p99"][place][2]
    # Many threads get more out of a disk than one; few do not.
    rates = [interval[0] for interval in curve["lines"]["none"]["rate"]]
    assert rates[-1] > rates[0]
    assert "One workload at several sizes" in (tmp_path / "report.html").read_text()


def test_a_job_file_with_any_beginning_is_no_program(tmp_path: Path) -> None:
    file = tmp_path / "head.fio"
    file.write_text("program=sqlite\ninsertions=1\n")
    assert not programs.is_program(specs.workload(str(file)))
    with pytest.raises(InputError, match=r"head\.fio:1"):
        blklab.simulate(file, disk="su800-128gb")


def test_stored_workloads_of_older_versions_have_no_kind() -> None:
    job, program = specs.workload("randread"), programs.entry("sqlite:insertions=7")
    setup = Setup((specs.disk("wd10ezrx"),), (job, program), (specs.scheduler("none"),), 1, 1)
    kept = Request(setup, "live", {}, "latency", "out")
    older = packing.unpack_json(to_bytes(kept))
    for workload in older["setup"]["workloads"]:
        del workload["kind"]
    assert request_from_bytes("comparison 1: request", packing.pack_json(older)) == kept
