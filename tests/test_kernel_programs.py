"""Real programs as workloads of the kernel rig: their figures, their costs, their failures."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from blklab import programs
from blklab.cli import app
from blklab.domain import specs
from blklab.domain.experiment import Experiment, RigSpec
from blklab.domain.result import Result
from blklab.errors import BlklabError, InputError
from blklab.programs import command
from blklab.programs.file_system import FileSystem, parse
from blklab.rigs import check_workload
from blklab.rigs.kernel import program_load
from blklab.rigs.kernel import rig as kernel_rig
from blklab.rigs.kernel.outcome import Lateness
from blklab.rigs.kernel.rig import KernelRig
from tests import real_kernel
from tests.test_programs import SMALL

_SMALL_MEMORY = {"memory_kb": 256 << 10}


def experiment(
    spec: str, scheduler: str = "none", *, fs: str | None = None, disk: str = "wd10ezrx"
) -> Experiment:
    [job] = specs.on_file_systems([specs.workload(spec)], [fs] if fs else [])
    return Experiment(job, specs.disk(disk), specs.scheduler(scheduler), 1, dict(_SMALL_MEMORY))


def ran(kernel: str, one: Experiment) -> Result:
    rig = KernelRig(kernel)
    with rig.prepared([one], lambda _: None):
        return rig.run(one)


def refused(kernel: str, one: Experiment) -> str:
    """The only line of the error."""
    with pytest.raises(BlklabError) as error:
        ran(kernel, one)
    text = str(error.value)
    assert text.isprintable()
    return text


def require(name: str) -> None:
    if why := programs.known(name).missing():
        pytest.skip(why)


@pytest.mark.parametrize("name", programs.NAMES)
def test_a_program_gives_its_figure_and_its_costs(name: str, kernel: str) -> None:
    program = programs.known(name)
    require(name)
    if program.nfsd_threads is not None:
        kernel = real_kernel.with_nfs()
    result = ran(kernel, experiment(SMALL[name], "bfq"))
    assert result.figure is not None
    assert result.figure.value > 0
    assert (result.figure.unit, result.figure.higher_is_better) == (
        program.unit,
        program.higher_is_better,
    )
    assert bool(len(result.operations_ns)) == bool(program.operation)
    assert result.duration_ns > 0
    disk, costs = result.disk, result.costs
    assert costs is not None
    # What the events told is what the kernel counted.
    moved = costs.during
    if program.on_device:
        # At the moment of its end a read may be counted by one and not by the other.
        assert moved.read.bytes == pytest.approx(disk.read_sectors * 512, rel=0.01)
        return
    assert moved.read.bytes == disk.read_sectors * 512
    written = (moved.data, moved.journal, moved.metadata)
    assert sum(one.bytes for one in written) == disk.write_sectors * 512
    # The kernel counts a write that is flushed once more when its flush has ended.
    count = sum(one.count for one in written)
    assert count <= disk.write_ios <= count + moved.flushes
    assert moved.flushes > 0
    assert len(result.series.in_flight_milli)
    assert len(result.overview.sector) >= 5


def test_the_costs_of_an_insertion_are_those_of_its_files(kernel: str) -> None:
    result = ran(kernel, experiment("sqlite:insertions=50"))
    assert result.costs is not None
    moved, commits = result.costs.during, result.costs.commits
    # The rollback journal is created, written and deleted, the database written: by fdatasync.
    assert moved.flushes == pytest.approx(4 * 50, rel=0.05)
    assert moved.fua == 0
    assert commits == pytest.approx(50, rel=0.1)
    assert moved.data.bytes > moved.journal.bytes / 2 > 0
    fua = ran(kernel, experiment("sqlite:insertions=50", disk="su800-128gb:fua=on"))
    assert fua.costs is not None
    assert fua.costs.during.fua == pytest.approx(50, rel=0.1)
    # The commit's second flush is a bit of its write.
    assert fua.costs.during.flushes == pytest.approx(3 * 50, rel=0.05)


def test_a_write_of_a_command_is_written_once_or_twice_by_the_file_systems_mode(
    kernel: str,
) -> None:
    # As much as the program asked for, and with data=journal twice.
    line = "command:dd if=/dev/urandom of=a bs=1M count=8 conv=fsync status=none"
    once, twice = (
        ran(kernel, experiment(line, fs=fs)).costs for fs in ("ext4", "ext4:data=journal")
    )
    assert once is not None
    assert twice is not None
    assert once.asked_bytes == pytest.approx(8 << 20, rel=0.001)
    assert once.during.data.bytes == 8 << 20
    assert once.during.journal.bytes < 1 << 20
    assert twice.during.journal.bytes >= 8 << 20
    assert twice.during.data.bytes + twice.after.data.bytes >= 8 << 20


def test_every_scheduler_finds_the_same_files_and_a_seed_repeats(kernel: str) -> None:
    def sectors(scheduler: str) -> list[tuple[int, int]]:
        line = "command:dd if=/dev/zero of=a bs=64k count=64 status=none :: cat a"
        seen = ran(kernel, experiment(line, scheduler)).overview
        return sorted(zip(seen.sector.tolist(), seen.sectors.tolist(), strict=True))

    first = sectors("none")
    assert first == sectors("bfq") == sectors("none")
    # Prepared data are not cached when the measured part begins.
    assert sum(length for _, length in first) * 512 >= 64 << 16


def test_options_of_mkfs_reach_it(kernel: str) -> None:
    line = "command:sh -c 'stat -f -c %S . && cat /proc/mounts'"
    result = ran(kernel, experiment(line, fs="ext4:-b=1024,noatime,-O=^resize_inode,-O=^64bit"))
    said = result.raw["output.txt"].decode().splitlines()
    assert said[0] == "1024"
    [mount] = [row.split() for row in said if " /mnt " in row]
    assert "noatime" in mount[3].split(",")


@pytest.mark.parametrize(
    ("spec", "fs", "words"),
    [
        ("sqlite", "ext5", "no file system 'ext5'; did you mean 'ext4'?"),
        ("sqlite", "ext4:data journal", "expected options of mount (data=journal)"),
        ("sqlite", "ext4:-n", "-n is no option to choose"),
        ("command:", None, "command: expected a program and its arguments"),
        ("command:a :: ", None, "command: expected a program and its arguments"),
        ("command:echo 'a", None, "command: No closing quotation"),
        ("command:no-such-program-here", None, "needs no-such-program-here"),
    ],
)
def test_a_wrong_program_or_file_system_is_one_line_before_anything_runs(
    spec: str, fs: str | None, words: str
) -> None:
    with pytest.raises(InputError) as error:
        from blklab.rigs.kernel.program_load import ProgramLoad

        ProgramLoad.of(experiment(spec, fs=fs))
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("spec", "fs", "disk", "words"),
    [
        ("command:false", None, "wd10ezrx", "command: false: failed with exit code 1"),
        ("command:sh -c 'echo oh >&2; exit 3'", None, "wd10ezrx", "command: sh: oh"),
        ("command:sh -c 'kill -9 $$'", None, "wd10ezrx", "command: sh: failed with exit code"),
        ("command:sh -c 'kill -9 $PPID'", None, "wd10ezrx", "was ended by signal 9"),
        (
            "command:dd if=/dev/zero of=a bs=1M count=100 status=none",
            None,
            "wd10ezrx:capacity_sectors=131072",
            "No space left on device",
        ),
        (
            "sqlite",
            "ext4:data=jurnal",
            "wd10ezrx",
            "mounting ext4 on /mnt: ext4: Bad value for 'data'",
        ),
        ("sqlite", "ext4:-b=1000", "wd10ezrx", "mkfs.ext4 failed: "),
    ],
)
def test_a_failure_is_one_line_with_the_programs_own_words(
    kernel: str, spec: str, fs: str | None, disk: str, words: str
) -> None:
    assert words in refused(kernel, experiment(spec, fs=fs, disk=disk))


def test_too_small_a_disk_or_memory_is_one_line(
    kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = experiment("record-write:size_mib=500", disk="wd10ezrx:capacity_sectors=131072")
    assert "may need" in refused(kernel, small)
    assert "the disk has" in refused(kernel, small)
    # A guest of 240 MiB; piece by piece, since Python is told of one that is too large.
    monkeypatch.setattr(program_load, "_COMMAND_ROOM_BYTES", 64 << 20)
    line = "command:python3 -c 'a = [bytes([1]) * (20 << 20) for _ in range(30)]'"
    greedy = replace(experiment(line), host={"memory_kb": 16 << 10})
    assert "MiB of memory" in refused(kernel, greedy)


def test_a_program_cannot_change_this_machine(kernel: str, tmp_path: Path) -> None:
    place = Path(tempfile.mkdtemp(prefix="blklab-test-"))
    try:
        place.chmod(0o777)
        target = place / "there"
        target.write_text("mine")
        target.chmod(0o666)
        tries = "; ".join(
            [
                f"echo theirs > {target}",
                f"rm -f {target}",
                f"mount -o remount,rw / && echo theirs > {target}",
                f"mount -t hostfs -o {place} none /mnt && echo theirs > /mnt/there",
                "echo 1 > /usr/bin/blklab-was-here",
                "true",
            ]
        )
        with contextlib.chdir(place):
            ran(kernel, experiment(f'command:sh -c "{tries}"'))
        assert target.read_text() == "mine"
        assert not Path("/usr/bin/blklab-was-here").exists()
    finally:
        shutil.rmtree(place)


def test_a_program_that_leaves_processes_ends_with_its_run(kernel: str) -> None:
    # They would hold the output open for ever, and the disk.
    line = "command:sh -c '(while :; do echo x >> a; sleep 1; done) & sleep 2'"
    result = ran(kernel, experiment(line))
    assert result.figure is not None
    assert result.figure.value == pytest.approx(2, abs=0.5)


_SPIN = "import os; x = sum(range(3_000_000)); [os.getppid() for _ in range(2000)]"


def test_the_work_of_a_program_takes_time_unless_the_cpu_is_free(kernel: str) -> None:
    line = f"command:python3 -c '{_SPIN}'"
    taken: dict[str, Result] = {}
    for cpu in ("free", "1", "10"):
        rig = KernelRig(kernel, cpu=cpu)
        with rig.prepared([experiment(line)], lambda _: None):
            taken[cpu] = rig.run(experiment(line))
    costs = {cpu: result.costs for cpu, result in taken.items()}
    assert all(costs.values())
    used_ns = {cpu: one.cpu and one.cpu.user_ns for cpu, one in costs.items() if one}
    seconds = {cpu: result.figure.value for cpu, result in taken.items() if result.figure}
    assert used_ns["free"] is None
    assert "CPU work takes no time" in taken["free"].notes
    assert used_ns["1"]
    assert used_ns["10"]
    # Of this machine's time the program takes a good part of a second at most.
    assert 10e6 < used_ns["1"] < 2e9
    assert used_ns["10"] > 3 * used_ns["1"]
    # It passes on the guest's clock; the child around the command has its own part.
    assert seconds["1"] - seconds["free"] == pytest.approx(used_ns["1"] / 1e9, rel=0.5)
    assert any("not quite the same in every run" in note for note in taken["1"].notes)


def test_work_that_is_cheaper_than_measured_does_not_make_later_work_free(kernel: str) -> None:
    # Each of 5000 calls is said to cost 0.1 ms that is not charged: half a second in all.
    spin = (
        "import os, time; f = open('/sys/module/time/parameters/cpu_less_user_ns', 'w'); "
        "f.write('100000'); f.flush(); [os.getppid() for _ in range(5000)]; "
        "f.write('0'); f.flush(); a = time.monotonic(); x = sum(range(3_000_000)); "
        # Its time passes when it calls the kernel.
        "os.getppid(); print(time.monotonic() - a)"
    )
    line = f'command:python3 -c "{spin}"'
    rig = KernelRig(kernel, cpu="1")
    with rig.prepared([experiment(line)], lambda _: None):
        said = rig.run(experiment(line)).raw["output.txt"].decode()
    assert 0.005 < float(said) < 2


def test_a_program_that_is_never_done_where_the_cpu_is_free_is_refused(kernel: str) -> None:
    one = experiment("hdparm")
    rig = KernelRig(kernel, cpu="free")
    refused = pytest.raises(InputError, match="hdparm: would never end if CPU work took no time")
    with refused, rig.prepared([one], lambda _: None):
        pass
    for wrong in ("fast", "0", "-1", "nan", "1e9"):
        with pytest.raises(InputError, match="--cpu: expected 'free' or a factor"):
            KernelRig(kernel, cpu=wrong)


def test_a_disk_waits_for_no_program_that_computes(kernel: str) -> None:
    # Its server wakes while the program has the CPU: a late disk would fail the run.
    line = (
        "command:sh -c 'dd if=/dev/zero of=a bs=4k count=200 oflag=dsync status=none & "
        'python3 -c "x = sum(range(5_000_000))"; wait\''
    )
    assert ran(kernel, experiment(line, "mq-deadline")).figure


def test_programs_of_a_guest_talk_tcp_and_share_memory(kernel: str) -> None:
    both = (
        "import socket, threading; s = socket.create_server(('127.0.0.1', 0)); "
        "t = threading.Thread(target=lambda: s.accept()[0].sendall(b'by tcp')); t.start(); "
        "print(socket.create_connection(s.getsockname()).recv(9)); t.join(); "
        "from multiprocessing import shared_memory as m; a = m.SharedMemory(create=True, size=9); "
        "a.buf[0] = 7; b = m.SharedMemory(a.name); print(b.buf[0])"
    )
    said = ran(kernel, experiment(f'command:python3 -c "{both}"')).raw["output.txt"].decode()
    assert said.splitlines()[:2] == ["b'by tcp'", "7"]


def test_pgbench_has_every_transaction_and_its_figure(
    kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    require("pgbench")
    late: list[Lateness] = []
    monkeypatch.setattr(kernel_rig, "_check_lateness", lambda found, _: late.append(found))
    one = experiment("pgbench:scale=2,clients=8,duration_s=3,shared_buffers_mb=16")
    result = ran(kernel, one)
    # Eight clients and their backends want the CPU, and the disk's server gets it.
    assert late[0]["p99_ns"] < 10_000
    text = result.raw["pgbench.txt"].decode()
    done = re.search(r"transactions actually processed: (\d+)", text)
    assert done
    assert len(result.operations_ns) == int(done[1]) > 0
    assert result.figure is not None
    # Its time begins when the clients are connected.
    connecting = re.search(r"initial connection time = ([0-9.]+) ms", text)
    assert connecting
    check_time(result, 3 - float(connecting[1]) / 1e3)
    assert result.costs is not None
    # A commit is flushed, and some share a flush; the cache was empty.
    moved = result.costs.during
    assert int(done[1]) / 8 <= moved.flushes <= 2 * int(done[1])
    assert moved.read.bytes > 2 << 20
    # Without the rights of root.
    assert "could not" not in text


@pytest.mark.parametrize("name", ["pgbench", "sysbench-oltp"])
def test_a_database_repeats_exactly_where_the_cpu_is_free(name: str, kernel: str) -> None:
    require(name)
    rig, one = KernelRig(kernel, cpu="free"), experiment(SMALL[name], "bfq")
    with rig.prepared([one], lambda _: None):
        first, second = rig.run(one), rig.run(one)
    assert first.figure == second.figure
    assert len(first.operations_ns) > 0
    assert first.operations_ns.tolist() == second.operations_ns.tolist()
    assert first.costs == second.costs


def check_time(result: Result, seconds: float) -> None:
    """The figure is of `seconds` of the guest's clock and the transactions that were not done then;
    the server ends after them."""
    assert result.figure is not None
    measured = len(result.operations_ns) / result.figure.value
    assert seconds * 0.99 <= measured <= seconds * 1.01 + result.operations_ns.max() / 1e9
    assert measured <= result.duration_ns / 1e9 < measured + 5


def test_sysbench_oltp_has_every_transaction_of_an_empty_cache_and_its_figure(kernel: str) -> None:
    require("sysbench-oltp")
    settings = "tables=2,rows=2000,threads=4,duration_s=3,buffer_pool_mib=8"
    result = ran(kernel, experiment(f"sysbench-oltp:{settings}", disk="su800-128gb"))
    text = result.raw["sysbench.txt"].decode()
    done = re.search(r"transactions: +(\d+) +\(([0-9.]+) per sec", text)
    assert done
    assert len(result.operations_ns) == int(done[1]) > 0
    assert result.figure is not None
    assert (result.figure.value, result.figure.unit) == (float(done[2]), "tps")
    check_time(result, 3)
    assert result.costs is not None
    # A commit is flushed, and some share a flush; the cache was empty.
    moved = result.costs.during
    assert int(done[1]) / 4 <= moved.flushes <= 2 * int(done[1])
    assert moved.read.bytes >= 2 * 2000 * 190


def test_tpcc_has_the_figure_of_a_client_that_is_not_below_usr(kernel: str) -> None:
    require("tpcc")
    client = programs.known("tpcc").find("go-tpc")
    assert client is not None
    assert not Path(client).is_relative_to("/usr")
    result = ran(kernel, experiment("tpcc:warehouses=1,threads=2,duration_s=3", disk="su800-128gb"))
    text = result.raw["go-tpc.txt"].decode()
    assert result.figure is not None
    assert f"tpmC: {result.figure.value:.1f}, tpmTotal: " in text
    orders = re.search(r"NEW_ORDER - Takes.s.: ([0-9.]+), Count: (\d+)", text)
    assert orders
    # Of the guest's clock.
    assert float(orders[1]) == pytest.approx(3, rel=0.2)
    assert result.figure.value == pytest.approx(60 * int(orders[2]) / float(orders[1]), rel=0.1)
    assert result.costs is not None
    assert result.costs.during.flushes >= int(orders[2]) / 2


def test_a_program_is_refused_in_one_line_on_a_kernel_that_lacks_what_it_needs(
    kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    require("tpcc")
    one = experiment(SMALL["tpcc"])
    monkeypatch.setattr(program_load, "_TCP", "NO_SUCH_OPTION")
    line = refused(kernel, one)
    assert "needs TCP, and the kernel" in line
    assert line.endswith("lacks CONFIG_NO_SUCH_OPTION: blklab kernel build")
    monkeypatch.setattr(program_load, "_SPIN_PATCH", "no-such.patch")
    line = refused(kernel, one)
    assert "would never end, because no time passes for a program that waits" in line
    assert line.endswith("lacks no-such.patch: blklab kernel build")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (
            "pgbench:scale=1,duration_s=1,shared_buffers_mb=100000",
            "could not map anonymous shared memory",
        ),
        (
            "sysbench-oltp:tables=1,rows=10,duration_s=1,buffer_pool_mib=1000000",
            "mariadbd: .*Out of memory",
        ),
    ],
)
def test_a_server_that_cannot_start_is_one_line_with_its_own_words(
    spec: str, words: str, kernel: str
) -> None:
    name = spec.partition(":")[0]
    require(name)
    line = refused(kernel, experiment(spec))
    assert line.startswith(f"{name}: ")
    assert re.search(words, line)


def test_a_file_of_the_machines_own_tmp_that_a_command_names_is_there(kernel: str) -> None:
    with tempfile.TemporaryDirectory(prefix="blklab-test-") as name:
        Path(name).chmod(0o755)
        named, other = Path(name) / "named", Path(name) / "other"
        named.write_text("from the machine")
        other.write_text("not named")
        with contextlib.chdir("/"):
            line = f"command:sh -c 'cat $0; ls {name}; echo x > $0 || echo no' {named}"
            said = ran(kernel, experiment(line)).raw["output.txt"].decode()
        assert "from the machinenamed\n" in said
        assert said.endswith("no\n")
        assert named.read_text() == "from the machine"


def test_where_programs_run() -> None:
    for name in programs.NAMES:
        check_workload(RigSpec("kernel"), specs.workload(name))
    with pytest.raises(InputError, match="nfs-files: is a real program, which --rig live does not"):
        check_workload(RigSpec("live"), specs.workload("nfs-files"))
    with pytest.raises(InputError, match="--rig sim does not run; it needs --rig kernel or"):
        check_workload(RigSpec("sim"), specs.workload("sqlite"))
    with pytest.raises(InputError, match="command:ls: is a real program, which --rig live does"):
        check_workload(RigSpec("live"), specs.workload("command:ls"))
    [job] = specs.on_file_systems([specs.workload("sqlite")], ["ext4"])
    with pytest.raises(InputError, match="--fs: makes a file system on a modelled disk"):
        check_workload(RigSpec("live"), job)
    with pytest.raises(InputError, match="--fs: is for real programs"):
        specs.on_file_systems([specs.workload("oltp")], ["ext4"])


def test_a_file_systems_options_are_for_mkfs_with_a_dash_and_else_for_mount() -> None:
    assert parse("ext4") == FileSystem("ext4", text="ext4")
    found = parse("ext4:data=journal,-O=fast_commit,noatime,-O=^64bit,-J=size=16,--x")
    assert found.mount_options == ("data=journal", "noatime")
    assert found.mkfs_options == ("-O", "fast_commit,^64bit", "-J", "size=16", "--x")


def test_a_command_is_stored_and_read_as_it_was_written() -> None:
    text = "command:sh -c 'a=1..4; echo $a, b' :: cp a\\ b c"
    [entry] = specs.workloads([text])
    assert entry.name == text
    chosen = programs.chosen(entry)
    assert chosen.words == ("sh", "-c", "a=1..4; echo $a, b", "::", "cp", "a b", "c")
    assert command.taken_apart(chosen.words)[1] == ["cp", "a b", "c"]
    [on] = specs.on_file_systems([entry], ["ext4:data=journal"])
    again = programs.chosen(on)
    assert (again.words, again.file_system) == (chosen.words, parse("ext4:data=journal"))


def test_a_comparison_of_file_systems(kernel: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(
        app,
        [
            *("compare", "--rig", "kernel", "--kernel", kernel, "--disk", "wd10ezrx"),
            *("--workload", "sqlite:insertions=30", "--fs", "ext4", "--fs", "ext4:data=journal"),
            *("--scheduler", "none", "--scheduler", "bfq", "--repeats", "2", "--host"),
            *("memory_kb=262144", "--out", str(tmp_path), "--json", "--no-keep"),
        ],
    )
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    cells: Sequence[dict[str, Any]] = found["cells"]
    names = [cell["workload"] for cell in cells]
    assert names == [f"sqlite:insertions=30 on {fs}" for fs in ("ext4", "ext4:data=journal")]
    for cell in cells:
        assert cell["figure_unit"] == "rows/s"
        for row in cell["ranking"]:
            assert row["costs"]["flushes"] > 2
            assert row["costs"]["journal_bytes"] > 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "What an operation costs" in page


@pytest.mark.parametrize(
    ("cpu", "told"),
    [
        (None, "CPU work takes no time, that of programs as long as here;"),
        ("2.5", "CPU work takes no time, that of programs as long as here times 2.5;"),
        ("free", "CPU work takes no time, nor does that of programs;"),
    ],
)
def test_the_rig_says_how_long_the_cpu_work_of_programs_takes(
    cpu: str | None, told: str, kernel: str
) -> None:
    text = KernelRig(kernel, "fio", cpu=cpu).describe()["text"]
    assert told in text and "no file system but those of programs" in text
    by_default = KernelRig(kernel, cpu=cpu).describe()["text"]
    times = {None: "as long as here", "2.5": "as long as here times 2.5", "free": "in no time"}
    assert by_default.endswith(f"; real programs: 1 CPU, work {times[cpu]}")


def test_modelled_cpus_are_refused_for_a_program(kernel: str) -> None:
    rig = KernelRig(kernel)
    one = experiment("sqlite:insertions=10")
    for host in ({}, {"cpus": 1}, rig.check_host({})):
        with rig.prepared([replace(one, host=host)], print):
            pass
    with (
        pytest.raises(InputError, match=r"^--host: cpus is 1 for sqlite.*, a real program"),
        rig.prepared([replace(one, host={"cpus": 2})], print),
    ):
        pass
