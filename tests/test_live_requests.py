"""Requests of loop devices, traced through the kernel's events: queue time, service time; and no
tracing is left."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from blklab import _core
from blklab.base.catalogue import Entry
from blklab.base.journal import Journal, boot_id
from blklab.base.signals import Signals
from blklab.cli import app
from blklab.domain import specs
from blklab.domain.experiment import Experiment
from blklab.domain.result import Result
from blklab.errors import RunError
from blklab.host.roots import Roots
from blklab.rigs.live import leftovers, program, requests, target, tracefs
from blklab.rigs.live.rig import LiveRig
from tests import loop_device

MIB = 1 << 20
KILLS = int(os.environ.get("BLKLAB_TEST_KILLS", "100")) // 4
READS = "[r]\nrw=randread\nbs=4k\ndirect=1\nsize=4m\nruntime=1\ntime_based\n"
DEEP = (
    f"{READS}ioengine=libaio\niodepth=64\n[w]\nrw=randwrite\nbs=4k\ndirect=1\nsize=4m\nio_size=2m\n"
)
WRITES = "[w]\nrw=write\nbs=4k\nsize=4m\nend_fsync=1\n"

needs_tracefs = pytest.mark.skipif(bool(tracefs.why_not()), reason=tracefs.why_not() or "-")
needs_fio = pytest.mark.skipif(
    any(shutil.which(name) is None for name in program.PACKAGES),
    reason=f"needs {', '.join(program.PACKAGES)}",
)


def instances(pid: int | None = None) -> list[str]:
    """The trace instances of one process, by default this one."""
    name = f"blklab-{pid or os.getpid()}-*"
    return [path.name for path in Path("/sys/kernel/tracing/instances").glob(name)]


def ran(where: object, text: str, scheduler: str) -> Result:
    place = LiveRig(write_device="yes", trace_latency="yes")
    one = Experiment(
        Entry("job", Path("job.fio"), text),
        place.find_disk(str(where)),
        specs.scheduler(scheduler),
        1,
    )
    with place.prepared([one], print):
        assert len(instances()) == 1
        return place.run(one)


@needs_tracefs
@needs_fio
def test_every_request_has_its_time_in_the_queue_and_at_the_disk(
    bare: str, journal: Journal
) -> None:
    result = ran(f"/dev/{bare}", DEEP, "mq-deadline")
    trace, disk = result.overview, result.disk
    # A merged request is one request for the kernel's counters, too.
    asked = disk.read_ios + disk.write_ios
    assert abs(len(trace.op) * trace.stride - asked) <= 2 * trace.stride
    assert set(np.unique(trace.op).tolist()) == {0, 1}
    # Each job has its own part of the device.
    assert (trace.process == (trace.op == 1)).all()
    assert (trace.queued_ns <= trace.issued_ns).all()
    assert (trace.issued_ns < trace.completed_ns).all()
    waited = trace.issued_ns - trace.queued_ns
    assert (waited > 0).mean() > 0.9
    # The kernel's own sum is of the same requests, from a little earlier on.
    ticks_ns = disk.read_ticks_ns + disk.write_ticks_ns
    in_all = disk.service_ns + int(waited.sum()) * trace.stride
    assert 0.8 < in_all / ticks_ns < 1.1
    assert 0.9 < disk.in_flight_ns / disk.service_ns < 1.1
    assert 10 < disk.depth_max <= 65
    assert 0 < result.series.waiting_milli.max() <= disk.depth_max * 1000
    assert not [note for note in result.notes if "requests" in note or "events" in note]
    assert (instances(), journal.keys()) == ([], [])


@needs_tracefs
@needs_fio
def test_a_comparison_tells_of_requests_and_keeps_them(
    bare: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BLKLAB_STORE", str(tmp_path / "kept.db"))
    (tmp_path / "job.fio").write_text(READS)
    words = [
        "--rig",
        "live",
        "--disk",
        f"/dev/{bare}",
        "--workload",
        str(tmp_path / "job.fio"),
    ]
    schedulers = ["--scheduler", "none", "--scheduler", "kyber", "--trace-latency"]
    out = ["--repeats", "1", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, ["compare", *words, *schedulers, *out], catch_exceptions=False)
    shown = CliRunner().invoke(app, ["results", "show", "1"], catch_exceptions=False)
    for text in (done.stdout, shown.stdout):
        told = text.partition("Queue time and service time")[2]
        assert {line.split()[0] for line in told.splitlines() if " read " in line} == {
            "none",
            "kyber",
        }
    assert "queue time: mean" in (tmp_path / "out/report.html").read_text()
    shown = CliRunner().invoke(app, ["results", "show", "1", "--json"], catch_exceptions=False)
    for row in json.loads(shown.stdout)["cells"][0]["ranking"]:
        requests = row["requests"]["read"]
        assert requests["count"] > 100
        assert 0 < requests["disk_ns"]["mean"] < row["latency_mean_ns"]


@needs_tracefs
@needs_fio
def test_without_a_scheduler_nothing_waits(bare: str) -> None:
    trace = ran(f"/dev/{bare}", READS, "none").overview
    assert len(trace.op) * trace.stride > 100
    assert (trace.queued_ns == trace.issued_ns).all()


@needs_tracefs
@needs_fio
def test_the_requests_of_a_file_are_the_disks(tmp_path: Path) -> None:
    with loop_device.file_system(tmp_path, 64 * MIB) as mounted:
        result = ran(mounted, WRITES, "bfq")
    trace = result.overview
    written = trace.op == 1
    assert int(trace.sectors[written].sum()) * 512 >= 4 * MIB
    assert trace.sectors[written].max() > 8, "the page cache joins pages"
    # The file system decides the position of a file.
    assert set(trace.process.tolist()) == {-1}


@needs_tracefs
@needs_fio
def test_events_that_found_no_room_are_told(bare: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracefs, "BUFFER_KIB", 4)
    monkeypatch.setattr(requests, "_EVERY_S", 60.0)
    result = ran(f"/dev/{bare}", READS, "none")
    assert [note for note in result.notes if "requests" in note] == [
        "the buffer for events of the block layer overflowed: some requests were not traced"
    ]
    # A queue with missing events would be wrong.
    assert (result.disk.in_flight_ns, result.disk.depth_max) == (0, 0)
    assert (result.series.waiting_milli == 0).all()


@needs_tracefs
def test_trace_instances_of_a_killed_process_are_removed(bare: str, journal: Journal) -> None:
    child = os.fork()
    if child == 0:
        with tracefs.tracing([bare], journal, Signals(), []) as instance:
            instance.write("tracing_on", "1")
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    [name] = instances(child)
    path = Path(f"/sys/kernel/tracing/instances/{name}")
    assert journal.keys() == [name.replace("blklab", "trace")]
    assert leftovers.restore(journal) == leftovers.Found(done=[f"{path}: removed"])
    assert (path.exists(), journal.keys(), list(journal.directory.iterdir())) == (False, [], [])


@needs_tracefs
def test_killed_at_random_moments_no_tracing_stays(bare: str, journal: Journal) -> None:
    chance = random.Random()
    for _ in range(KILLS):
        child = os.fork()
        if child == 0:
            while True:
                with tracefs.tracing([bare], journal, Signals(), []) as instance:
                    instance.write("tracing_on", "1")
        time.sleep(chance.random() * 0.15)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert leftovers.restore(journal).problems == []
        assert (journal.keys(), instances(child)) == ([], [])


@needs_tracefs
def test_a_foreign_record_in_the_journal_is_not_removed(tmp_path: Path, journal: Journal) -> None:
    mine = tmp_path / "instances/mine"
    mine.mkdir(parents=True)
    for name in (str(mine), "instances/blklab-7-abcdef", 7, str(mine.with_name("blklab-8-abcdef"))):
        with journal.locked("trace-7-abcdef", "it"):
            journal.write("trace-7-abcdef", "trace", {"instance": name})
        [problem] = leftovers.restore(journal).problems
        assert problem == f"{journal.directory}/trace-7-abcdef.json: not a record of tracing"
    assert mine.is_dir()


def test_after_a_reboot_there_is_no_tracing_left(journal: Journal) -> None:
    with journal.locked("trace-7-abcdef", "it"):
        journal.write(
            "trace-7-abcdef", "trace", {"instance": "/sys/kernel/tracing/instances/blklab-7-abcdef"}
        )
    path = journal.directory / "trace-7-abcdef.json"
    path.write_text(path.read_text().replace(boot_id(), "0" * 36))
    assert leftovers.restore(journal) == leftovers.Found()
    assert journal.keys() == []


def made_tracefs(top: Path, *tracepoints: str) -> Roots:
    place = top / "sys/kernel/tracing"
    (place / "instances").mkdir(parents=True)
    for name in tracepoints:
        (place / "events/block" / name).mkdir(parents=True)
    return Roots(sys=top / "sys")


def test_the_reason_why_tracing_is_impossible_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = Roots(sys=tmp_path / "sys")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert tracefs.why_not(nowhere).endswith("type: mount -t tracefs tracefs /sys/kernel/tracing")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert tracefs.why_not(nowhere) == "that needs root, and tracefs mounted at /sys/kernel/tracing"
    names = _core.BlockEvents.tracepoints()
    here = made_tracefs(tmp_path, *names[1:])
    assert tracefs.why_not(here) == f"the kernel has no {names[0]} (CONFIG_BLK_DEV_IO_TRACE)"
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert tracefs.why_not(here).endswith("/instances; that needs root")


def test_a_run_without_traced_requests_has_a_note() -> None:
    place = target.Target(Path("/x"), None, ("sda", "sd\nb"))
    instance = tracefs.Instance(Path("/x"), "", ())
    assert requests.Following(instance).follower(place, None) == (
        None,
        ["requests were not traced: there are several disks below (sda, sd\\nb)"],
    )
    assert requests.Following(None, "why").follower(place, None) == (
        None,
        ["requests were not traced: why"],
    )
    assert requests.Following().follower(place, None) == (None, [])


@needs_tracefs
def test_events_that_say_other_things_are_not_followed(
    bare: str, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(_core.BlockEvents, "tracepoints", lambda: ["block_split"])
    with requests.following([bare], journal, Signals(), told) as found:
        assert found.why_not == "tracefs: block_rq_insert: no field 'common_type'"
        assert found.instance is None
    assert (told, instances()) == ([], [])


def test_a_refused_file_of_tracefs_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"/none/tracing_on: No such file or directory$"):
        tracefs.Instance(tmp_path / "none", "", ()).write("tracing_on", "1")


def test_a_disk_that_has_gone_is_one_line(tmp_path: Path) -> None:
    gone = "^sd\\\\n: the disk is gone$"
    with pytest.raises(RunError, match=gone):
        tracefs.numbers("sd\n", Roots(sys=tmp_path))


@needs_tracefs
def test_an_error_of_tracefs_leaves_no_open_file_and_no_instance(
    bare: str, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = target.find(f"/dev/{bare}")
    told: list[str] = []
    with tracefs.tracing([bare], journal, Signals(), told) as instance:
        refusing = tracefs.Instance(instance.path, instance.header_page, instance.formats)
        write = tracefs.Instance.write

        def refused(self: tracefs.Instance, file: str, text: str) -> None:
            write(self, "none" if (file, text) == ("tracing_on", "1") else file, text)

        monkeypatch.setattr(tracefs.Instance, "write", refused)
        with pytest.raises(RunError, match=r"/blklab-\d+-\w+/none: "):
            requests.Follower(refusing, place, None).__enter__()
    # An open file of the instance would keep it.
    assert (told, instances(), journal.keys()) == ([], [], [])


def test_only_the_live_rig_takes_the_option() -> None:
    done = CliRunner().invoke(app, ["fio", "randread", "--disk", "950pro-256gb", "--trace-latency"])
    assert "--trace-latency" in str(done.exception) and "--rig live" in str(done.exception)
