"""Real programs under ``--rig live``: their results, and no leftovers."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from blklab import programs
from blklab.base import plain
from blklab.base.catalogue import Entry
from blklab.base.journal import Journal
from blklab.cli import app
from blklab.domain import specs
from blklab.domain.experiment import Experiment
from blklab.domain.measurement import Measurement, from_json
from blklab.domain.result import Figure, Result
from blklab.errors import InputError, RunError
from blklab.experiment.analyse import NOT_MEASURED, analyse
from blklab.experiment.statistics import Verdict
from blklab.experiment.summary import summarise
from blklab.programs import hdparm, kernel_tree, tpcc
from blklab.rigs.live import leftovers
from blklab.rigs.live import target as targets
from blklab.rigs.live.rig import LiveRig
from tests import loop_device

MIB = 1 << 20
BLKLAB = [sys.executable, "-m", "blklab"]
SMALL = {
    "dbench": "dbench:clients=2,duration_s=5",
    "hdparm": "hdparm",
    "kernel-tree": "kernel-tree:files=300,trees=2",
    "nfs-files": "nfs-files:clients=2,files=5,size_kib=8",
    "pgbench": "pgbench:scale=1,clients=2,duration_s=2",
    "record-write": "record-write:size_mib=8,record_kib=64,writers=2",
    "sqlite": "sqlite:insertions=20,copies=2",
    "startup": "startup:starts=2,readers=1,writers=1,size_mib=8",
    "sysbench-fileio": "sysbench-fileio:size_mib=16,files=4,threads=2,duration_s=1",
    "sysbench-oltp": "sysbench-oltp:tables=2,rows=1000,threads=2,duration_s=1,buffer_pool_mib=8",
    "tpcc": "tpcc:warehouses=1,threads=2,duration_s=6",
}
"""Parameters for runs of about a second; loading a warehouse takes a quarter of a minute."""


@pytest.fixture
def mounted() -> Iterator[Path]:
    """A file system of 768 MiB on a loop device."""
    # Not in pytest's directory, which each of its runs makes its user's alone: other users pass
    # through to what is theirs, as on any disk.
    with tempfile.TemporaryDirectory() as above:
        Path(above).chmod(0o711)
        with loop_device.file_system(Path(above), 768 * MIB) as place:
            yield place


def experiment(rig: LiveRig, where: object, spec: str, scheduler: str = "none") -> Experiment:
    return Experiment(
        specs.workload(spec), rig.find_disk(str(where)), specs.scheduler(scheduler), 1
    )


def ran(where: Path, spec: str, scheduler: str = "none") -> Result:
    rig = LiveRig()
    one = experiment(rig, where, spec, scheduler)
    with rig.prepared([one], lambda _: None):
        return rig.run(one)


def require(name: str) -> None:
    if why := programs.known(name).missing():
        pytest.skip(why)


def test_every_program_is_described_and_has_a_small_run_here() -> None:
    assert set(SMALL) == set(programs.NAMES)
    for name in programs.NAMES:
        program = programs.known(name)
        assert program.name == name
        assert program.summary
        for parameter in program.parameters:
            assert parameter.min <= parameter.default <= parameter.max
            assert parameter.help


# To fill a warehouse takes too long to do it here too: tests/test_programs_mariadb.py does.
_TOO_LONG = "tpcc"


def _runs_here(name: str) -> bool:
    program = programs.known(name)
    return "live" in program.rigs and not program.on_device and name != _TOO_LONG


@pytest.mark.parametrize("name", [name for name in programs.NAMES if _runs_here(name)])
def test_a_program_gives_its_figure_and_leaves_nothing(
    name: str, mounted: Path, journal: Journal
) -> None:
    require(name)
    there = sorted(mounted.iterdir())
    [disk] = targets.find(str(mounted)).disks
    sys_queue = Path("/sys/block") / disk / "queue/scheduler"
    before = sys_queue.read_text()
    result = ran(mounted, SMALL[name], "bfq")
    program = programs.known(name)
    assert (sorted(mounted.iterdir()), journal.keys()) == (there, [])
    assert sys_queue.read_text() == before
    assert result.figure is not None
    assert (result.figure.unit, result.figure.higher_is_better) == (
        program.unit,
        program.higher_is_better,
    )
    assert result.figure.value > 0
    assert bool(len(result.operations_ns)) == bool(program.operation)
    assert (result.operations_ns > 0).all()
    assert 0 < result.duration_ns < 60e9
    # It was the disk that did it, under this scheduler.
    assert result.disk.read_ios + result.disk.write_ios > 0
    assert result.device_before
    assert result.device_before["settings"][disk]["scheduler"] == "bfq"


def test_sqlite_commits_every_row(mounted: Path) -> None:
    result = ran(mounted, "sqlite:insertions=30,copies=2")
    assert result.figure is not None
    assert len(result.operations_ns) == 60
    # As many rows as there were, in the time that they took; and a flush for each commit.
    assert result.figure.value * result.duration_ns / 1e9 == pytest.approx(60, rel=0.2)
    assert result.operations_ns.sum() <= 2 * result.duration_ns
    assert result.disk.flush_ios + result.disk.write_ios >= 60


def test_record_write_writes_every_record_and_counts_the_fsync(mounted: Path) -> None:
    result = ran(mounted, "record-write:size_mib=8,record_kib=64,writers=2")
    assert result.figure is not None
    assert len(result.operations_ns) == 2 * 8 * 16
    assert result.figure.value * 1e6 * result.duration_ns / 1e9 == pytest.approx(16 * MIB, rel=0.3)
    # Not only into the page cache.
    assert result.disk.write_sectors * 512 >= 16 * MIB


def test_a_kernel_tree_is_like_linux_and_the_same_for_a_seed(mounted: Path) -> None:
    drawn = kernel_tree.sizes(20_000, "1")
    assert drawn == kernel_tree.sizes(20_000, "1") != kernel_tree.sizes(20_000, "2")
    # Of Linux 7.3: half of its files are below 3490 bytes, one in twenty above 44291.
    assert sum(size < 3490 for size in drawn) / len(drawn) == pytest.approx(0.5, abs=0.02)
    assert sum(size > 44291 for size in drawn) / len(drawn) == pytest.approx(0.05, abs=0.01)
    assert max(drawn) < 2456864
    result = ran(mounted, "kernel-tree:files=300,trees=2")
    written = sum(sum(kernel_tree.sizes(300, f"1 {number}")) for number in range(2))
    assert result.figure is not None
    assert len(result.operations_ns) == 600
    assert result.figure.value * 1e6 * result.duration_ns / 1e9 == pytest.approx(written, rel=0.3)
    assert result.disk.write_sectors * 512 >= written


def test_pgbench_has_every_transaction_and_its_figure(mounted: Path) -> None:
    require("pgbench")
    result = ran(mounted, SMALL["pgbench"])
    text = result.raw["pgbench.txt"].decode()
    assert result.figure is not None
    assert f"tps = {result.figure.value:f} (" in text
    done = re.search(r"transactions actually processed: (\d+)", text)
    assert done
    assert len(result.operations_ns) == int(done[1]) > 0
    # Two clients, one transaction after the other each.
    assert result.operations_ns.sum() <= 2 * 1.1 * result.duration_ns
    # Each was on the disk when it was over; some share a flush.
    assert result.disk.write_ios >= len(result.operations_ns) / 2


def test_a_start_reads_the_command_from_the_disk_each_time(mounted: Path) -> None:
    once = ran(mounted, "startup:starts=1,readers=0,writers=0")
    result = ran(mounted, "startup:starts=5,readers=0,writers=0")
    assert result.figure is not None
    assert len(result.operations_ns) == 5
    assert result.figure.value == pytest.approx(result.operations_ns.mean() / 1e9)
    # Interpreter and modules; nothing of the start before is left.
    assert once.disk.read_sectors * 512 >= 4 * MIB
    assert result.disk.read_sectors == pytest.approx(5 * once.disk.read_sectors, rel=0.1)
    # Others read and write meanwhile.
    busy = ran(mounted, "startup:starts=2,readers=1,writers=1,size_mib=8")
    assert busy.disk.write_sectors * 512 >= 8 * MIB
    assert busy.disk.read_sectors >= 2 * once.disk.read_sectors + 8 * MIB // 512


@pytest.mark.parametrize("name", ["pgbench", "sysbench-oltp", "tpcc"])
def test_a_server_that_cannot_reach_its_directory_says_so(name: str, mounted: Path) -> None:
    require(name)
    hidden = mounted / "hidden"
    hidden.mkdir(mode=0o700)
    with pytest.raises(RunError, match=rf"^{name}: the user \w+, which runs .* \(chmod o\+x\)$"):
        ran(hidden, SMALL[name])
    assert not list(hidden.iterdir())


def test_hdparm_reads_the_device_and_needs_one(tmp_path: Path, mounted: Path) -> None:
    require("hdparm")
    [disk] = targets.find(str(mounted)).disks
    with pytest.raises(
        InputError, match=f"^hdparm: reads from a device: expected --disk /dev/{disk}"
    ):
        ran(mounted, "hdparm")
    # Mounted as it is: it is only read.
    result = ran(Path("/dev") / disk, "hdparm", "mq-deadline")
    text = result.raw["hdparm.txt"].decode()
    assert result.figure is not None
    assert "Timing cached reads" in text
    assert 0 < result.figure.value < 1e6
    assert result.disk.read_sectors * 512 >= 100 * MIB
    assert not len(result.operations_ns)


def test_sysbench_has_the_sum_of_its_reads_and_writes(mounted: Path) -> None:
    require("sysbench-fileio")
    result = ran(mounted, SMALL["sysbench-fileio"])
    text = result.raw["sysbench.txt"].decode()
    [reads, writes] = re.findall(r"(?:reads|writes)/s: +([0-9.]+)", text)
    assert result.figure is not None
    assert result.figure.value == pytest.approx(float(reads) + float(writes))
    assert "2 threads" in text or "Number of threads: 2" in text
    assert "Initializing random number generator from seed (2)" in text


@pytest.mark.parametrize(("said", "mib_s"), [("512.50 MB/sec", 512.5), ("800.00 kB/s", 0.78125),
                                             ("1.50 GB/sec", 1536.0)])  # fmt: skip
def test_hdparms_units_are_of_1024(said: str, mib_s: float, tmp_path: Path) -> None:
    text = f"/dev/x:\n Timing buffered disk reads:  32 MB in  3.00 seconds = {said}\n"
    assert hdparm._outcome(text).value == mib_s
    with pytest.raises(RunError, match="device too small"):
        hdparm._outcome("/dev/x:\n Timing buffered disk reads: device too small\n")
    with pytest.raises(RunError, match=r"^hdparm: printed no figure: it wrote nothing$"):
        hdparm._outcome("\n")


def measured(scheduler: str, repeat: int, value: float, *, higher: bool) -> Measurement:
    counters = {"read_ios": 1, "write_ios": 1}
    figure = Figure(value, "s", higher)
    return Measurement("d", "p", scheduler, repeat, repeat, 1, 5e6, 5, {}, counters, None,
                       figure=figure)  # fmt: skip


@pytest.mark.parametrize(("higher", "best"), [(True, "slow"), (False, "quick")])
def test_a_program_without_latencies_is_ranked_by_its_figure(higher: bool, best: str) -> None:
    runs = [
        measured(name, repeat, value * (1 + repeat / 1000), higher=higher)
        for repeat in range(5)
        for name, value in (("quick", 1.0), ("slow", 2.0))
    ]
    found = analyse(runs, "both")
    [cell] = found.cells
    assert cell.rows[0].scheduler == best
    for objective in ("throughput", "both"):
        verdict = cell.verdicts[objective]
        assert isinstance(verdict, Verdict) and verdict.winner == best
        [gap] = verdict.behind.values()
        assert gap.estimate == pytest.approx(2.0)
    assert cell.verdicts["latency"] == NOT_MEASURED
    told = summarise(found)["cells"][0]
    assert (told["figure_unit"], told["figure_higher_is_better"]) == ("s", higher)
    assert {row["figure"]["estimate"] for row in told["ranking"]} == {1.002, 2.004}


def test_a_figure_is_kept_as_it_is() -> None:
    one = measured("none", 0, 3.25, higher=False)
    assert from_json(json.loads(plain.encode(one))) == one


def test_a_comparison_has_the_figure_in_table_json_report_store_and_csv(
    mounted: Path, tmp_path: Path
) -> None:
    command = ["compare", "--rig", "live", "--disk", str(mounted), "--workload", SMALL["sqlite"],
               "--scheduler", "none", "--scheduler", "bfq", "--repeats", "2",
               "--out", str(tmp_path / "out")]  # fmt: skip
    done = CliRunner().invoke(app, [*command, "--json"])
    assert done.exit_code == 0, done.output
    [cell] = json.loads(done.stdout)["cells"]
    assert (cell["figure_unit"], cell["latency_of"]) == ("rows/s", "operation")
    assert all(row["figure"]["estimate"] > 0 for row in cell["ranking"])
    page = (tmp_path / "out/report.html").read_text()
    assert "<th>rows/s</th>" in page
    assert "figure, rows/s: more is better" in page
    shown = CliRunner().invoke(app, ["results", "show", "1"])
    assert "rows/s" in shown.output
    rows = CliRunner().invoke(app, ["results", "export", "1", "--format", "csv"])
    assert rows.exit_code == 0, rows.output
    assert "figure,figure_unit" in rows.stdout.splitlines()[0]
    assert rows.stdout.count(",rows/s,True,") == 4
    again = CliRunner().invoke(app, ["results", "diff", "1", "1"])
    assert "A rows/s" in again.output


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("sqlite:insertion=1", "sqlite: no parameter 'insertion'; did you mean 'insertions'?"),
        ("sqlite:insertions", "sqlite: expected parameter=value behind ':', found 'insertions'"),
        ("sqlite:insertions=0", "sqlite: insertions: expected 1 to 1000000, found '0'"),
        ("sqlite:insertions=1e3", "sqlite: insertions: expected 1 to 1000000, found '1e3'"),
        ("sqlite:wal=1,wal=0", "sqlite: 'wal' is given twice"),
        ("sqlit", "no workload 'sqlit'; did you mean 'sqlite'?"),
    ],
)
def test_a_wrong_name_or_parameter_of_a_program_is_one_line(spec: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        specs.workload(spec)
    assert str(error.value) == message


def test_a_program_is_refused_where_none_can_run(tmp_path: Path) -> None:
    line = (
        "blklab: sqlite: is a real program, which --rig sim does not run; it needs --rig kernel or "
        "--rig live"
    )
    for command in (
        ["compare", "--workload", "sqlite", "--out", str(tmp_path)],
        ["explain", "sqlite", "--disk", "950pro-256gb"],
    ):
        done = subprocess.run([*BLKLAB, *command], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr.splitlines()) == (2, [line])
    done = subprocess.run(
        [*BLKLAB, "fio", "sqlite", "--disk", "950pro-256gb"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "is not a fio job; to run it once: blklab compare --rig kernel" in done.stderr


def test_missing_tools_of_a_program_are_reported(
    mounted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacking = replace(programs.known("sqlite"), needs={"nosuch": "nosuch-tools"})
    monkeypatch.setattr(programs, "known", lambda _: lacking)
    with pytest.raises(InputError, match="needs nosuch: apt-get install nosuch-tools"):
        ran(mounted, "sqlite")
    listed = CliRunner().invoke(app, ["workloads"])
    assert "(needs nosuch: apt-" in " ".join(listed.output.split())


def test_a_program_that_would_fill_the_file_system_is_refused(mounted: Path) -> None:
    with pytest.raises(InputError, match=r"may need .* a tenth of the file system stays free"):
        ran(mounted, "sqlite:insertions=1000000,row_bytes=1000")
    assert not list(mounted.glob(".blklab-*"))


def test_the_device_itself_is_no_place_for_files(tmp_path: Path) -> None:
    loop_device.require()
    with (
        loop_device.attached(tmp_path) as name,
        pytest.raises(InputError, match="works in a directory: expected --disk DIRECTORY"),
    ):
        ran(Path("/dev") / name, "sqlite")


def test_workloads_tells_all_of_a_program() -> None:
    done = CliRunner().invoke(app, ["workloads", "sqlite:copies=3"])
    assert done.exit_code == 0
    for part in ("Figure: rows/s, more is better", "Latency: of an insertion",
                 "copies = 3  (default 1, 1 to 64)"):  # fmt: skip
        assert part in done.output
    done = CliRunner().invoke(app, ["workloads", "--json"])
    found = {row["name"]: row for row in json.loads(done.stdout)}
    assert found["sqlite"]["kind"] == "program"
    assert found["randread"]["kind"] == "fio"


def test_an_error_in_a_program_is_one_line(mounted: Path) -> None:
    rig = LiveRig()
    text = "program=sqlite\ninsertions=-3\n"
    wrong = Entry("x", Path("x"), text, kind="program")
    one = replace(experiment(rig, mounted, "sqlite"), job=wrong)
    with pytest.raises(InputError, match="insertions: expected 1 to"):
        rig.run(one)
    # A full file system, in the middle of it.
    with rig.prepared([good := experiment(rig, mounted, "sqlite:row_bytes=10000")], print):
        filler = mounted / "filler"
        with filler.open("wb") as file, contextlib.suppress(OSError):
            while True:
                os.posix_fallocate(file.fileno(), file.seek(0, os.SEEK_END), MIB)
        os.truncate(filler, filler.stat().st_size - MIB)
        try:
            with pytest.raises(RunError, match=r"^sqlite: .*(full|disk I/O error|No space left)"):
                rig.run(good)
        finally:
            filler.unlink()
    assert not list(mounted.glob(".blklab-*"))


def processes_in(directory: Path) -> list[int]:
    """Those whose current directory lies in it."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdecimal() and (entry / "cwd").readlink().is_relative_to(directory):
                found.append(int(entry.name))
    return found


def wait_for(what: object, seconds: float = 30.0) -> None:
    assert callable(what)
    end_s = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end_s, "did not happen"
        time.sleep(0.02)


def public_python() -> list[str]:
    """A Python that every user can start, and that finds blklab."""
    # This one may lie in root's home.
    code = "import blklab.cli, sys; print(sys.executable)"
    found = f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"
    done = subprocess.run(
        [*NOBODY, *PUBLIC_PATH, found, "-c", code], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"no Python that every user can start: {found}: {done.stderr.strip()[-80:]}")
    return [*PUBLIC_PATH, found]


NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
PUBLIC_PATH = ["env", f"PYTHONPATH={':'.join(path for path in sys.path if path)}"]


@pytest.mark.parametrize("name", ["sqlite", "pgbench", "startup", "sysbench-oltp", "tpcc"])
def test_an_ordinary_user_runs_programs(name: str) -> None:
    require(name)
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        with loop_device.file_system(Path(place), 768 * MIB) as mounted:
            own = mounted / "own"
            own.mkdir()
            os.chown(own, 65534, 65534)
            if name == "tpcc":
                # Where this user's own `go install` puts it: other users cannot reach ours.
                (own / "go/bin").mkdir(parents=True)
                shutil.copy(tpcc.find("go-tpc") or "", own / "go/bin/go-tpc")
            [disk] = targets.find(str(own)).disks
            (Path("/sys/block") / disk / "queue/scheduler").write_text("none")
            command = ["compare", "--rig", "live", "--disk", str(own), "--workload", SMALL[name],
                       "--scheduler", "none", "--repeats", "1", "--out", f"{own}/out",
                       "--store", f"{own}/store.db", "--json"]  # fmt: skip
            done = subprocess.run(
                [*NOBODY, *public_python(), "-m", "blklab", *command],
                env=os.environ | {"BLKLAB_JOURNAL": f"{own}/journal", "HOME": str(own)},
                cwd=own,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            [row] = json.loads(done.stdout)["cells"][0]["ranking"]
            assert row["figure"]["estimate"] > 0
            assert not list(own.glob(".blklab-*"))


LONG = {
    "pgbench": "pgbench:scale=1,clients=2,duration_s=100",
    "sqlite": "sqlite:insertions=200000,row_bytes=10",
    "sysbench-oltp": "sysbench-oltp:tables=1,rows=1000,threads=2,duration_s=100",
    "tpcc": "tpcc:warehouses=1,threads=2,duration_s=40",
}


@pytest.mark.parametrize("name", LONG)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_killed_a_program_ends_with_us_and_its_files_go(
    name: str, number: signal.Signals, mounted: Path, journal: Journal, tmp_path: Path
) -> None:
    require(name)
    command = [*BLKLAB, "compare", "--rig", "live", "--disk", str(mounted), "--workload",
               LONG[name], "--scheduler", "none", "--repeats", "1",
               "--out", str(tmp_path)]  # fmt: skip
    started = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(lambda: list(mounted.glob(".blklab-*/work/*")) and processes_in(mounted))
    started.send_signal(number)
    started.wait(timeout=60)
    wait_for(lambda: not processes_in(mounted), 10)
    if number == signal.SIGKILL:
        assert list(mounted.glob(".blklab-*/work"))
        found = leftovers.restore(journal)
        assert not found.problems
    assert (list(mounted.glob(".blklab-*")), journal.keys()) == ([], [])
