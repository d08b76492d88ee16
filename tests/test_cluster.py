"""Runs on a cluster of real processes of Dask: the same bytes as in one process, whatever happens
to the processes meanwhile."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import blklab
from blklab.api.listener import Listener
from blklab.errors import BlklabError, InputError, MachineError, RunError
from blklab.execute import opened
from blklab.execute.cluster import workers
from tests import real_kernel
from tests.dask_processes import Processes, Wire, processes, until

JOB = "[a]\nrw=randread\ndirect=1\nsize=64m\n"
"""Some 50 ms of simulation."""
DISKS = ("wd10ezrx", "su800-128gb")
SCHEDULERS = ("none", "mq-deadline", "bfq")
REPEATS = 20
LOST = "the scheduler is lost; connecting again"
MIDDLE_BYTES = 1_000_000
"""What the scheduler sends until some runs have ended: 760 KB of Dask's own, then 5 KB a run."""
RUNS = len(DISKS) * len(SCHEDULERS) * REPEATS


@dataclass
class Notes(Listener):
    """Keeps the notes."""

    lines: list[str]

    def note(self, line: str) -> None:
        self.lines.append(line)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("cluster")
    (found / "job.fio").write_text(JOB)
    return found


def compared(place: Path, out: Path, on: str = "local", repeats: int = REPEATS) -> list[str]:
    """Compares, and returns the notes."""
    notes = Notes([])
    blklab.compare(
        disks=DISKS,
        workloads=[place / "job.fio"],
        schedulers=SCHEDULERS,
        repeats=repeats,
        out=out,
        on=on,
        listener=notes,
    )
    return notes.lines


@pytest.fixture(scope="module")
def expected(place: Path) -> bytes:
    """The results of one thread of this process."""
    blklab.compare(
        disks=DISKS, workloads=[place / "job.fio"], schedulers=SCHEDULERS, repeats=REPEATS,
        out=place / "here", max_parallel=1,
    )  # fmt: skip
    return (place / "here/results.json").read_bytes()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    """Two workers to which nothing happens."""
    with processes(tmp_path_factory.mktemp("dask"), workers=2) as made:
        yield made


@dataclass
class Command:
    """A running `blklab compare` that stores its runs."""

    place: Path
    out: Path
    process: subprocess.Popen[str]
    said: str = ""
    """The messages so far."""

    @property
    def stored(self) -> int:
        """The number of stored runs."""
        with sqlite3.connect(self.out / "store.db", timeout=30) as store:
            try:
                return int(store.execute("SELECT count(*) FROM run").fetchone()[0])
            except sqlite3.OperationalError:
                return 0

    def reach_the_middle(self, wire: Wire) -> None:
        """Wait until some runs are stored, and the wire holds back others."""
        wire.until_full()
        until(lambda: self.stored > 0 or self.process.poll() is not None, "a stored run")
        assert self.process.poll() is None, self.end()
        assert self.stored < RUNS

    def until_it_says(self, what: str) -> None:
        """Wait for a message."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said += line
            if what in line:
                return
        pytest.fail(f"no {what!r} in {self.said}")

    def end(self) -> tuple[int, str]:
        """The exit code and the messages."""
        assert self.process.stderr is not None
        self.said += self.process.stderr.read()
        return self.process.wait(timeout=300), self.said

    def check(self, expected: bytes) -> str:
        """It has the expected bytes, and each run once; returns its messages."""
        code, messages = self.end()
        assert code == 0, messages
        assert (self.out / "results.json").read_bytes() == expected
        assert self.stored == RUNS
        return messages


def command(place: Path, out: Path, on: str, *more: str) -> Command:
    out.mkdir(exist_ok=True)
    arguments = ["compare", "--on", on, "--out", str(out), "--store", str(out / "store.db")]
    if not more:
        more = ("--workload", str(place / "job.fio"), "--repeats", str(REPEATS))
        more += tuple(word for disk in DISKS for word in ("--disk", disk))
        more += tuple(word for name in SCHEDULERS for word in ("--scheduler", name))
    process = subprocess.Popen(
        [sys.executable, "-m", "blklab", *arguments, *more],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    return Command(place, out, process)


def test_workers_give_the_same_bytes(
    cluster: Processes, place: Path, expected: bytes, tmp_path: Path
) -> None:
    assert compared(place, tmp_path, cluster.url) == []
    assert (tmp_path / "results.json").read_bytes() == expected


def test_a_cluster_that_dask_starts_gives_the_same_bytes(
    place: Path, expected: bytes, tmp_path: Path
) -> None:
    assert compared(place, tmp_path, "local:2") == []
    assert (tmp_path / "results.json").read_bytes() == expected


STUDY = """
title = "Two schedulers"
question = "For a test."
source = "nowhere"

[[part]]
name = "one"
rigs = ["sim"]
disks = ["su800-128gb"]
workloads = ["job.fio"]
schedulers = ["none", "kyber"]
"""


def test_studies_and_searches_give_the_same_answers(
    cluster: Processes, place: Path, tmp_path: Path
) -> None:
    (place / "study.toml").write_text(STUDY)
    found = [blklab.run_study(place / "study.toml", on=on) for on in ("local", cluster.url)]
    assert found[0].outcomes == found[1].outcomes
    tuned = [
        blklab.tune(disk="su800-128gb", workloads=[place / "job.fio"], schedulers=["mq-deadline"],
                    trials=10, repeats=2, store=str(tmp_path / f"{number}.db"), on=on)
        for number, on in enumerate(("local", cluster.url))
    ]  # fmt: skip
    assert tuned[0] == tuned[1]


def test_a_failed_run_has_the_same_message(cluster: Processes, tmp_path: Path) -> None:
    (tmp_path / "big.fio").write_text("[a]\nrw=read\ndirect=1\nsize=1m\nfilename=/dev/x\nbs=3\n")
    told = []
    for on in ("local", cluster.url):
        with pytest.raises(BlklabError) as failed:
            blklab.compare(disks=["wd10ezrx"], workloads=[tmp_path / "big.fio"], on=on)
        told.append(str(failed.value))
    assert told[0] == told[1]


@pytest.mark.parametrize(
    ("on", "told"),
    [
        ("tcp://127.0.0.1:1", "nothing listens there; expected a Dask scheduler, which `dask "),
        ("tcp://no.invalid:8786", "no.invalid cannot be reached: "),
        ("tcp://127.0.0.1", r"found 'tcp://127.0.0.1'; expected tcp://HOST:PORT"),
        ("tcp://127.0.0.1:99999", "expected tcp://HOST:PORT"),
        ("local:0", "found 'local:0'; expected a number from 1 to 1024 after local:"),
        ("slurm:many", "found 'slurm:many'; expected a number from 1 to 1024 after slurm:"),
        ("ssh:", "found 'ssh:'; expected names of hosts after ssh:"),
        ("127.0.0.1:8786", "found '127.0.0.1:8786'; expected local, the address of a Dask"),
        ("", "found ''; expected local, the address of a Dask scheduler"),
        ("tcp://a\nb:1", r"found 'tcp://a\\nb:1'; expected tcp://HOST:PORT"),
    ],
)
def test_a_place_that_does_not_exist_is_refused_in_one_line(on: str, told: str) -> None:
    with pytest.raises(InputError, match=told) as refused, opened(on, 1, print):
        pass
    assert str(refused.value).startswith("--on: ")
    assert "\n" not in str(refused.value)


def _answer(server: socket.socket, answer: bytes) -> None:
    with contextlib.suppress(OSError):
        while True:
            near, _ = server.accept()
            near.sendall(answer)


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n" * 9, b"SSH-2.0-x\r\n"])
def test_a_port_of_another_server_is_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch, answer: bytes
) -> None:
    monkeypatch.setattr("blklab.execute.cluster.connection._ANSWER_S", 2.0)
    with socket.create_server(("127.0.0.1", 0)) as other:
        url = f"tcp://127.0.0.1:{other.getsockname()[1]}"
        threading.Thread(target=_answer, args=(other, answer), daemon=True).start()
        with pytest.raises(InputError) as refused, opened(url, 1, print):
            pass
        other.shutdown(socket.SHUT_RDWR)
    assert f"--on: {url}: no scheduler of Dask answers there, but something" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_live_rig_stays_on_this_machine(cluster: Processes, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--rig live measures a disk of this machine; expected"):
        blklab.compare(rig="live", disks=[tmp_path], on=cluster.url)


def test_a_killed_worker_loses_and_doubles_no_run(
    place: Path, expected: bytes, tmp_path: Path
) -> None:
    with processes(tmp_path, workers=3) as made:
        wire = Wire(made.port, MIDDLE_BYTES)
        running = command(place, tmp_path / "out", wire.url)
        running.reach_the_middle(wire)
        for name in ("w0", "w1"):
            made.kill_worker(name)
        wire.go_on()
        running.check(expected)
        wire.close()


def test_a_scheduler_that_was_killed_and_started_again_gets_what_has_no_result(
    place: Path, expected: bytes, tmp_path: Path
) -> None:
    with processes(tmp_path, workers=2) as made:
        wire = Wire(made.port, MIDDLE_BYTES)
        running = command(place, tmp_path / "out", wire.url)
        running.reach_the_middle(wire)
        made.kill_scheduler()
        wire.go_on()
        running.until_it_says(LOST)
        made.start_scheduler()
        made.start_worker("later")
        running.check(expected)
        wire.close()


def test_a_scheduler_that_stays_away_leaves_runs_that_are_resumed_elsewhere(
    place: Path, expected: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT", "3s")
    with processes(tmp_path, workers=2) as made:
        wire = Wire(made.port, MIDDLE_BYTES)
        running = command(place, tmp_path / "out", wire.url)
        running.reach_the_middle(wire)
        made.kill_scheduler()
        wire.go_on()
        code, messages = running.end()
        wire.close()
    assert code == 1
    last = messages.splitlines()[-1]
    assert "the scheduler does not answer any more" in last
    assert "finished runs are stored; to continue: blklab compare --resume 1" in last
    assert 0 < running.stored < RUNS
    command(place, tmp_path / "out", "local", "--resume").check(expected)


def test_a_cut_network_between_caller_and_scheduler_is_mended(
    place: Path, expected: bytes, tmp_path: Path
) -> None:
    with processes(tmp_path, workers=2) as made:
        wire = Wire(made.port, MIDDLE_BYTES)
        running = command(place, tmp_path / "out", wire.url)
        running.reach_the_middle(wire)
        wire.cut()
        running.until_it_says(LOST)
        wire.is_cut = False
        running.check(expected)
        wire.close()


def test_a_cut_network_between_scheduler_and_a_worker_loses_no_run(
    place: Path, expected: bytes, tmp_path: Path
) -> None:
    with processes(tmp_path, workers=1) as made:
        to_far, wire = Wire(made.port), Wire(made.port, MIDDLE_BYTES)
        made.start_worker("far", url=to_far.url)
        running = command(place, tmp_path / "out", wire.url)
        running.reach_the_middle(wire)
        to_far.cut()
        wire.go_on()
        running.check(expected)
        for one in (wire, to_far):
            one.close()


def rows(out: Path) -> list[tuple[str, str]]:
    """The key and the digest of each stored run."""
    with sqlite3.connect(out / "store.db") as store:
        return store.execute("SELECT key, digest FROM run_key ORDER BY key").fetchall()


def test_a_stored_run_is_not_made_again_on_another_machine(
    cluster: Processes, place: Path, expected: bytes, tmp_path: Path
) -> None:
    command(place, tmp_path, "local").check(expected)
    once = rows(tmp_path)
    assert len(once) == len(set(once)) == RUNS
    again = command(place, tmp_path, cluster.url)
    code, messages = again.end()
    assert code == 0
    assert f"{RUNS} of {RUNS} runs are in the store, of other comparisons" in messages
    assert (tmp_path / "results.json").read_bytes() == expected
    assert rows(tmp_path) == sorted(once * 2)


def test_a_run_made_twice_must_have_the_same_figures(place: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    store = str(out / "store.db")

    def run_it() -> None:
        blklab.compare(disks=DISKS, workloads=[place / "job.fio"], schedulers=SCHEDULERS,
                       repeats=1, keep=True, store=store)  # fmt: skip

    out.mkdir()
    run_it()
    run_it()
    with sqlite3.connect(store) as connection:
        connection.execute("UPDATE run_key SET digest = 'other' WHERE comparison_id = 1")
    with pytest.raises(RunError, match="and has other figures: an error in blklab or in") as failed:
        run_it()
    assert "of comparison 3 is that of comparison 1, run " in str(failed.value)
    assert "\n" not in str(failed.value)


OTHER_CODE = "from blklab.execute import identity\nidentity._code = lambda: 'feedfeedfeed'\n"
NO_BLKLAB = """
import sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "blklab":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Finder())
"""


def test_a_worker_with_another_version_is_refused_by_name(
    place: Path, expected: bytes, tmp_path: Path
) -> None:
    with processes(tmp_path, workers=1) as made:
        made.start_worker("old", OTHER_CODE)
        notes = compared(place, tmp_path, made.url)
        [note] = notes
        assert note.startswith("worker old (tcp://127.0.0.1:")
        assert "has another version: code feedfeedfeed (here " in note
        assert note.endswith("; its runs go to other workers")
        assert (tmp_path / "results.json").read_bytes() == expected
        made.kill_worker("w0")
        with pytest.raises(MachineError, match="no worker can run this: worker old ") as failed:
            compared(place, tmp_path, made.url, 1)
        assert "\n" not in str(failed.value)


def test_a_worker_that_has_not_answered_yet_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[dict[str, str | None]] = [
        {"a": "has another version", "b": None},
        {"b": "has another version"},
    ]
    monkeypatch.setattr(workers, "_examine", lambda *_: answers.pop(0))
    told: list[str] = []
    there = {"workers": {name: {"name": name, "nthreads": 1} for name in "ab"}}
    client = SimpleNamespace(scheduler_info=lambda: there)
    found = workers.Workers(told.append)
    found.look(cast(Any, client))
    found.check("tcp://x")
    found.look(cast(Any, client))
    with pytest.raises(MachineError, match=r"no worker can run this: worker a .* \(1 more"):
        found.check("tcp://x")
    assert len(told) == 2


@pytest.mark.parametrize("preload", [OTHER_CODE, NO_BLKLAB])
def test_a_wrong_worker_that_comes_later_is_refused_too(
    place: Path, expected: bytes, tmp_path: Path, preload: str
) -> None:
    with processes(tmp_path, workers=1) as made:
        wire = Wire(made.port, MIDDLE_BYTES)
        running = command(place, tmp_path / "out", wire.url)
        running.reach_the_middle(wire)
        made.start_worker("wrong", preload)
        wire.go_on()
        assert "worker wrong (tcp://" in running.check(expected)
        wire.close()


def test_workers_without_blklab_are_refused_in_one_line(place: Path, tmp_path: Path) -> None:
    with processes(tmp_path) as made:
        made.start_worker("bare", NO_BLKLAB)
        with pytest.raises(MachineError) as failed:
            compared(place, tmp_path, made.url, 1)
    assert "worker bare (tcp://" in str(failed.value)
    assert "has no blklab, or an older one; install the same version there" in str(failed.value)
    assert "\n" not in str(failed.value)


DEADLY = """
import os
from blklab.rigs import sim
def deadly(self, experiment, run=sim.SimRig.run):
    if experiment.scheduler.name == "bfq" and experiment.seed == 3:
        os._exit(9)
    return run(self, experiment)
sim.SimRig.run = deadly
"""


def test_a_run_that_ends_its_workers_fails_alone(place: Path, tmp_path: Path) -> None:
    """Each worker that runs it ends, as with a run that needs too much memory."""
    count = 6
    with processes(tmp_path) as made:
        for number in range(count):
            made.start_worker(f"w{number}", DEADLY)
        with pytest.raises(RunError) as failed:
            compared(place, tmp_path, made.url, 4)
    assert "under bfq: its worker ended each time while it ran" in str(failed.value)


def test_an_interrupt_ends_the_runs_on_the_workers(place: Path, tmp_path: Path) -> None:
    (place / "long.fio").write_text(
        "[a]\nrw=randread\ndirect=1\ntime_based\nruntime=10h\nsize=1g\n"
    )
    with processes(tmp_path, workers=1) as made:
        running = command(
            place, tmp_path / "out", made.url, "--workload", str(place / "long.fio"),
            "--disk", "950pro-256gb", "--scheduler", "none", "--repeats", "1",
        )  # fmt: skip
        worker = made.workers["w0"]
        until(lambda: _cpu_s(worker.pid) > 4.0, "a run on the worker")
        running.process.send_signal(signal.SIGINT)
        code, messages = running.end()
        assert (code, messages.splitlines()[-1][:19]) == (130, "blklab: interrupted")
        before_s = _cpu_s(worker.pid)
        # It has nothing to do any more, but messages of Dask.
        until(lambda: _is_idle(worker.pid), "the worker is idle", 30.0)
        assert _cpu_s(worker.pid) - before_s < 10.0


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _is_idle(pid: int) -> bool:
    before_s = _cpu_s(pid)
    time.sleep(1.0)
    return _cpu_s(pid) - before_s < 0.2


def verified(place: Path, on: str, tmp_path: Path) -> bytes:
    """A comparison with a kernel; returns the results."""
    blklab.compare(
        rig=blklab.RigSpec("kernel", driver="native", kernel=real_kernel.image().parent.name),
        disks=["su800-128gb"], workloads=[place / "small.fio"], schedulers=["none"], repeats=2,
        out=tmp_path / "kernel", on=on,
    )  # fmt: skip
    return (tmp_path / "kernel/results.json").read_bytes()


@pytest.fixture
def small(tmp_path: Path) -> Path:
    (tmp_path / "small.fio").write_text("[a]\nrw=randread\ndirect=1\nsize=256k\n")
    return tmp_path


def test_workers_get_kernels_that_they_lack(small: Path, tmp_path: Path) -> None:
    expected = verified(small, "local", tmp_path)
    with processes(tmp_path) as made:
        made.start_worker("empty", BLKLAB_CACHE=str(tmp_path / "cache"))
        assert verified(small, made.url, tmp_path) == expected
    key = real_kernel.image().parent.name
    assert (tmp_path / "cache/kernels/built" / key / "linux").is_file()


def test_a_worker_with_another_build_of_the_kernel_is_refused(small: Path, tmp_path: Path) -> None:
    key = real_kernel.image().parent.name
    other = tmp_path / "cache/kernels/built" / key
    shutil.copytree(real_kernel.image().parent, other)
    with (other / "linux").open("ab") as image:
        image.write(b"x")
    with processes(tmp_path) as made:
        made.start_worker("other", BLKLAB_CACHE=str(tmp_path / "cache"))
        with pytest.raises(MachineError, match=f"has another build of kernel {key}$"):
            verified(small, made.url, tmp_path)


def test_workers_that_lack_a_program_are_named_in_one_line(small: Path, tmp_path: Path) -> None:
    with processes(tmp_path) as made:
        made.start_worker("bare", PATH=str(tmp_path))
        with pytest.raises(MachineError) as failed:
            verified(small, made.url, tmp_path)
        assert "no worker can run this: worker tcp://127.0.0.1:" in str(failed.value)
        assert "without confinement: apt-get install bubblewrap" in str(failed.value)
        assert "\n" not in str(failed.value)
        made.start_worker("whole")
        assert verified(small, made.url, tmp_path) == verified(small, "local", tmp_path)


FULL = 'mount -t tmpfs -o size=16k full {0} && head -c 16k /dev/zero > {0}/x; exec "$@"'


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a small file system")
def test_runs_of_a_worker_with_a_full_disk_go_to_others(small: Path, tmp_path: Path) -> None:
    expected = verified(small, "local", tmp_path)
    (tmp_path / "full").mkdir()
    around = ["unshare", "--mount", "sh", "-c", FULL.format(tmp_path / "full"), "sh"]
    with processes(tmp_path) as made:
        # Nothing else of a run is on its disk.
        made.start_worker("full", around=around, BLKLAB_CACHE=str(tmp_path / "full"))
        with pytest.raises(
            MachineError, match=r": cannot keep kernel .*No space left on "
        ) as failed:
            verified(small, made.url, tmp_path)
        assert "\n" not in str(failed.value)
        made.start_worker("whole")
        assert verified(small, made.url, tmp_path) == expected
