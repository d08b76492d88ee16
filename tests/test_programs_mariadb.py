"""Programs on a private MariaDB server: their results, and the server's access control."""

from __future__ import annotations

import os
import pwd
import re
import signal
import socket
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from subprocess import Popen
from typing import Any

import numpy as np
import pytest

from blklab import programs
from blklab.base.journal import Journal, default_directory
from blklab.domain import specs
from blklab.domain.experiment import Experiment
from blklab.domain.result import Result
from blklab.errors import RunError
from blklab.programs import mariadb, sysbench_oltp, tpcc
from blklab.programs import server as server_module
from blklab.programs.place import Place
from blklab.rigs.live.rig import LiveRig
from tests import loop_device

MIB = 1 << 20


def require(name: str) -> None:
    if why := programs.known(name).missing():
        pytest.skip(why)


@pytest.fixture
def mounted() -> Iterator[Path]:
    """A file system of 1 GiB on a loop device."""
    with (
        tempfile.TemporaryDirectory() as above,
        loop_device.file_system(Path(above), 1024 * MIB) as place,
    ):
        Path(above).chmod(0o711)
        yield place


@pytest.fixture
def place() -> Iterator[Place]:
    """A directory that every user may enter, with a name that a shell would interpret."""
    with tempfile.TemporaryDirectory() as above:
        Path(above).chmod(0o711)
        directory = Path(above) / "a 'b' \"$(touch c)\" `touch d`; touch e"
        directory.mkdir()
        yield Place(directory, None, 1)
        assert not {"c", "d", "e"} & {path.name for path in Path(above).rglob("*")}


@pytest.fixture(params=["mysql", "nobody"])
def user(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The user of the server: Debian's own packages create the first or not."""
    name: str = request.param
    if os.geteuid() != 0 or name not in {entry.pw_name for entry in pwd.getpwall()}:
        pytest.skip(f"needs root and a user {name}")
    monkeypatch.setattr(mariadb, "user_of", lambda _: name)
    return name


def ran(where: Path, spec: str) -> Result:
    rig = LiveRig()
    one = Experiment(specs.workload(spec), rig.find_disk(str(where)), specs.scheduler("none"), 1)
    with rig.prepared([one], lambda _: None):
        return rig.run(one)


def test_sysbench_oltp_has_every_transaction_and_its_figure(mounted: Path) -> None:
    require("sysbench-oltp")
    result = ran(
        mounted, "sysbench-oltp:tables=2,rows=2000,threads=2,duration_s=3,buffer_pool_mib=8"
    )
    text = result.raw["sysbench.txt"].decode()
    done = re.search(r"transactions: +(\d+) +\(([0-9.]+) per sec", text)
    assert done
    assert result.figure is not None
    assert (result.figure.value, result.figure.unit) == (float(done[2]), "tps")
    assert len(result.operations_ns) == int(done[1]) > 0
    # As sysbench itself counts: steps of 2 %.
    p99_ms = re.search(r"99th percentile: +([0-9.]+)", text)
    mean_ms = re.search(r"avg: +([0-9.]+)", text)
    assert p99_ms
    assert mean_ms
    # Its rank is rounded: of 30 transactions it is the longest.
    rank = int(0.99 * len(result.operations_ns) + 0.5)
    found_ms = np.sort(result.operations_ns)[rank - 1] / 1e6
    assert found_ms == pytest.approx(float(p99_ms[1]), rel=0.1)
    assert result.operations_ns.mean() / 1e6 == pytest.approx(float(mean_ms[1]), rel=0.03)
    assert "Number of threads: 2" in text
    assert "Initializing random number generator from seed (2)" in text
    # Each transaction was on the disk at its end; some share a flush.
    assert result.disk.write_ios >= len(result.operations_ns) / 2
    # The tables were not in memory.
    assert result.disk.read_sectors * 512 >= 2 * 2000 * 190 / 2


def test_tpcc_has_go_tpcs_figure_of_all_five_transactions(mounted: Path) -> None:
    require("tpcc")
    there = sorted(mounted.iterdir())
    result = ran(mounted, "tpcc:warehouses=1,threads=2,duration_s=3,buffer_pool_mib=16")
    assert (sorted(mounted.iterdir()), Journal(default_directory()).keys()) == (there, [])
    text = result.raw["go-tpc.txt"].decode()
    assert result.figure is not None
    assert f"tpmC: {result.figure.value:.1f}, tpmTotal: " in text
    assert (result.figure.unit, result.figure.higher_is_better) == ("tpmC", True)
    kinds = set(re.findall(r"^\[Summary\] (\w+) - ", text, re.MULTILINE))
    assert (
        {"NEW_ORDER", "PAYMENT"}
        <= kinds
        <= {
            *("NEW_ORDER", "PAYMENT", "ORDER_STATUS", "DELIVERY", "STOCK_LEVEL"),
            *(
                "NEW_ORDER_ERR",
                "PAYMENT_ERR",
                "DELIVERY_ERR",
                "ORDER_STATUS_ERR",
                "STOCK_LEVEL_ERR",
            ),
        }
    )
    orders = re.search(r"NEW_ORDER - Takes.s.: ([0-9.]+), Count: (\d+)", text)
    assert orders
    assert result.figure.value == pytest.approx(60 * int(orders[2]) / float(orders[1]), rel=0.1)
    # A new order writes ten lines or so, and is on the disk when it is over.
    assert result.disk.write_ios >= int(orders[2]) / 2
    assert not len(result.operations_ns)


def test_a_tcp_account_gets_one_database_and_no_files(place: Place, user: str) -> None:
    require("sysbench-oltp")
    server = mariadb.Server(place, 8, 2, tcp=True)
    account = server.account
    assert account is not None
    server.make()
    assert (server.owner, (place.directory / "data").owner()) == (user, user)
    secret = place.directory / "data/secret.txt"
    secret.write_text("secret")
    secret.chmod(0o644)

    def sql(text: str, *login: str) -> str:
        words = ["mariadb", "--no-defaults", "--protocol=tcp", "--host=127.0.0.1", "-N",
                 f"--port={account.port}", *(login or own), "-e", text]  # fmt: skip
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    own = [f"--user={account.user}", f"--password={account.password}"]
    with server.running():
        server.make_database()
        sql(
            f"CREATE TABLE {mariadb.DATABASE}.t (n INT); INSERT INTO {mariadb.DATABASE}.t VALUES(7)"
        )
        assert sql(f"SELECT n FROM {mariadb.DATABASE}.t") == "7\n"
        for refused in ("SELECT user FROM mysql.user", "CREATE DATABASE other",
                        "SELECT 1 INTO OUTFILE '/tmp/out'"):  # fmt: skip
            assert re.search("denied", sql(refused)), refused
        # The server itself can read it.
        read = f"SELECT LOAD_FILE(0x{os.fsencode(secret).hex()})"
        admin = ("--no-defaults", f"--socket={server.socket}", f"--user={server.owner}", "-N")
        assert server.call("mariadb", *admin, "-e", read) == "secret\n"
        assert sql(read) == "NULL\n"
        # Neither a user without the password nor the server's administrator can log in.
        assert "denied" in sql("SELECT 1", f"--user={account.user}", "--password=")
        assert "denied" in sql("SELECT 1", f"--user={account.user}", "--password=x")
        for other in ("root", "mysql", "nobody", "mariadb.sys", ""):
            assert "denied" in sql("SELECT 1", f"--user={other}"), other
    assert stat.S_IMODE((place.directory / "data").stat().st_mode) == 0o700


def test_a_server_reads_no_settings_of_others_and_begins_with_nothing_in_memory(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    require("sysbench-oltp")
    home = place.directory / "home"
    home.mkdir()
    (home / ".my.cnf").write_text("[client]\nnosuch-option=1\n[mariadbd]\nnosuch-option=1\n")
    for name in ("HOME", "MYSQL_HOME"):
        monkeypatch.setenv(name, str(home))
    server = mariadb.Server(place, 8, 2)
    server.make()
    with server.running():
        server.make_database()

    def told(text: str) -> dict[str, str]:
        words = ("--no-defaults", f"--socket={server.socket}", f"--user={server.owner}", "-N", "-e")
        lines = server.call("mariadb", *words, text).splitlines()
        return dict(line.split("\t") for line in lines)

    with server.running():
        settings = told("SHOW GLOBAL VARIABLES")
        status = told("SHOW GLOBAL STATUS LIKE 'innodb_buffer_pool_pages_data'")
    assert settings["skip_networking"] == "ON"
    assert settings["port"] == "0"
    assert int(settings["innodb_buffer_pool_size"]) == 8 * MIB
    assert settings["innodb_flush_log_at_trx_commit"] == "1"
    assert settings["innodb_flush_method"] == "O_DIRECT"
    assert settings["innodb_buffer_pool_load_at_startup"] == "OFF"
    # What it needs to start; of 16 KiB each.
    assert int(status["Innodb_buffer_pool_pages_data"]) < 256


def test_a_server_that_does_not_come_up_says_why(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    require("sysbench-oltp")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        monkeypatch.setattr(mariadb, "_free_port", lambda: taken.getsockname()[1])
        server = mariadb.Server(place, 8, 2, tcp=True)
        server.make()
        with pytest.raises(RunError, match=r"^mariadbd: .*Can't start server.*[Aa]ddress"):
            server.running().__enter__()


def test_output_without_a_figure_is_one_line() -> None:
    failed = "Threads started!\nFATAL: mysql_stmt_execute() returned error 126\n"
    with pytest.raises(RunError, match=r"^sysbench: printed no figure: FATAL: mysql_stmt_execute"):
        sysbench_oltp._outcome(failed)
    failed = "Finished\nfailed to ping db, err dial tcp 127.0.0.1:1: connection refused\n"
    with pytest.raises(
        RunError, match=r"^go-tpc: printed no figure: failed to ping db, .* refused$"
    ):
        tpcc._outcome(failed)


def test_a_run_that_is_too_short_for_a_new_order_is_one_line_with_what_helps() -> None:
    short = "Finished\n[Summary] STOCK_LEVEL - Takes(s): 0.2, Count: 1, TPM: 276.7\n"
    with pytest.raises(RunError, match=r"^go-tpc: no new order ended .* by duration_s=\.\.\.$"):
        tpcc._outcome(short)
    both = (
        f"{short}[Summary] NEW_ORDER - Takes(s): 1.9, Count: 2\ntpmC: 63.2, tpmTotal: 90.0, eff\n"
    )
    assert tpcc._outcome(both).value == 63.2


def test_go_tpc_is_found_where_go_installs_it_else_the_command_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    told = programs.known("tpcc").missing()
    assert told.startswith("needs go-tpc, ")
    assert told.endswith(f"; {tpcc.INSTALL}") or told.endswith(f": {tpcc.INSTALL}")
    binary = tmp_path / "go/bin/go-tpc"
    binary.parent.mkdir(parents=True)
    binary.write_text("#!/bin/true\n")
    binary.chmod(0o755)
    assert tpcc.find("go-tpc") == str(binary)
    assert "go-tpc" not in programs.known("tpcc").missing()


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ("sysbench-oltp:tables=1,rows=700000", "sysbench: .*The table 'sbtest1' is full"),
        ("tpcc:warehouses=1,duration_s=1", "go-tpc: .*The table '.*' is full"),
    ],
)
def test_a_full_file_system_is_one_line(spec: str, why: str, mounted: Path) -> None:
    name = spec.partition(":")[0]
    require(name)
    rig = LiveRig()
    one = Experiment(specs.workload(spec), rig.find_disk(str(mounted)), specs.scheduler("none"), 1)
    with rig.prepared([one], print):
        filler = mounted / "filler"
        free = os.statvfs(mounted).f_bavail * os.statvfs(mounted).f_frsize
        with filler.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, free - 170 * MIB)
        # The server may end before its client is told: then these are its words (28 is ENOSPC).
        ends = r"mariadbd: [^\n]*InnoDB: [^\n]* failed with error 28"
        with pytest.raises(RunError, match=rf"^{name}: (?:{why}|{ends})"):
            rig.run(one)
    assert not list(mounted.glob(".blklab-*"))


def test_of_a_server_that_has_ended_its_own_words_are_told_and_not_its_clients(
    place: Place,
) -> None:
    site = server_module.Site(place, "Short", None)
    site.make()
    ready, go = site.data / "ready", site.data / "go"
    dying = "touch ready; until test -e go; do sleep 0.01; done; echo No space left; exit 3"

    def broken() -> None:
        with site.running(["sh", "-c", dying], ready.exists, signal.SIGTERM):
            go.touch()
            raise RunError("client: invalid connection")

    with pytest.raises(RunError, match=r"^sh: No space left$"):
        broken()


def test_a_server_that_does_not_stop_is_killed_and_that_is_said(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "_STOP_S", 0.2)
    site = server_module.Site(place, "Stubborn", None)
    site.make()
    ready = site.data / "ready"
    deaf = ["sh", "-c", "trap '' TERM; echo Disk is full; touch ready; while :; do sleep 1; done"]
    started: list[Popen[bytes]] = []
    start = Place.start

    def kept(*words: Any) -> Popen[bytes]:
        started.append(start(*words))
        return started[0]

    monkeypatch.setattr(Place, "start", kept)
    with (
        pytest.raises(RunError, match=r"^sh: does not stop: Disk is full$"),
        site.running(deaf, ready.exists, signal.SIGTERM),
    ):
        assert started[0].poll() is None
    assert started[0].returncode == -signal.SIGKILL
