"""What was served in a part of a trace: ``blklab trace show --from --until --slowest``."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc
import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace as Packets
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackEvent
from typer.testing import CliRunner

import blklab
from blklab.cli import app
from blklab.errors import InputError
from tests.test_perfetto import slices

MS = 1_000_000
GROUPS = """
[global]
direct=1
rw=randread
bs=4k
size=64m
number_ios=50
[outer]
cgroup=shop
cgroup_weight=500
[inner]
cgroup=shop/db
[plain]
"""


def blkparse(file: Path) -> Path:
    """A reader whose read waits for 8 ms, while the disk gets three writes of a copy."""
    rows = [
        ("reader", 7, "R", 80, 8, 5.0, 5.1, 13.0, 14.0),
        ("copy", 9, "W", 1000, 512, 0.0, 0.1, 6.0, 8.0),
        ("copy", 9, "W", 2000, 512, 1.0, 1.1, 8.0, 10.0),
        ("copy", 9, "W", 3000, 512, 6.0, 6.1, 10.0, 13.0),
        ("copy", 9, "W", 4000, 512, 7.0, 7.1, 14.0, 20.0),
    ]
    events = []
    for name, pid, op, sector, sectors, *times in rows:
        for letter, at_ms in zip("QIDC", times, strict=True):
            tail = "[0]" if letter == "C" else f"[{name}]"
            text = f"{at_ms / 1e3:.9f} {pid} {letter} {op} {sector} + {sectors} {tail}"
            events.append((at_ms, text))
    events.sort()
    file.write_text(
        "".join(f"8,0 0 {n} {text}\n" for n, (_, text) in enumerate(events, 1)), encoding="utf-8"
    )
    return file


def call(*words: str) -> str:
    done = CliRunner().invoke(app, ["trace", *words])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_slowest_read_names_the_writes_that_were_served_instead(tmp_path: Path) -> None:
    found = blklab.served_trace(blkparse(tmp_path / "x.txt"), from_ns=4 * MS, until_ns=14 * MS)
    names = {row: owner.name for row, owner in enumerate(found.processes)}
    slow = found.slow[0]
    assert names[slow.io.process] == "reader"
    assert (slow.io.queued_ns, slow.io.issued_ns, slow.io.completed_ns) == (
        5 * MS,
        13 * MS,
        14 * MS,
    )
    [got] = slow.issued
    assert (names[got.process], got.ios, got.bytes) == ("copy", [0, 3], [0, 3 * 512 * 512])
    assert [io.issued_ns for io in slow.listed] == [6 * MS, 8 * MS, 10 * MS]
    # The write that completes in the moment in which the read is issued.
    assert [(names[one.process], one.ios) for one in slow.completed] == [("copy", [0, 1])]
    counts = {names[one.row]: one for one in found.of_processes}
    assert (counts["copy"].came, counts["copy"].ios, counts["copy"].wait_max_ns) == (
        2,
        [0, 3],
        7 * MS,
    )
    assert (counts["reader"].came, counts["reader"].ios, counts["reader"].disk_ns) == (
        1,
        [1, 0],
        MS,
    )


def test_the_command_tells_it_in_words(tmp_path: Path) -> None:
    file = str(blkparse(tmp_path / "x.txt"))
    text = " ".join(
        call("show", file, "--from", "4ms", "--until", "14ms", "--slowest", "1").split()
    )
    assert "0.004000 s to 0.014000 s: 3 I/Os came, 4 were served" in text
    assert (
        "1. reader 7: read of 4 KiB at 0.000 GB, came at 0.005000 s, took 9 ms: 8 ms before" in text
    )
    assert "while it waited, the disk got 3 I/Os: copy 9: 3 writes (768 KiB)" in text
    assert "0.010000 s copy 9: write of 256 KiB at 0.002 GB, came later" in text
    each = " ".join(call("show", file, "--until", "14ms").split())
    assert "1. reader 7: read" in each and "2. copy 9: write" in each and "3. " not in each
    as_json = json.loads(call("show", file, "--slowest", "2", "--json"))
    assert [one["io"]["op"] for one in as_json["slow"]] == ["read", "write"]


def test_a_window_without_io_says_where_the_trace_ends(tmp_path: Path) -> None:
    file = blkparse(tmp_path / "x.txt")
    with pytest.raises(InputError, match=r"no I/O from 3 s on .* the trace ends at 0\.02 s"):
        blklab.served_trace(file, from_ns=3000 * MS)
    with pytest.raises(InputError, match="expected a window with a length"):
        blklab.served_trace(file, from_ns=MS, until_ns=MS)
    with pytest.raises(InputError, match="slowest: 5000; expected 0 to 1000"):
        blklab.served_trace(file, slowest=5000)
    with pytest.raises(InputError, match="a pipe cannot be read twice"):
        blklab.served_trace("-")


def test_without_issues_the_text_says_that_waits_are_not_known(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(
        "128166372003061629,hm,1,Read,0,4096,1000\n128166372003071629,hm,1,Write,8192,4096,2000\n"
    )
    assert "waits are not known" in call("show", str(tmp_path / "x.csv"), "--slowest", "1")


def test_a_part_and_a_page_do_not_go_together(tmp_path: Path) -> None:
    file = str(blkparse(tmp_path / "x.txt"))
    done = CliRunner().invoke(app, ["trace", "show", file, "--from", "1ms", "--html", "x.html"])
    assert isinstance(done.exception, InputError)
    assert "choose the part on the page" in str(done.exception)


def test_perfetto_has_a_process_for_each_recorded_one_and_its_ios_in_steps(tmp_path: Path) -> None:
    file, out = blkparse(tmp_path / "x.txt"), tmp_path / "x.perfetto"
    text = call("show", str(file), "--until", "9ms", "--perfetto", str(out))
    assert "Perfetto trace:" in text and "5 I/Os" in text
    packets = Packets.FromString(out.read_bytes())
    tracks = {
        p.track_descriptor.uuid: p.track_descriptor
        for p in packets.packet
        if p.HasField("track_descriptor")
    }
    processes = {u: t.process.process_name for u, t in tracks.items() if t.HasField("process")}
    assert sorted(processes.values()) == ["copy 9", "reader 7"]
    by_process: dict[str, list[tuple[str, int, int]]] = {}
    for track, inside in slices(packets).items():
        by_process.setdefault(processes[tracks[track].parent_uuid], []).extend(inside)
    read = [(n.split(" ", 1)[-1] if n[0] == "#" else n, a, b) for n, a, b in by_process["reader 7"]]
    assert sorted(read, key=lambda one: (one[1], -one[2])) == [
        ("read 4 KiB at 0.000 GB", 5 * MS, 14 * MS),
        ("queued", 5 * MS, 5_100_000),
        ("in the scheduler", 5_100_000, 13 * MS),
        ("at the disk", 13 * MS, 14 * MS),
    ]
    at_disk = next(u for u, t in tracks.items() if t.name == "requests at the disk")
    depths = [
        p.track_event.counter_value
        for p in packets.packet
        if p.track_event.type == TrackEvent.TYPE_COUNTER and p.track_event.track_uuid == at_disk
    ]
    assert max(depths) == 1 and depths[-1] == 0


def test_perfetto_of_too_many_ios_says_how_many_are_left_out(tmp_path: Path) -> None:
    made = blklab.trace_perfetto(blkparse(tmp_path / "x.txt"), tmp_path / "out", most=2)
    assert (made.ios, made.left_out) == (2, 3)
    with pytest.raises(InputError, match="no I/O of the window completes"):
        blklab.trace_perfetto(tmp_path / "x.txt", tmp_path / "out", from_ns=10**12)


@pytest.fixture(scope="module")
def groups(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("groups")
    (place / "job.fio").write_text(GROUPS)
    blklab.record_run(place / "job.fio", place / "groups.rec", disk="wd10ezrx", scheduler="bfq")
    return place / "groups.rec"


def test_the_simulator_records_cgroups_with_their_paths(groups: Path) -> None:
    rows = pyarrow.ipc.open_stream(groups).read_all().to_pylist()
    assert {(row["process"], row["cgroup"], row["cgroup_path"]) for row in rows} == {
        ("outer", 2, "/shop"),
        ("inner", 3, "/shop/db"),
        ("plain", 1, "/"),
    }
    reading = blklab.read_trace(groups)
    assert reading.scheduler == "bfq"
    assert [(one.path, one.count) for one in reading.cgroups] == [
        ("/", 50),
        ("/shop", 50),
        ("/shop/db", 50),
    ]
    assert all(one.working_set_bytes and one.mean_q2c_ns for one in reading.cgroups)
    text = call("show", str(groups))
    assert "/shop/db" in text and "working set" in text
    served = call("show", str(groups), "--slowest", "0")
    assert "/shop/db" in served


def test_a_job_without_cgroups_says_nothing_of_them(tmp_path: Path) -> None:
    (tmp_path / "job.fio").write_text("[a]\nrw=randread\nsize=64k\ndirect=1\n")
    blklab.record_run(tmp_path / "job.fio", tmp_path / "x.rec", disk="su800-128gb")
    assert blklab.read_trace(tmp_path / "x.rec").cgroups == []
    assert "\n cgroup" not in call("show", str(tmp_path / "x.rec"))


def test_a_cut_keeps_a_cgroup_with_all_below_it(groups: Path, tmp_path: Path) -> None:
    call("cut", str(groups), "--out", str(tmp_path / "shop.rec"), "--cgroup", "/shop")
    kept = blklab.read_trace(tmp_path / "shop.rec")
    assert [(one.path, one.count) for one in kept.cgroups] == [("/shop", 50), ("/shop/db", 50)]
    with pytest.raises(InputError, match="no I/O is left"):
        blklab.cut_trace(groups, tmp_path / "none.rec", cgroups=["/sho"])


def test_an_anonymous_recording_has_no_path_of_a_cgroup(groups: Path, tmp_path: Path) -> None:
    made = blklab.anonymise_trace(groups, tmp_path / "hidden.rec", seed=1)
    assert {one.path for one in made.after.cgroups} == {f"/cgroup-{n}" for n in (1, 2, 3)}
    assert b"shop" not in (tmp_path / "hidden.rec").read_bytes()


def test_a_recording_of_before_paths_of_cgroups_is_read(groups: Path, tmp_path: Path) -> None:
    table = pyarrow.ipc.open_stream(groups).read_all().drop_columns(["cgroup_path"])
    with (
        pa.OSFile(str(tmp_path / "old.rec"), "wb") as file,
        pyarrow.ipc.new_stream(file, table.schema) as stream,
    ):
        stream.write_table(table)
    reading = blklab.read_trace(tmp_path / "old.rec")
    assert (reading.count, [one.path for one in reading.cgroups]) == (150, ["", "", ""])
    assert {one.number for one in reading.cgroups} == {1, 2, 3}
