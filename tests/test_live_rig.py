"""Real fio on loop devices: its measurements, refusals, and no leftovers."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

import blklab
from blklab.base.journal import Journal
from blklab.cli import app
from blklab.domain.experiment import Experiment, SchedulerSpec
from blklab.errors import InputError, RunError
from blklab.rigs.live import load, surroundings
from blklab.rigs.live import target as targets
from blklab.rigs.live.counters import Counters
from blklab.rigs.live.rig import LiveRig
from blklab.store import read
from blklab.store.opening import open_store
from blklab.store.place import find as locate
from tests.live_runs import BUFFERED, MIB, NEEDS_PROGRAMS, READS, WRITES, disk_of, entry, experiment

pytestmark = NEEDS_PROGRAMS

_NO_ROOM = "the files need 60 MiB, {} has room for [0-9.]+ MiB; smaller ones: [a-z]+:size="


def test_a_run_has_fios_measurements_and_no_leftovers(mounted: Path, journal: Journal) -> None:
    disk, place = disk_of(mounted), LiveRig()
    before, there = disk.settings(), sorted(mounted.iterdir())
    one = experiment(place, mounted, READS, "bfq:slice_idle=0,read_ahead_kb=64")
    lines: list[str] = []
    with place.prepared([one], lines.append):
        result = place.run(one)
        assert disk.read("scheduler") == "bfq"
        assert disk.read("iosched/slice_idle") == "0"
        assert disk.read("read_ahead_kb") == "64"
        assert len(journal.keys()) == 2
    assert (disk.settings(), sorted(mounted.iterdir()), journal.keys()) == (before, there, [])
    assert lines == [f"1 run on {mounted}: about 2 s, after 4 MiB of test files have been written"]
    [job] = result.jobs
    assert job.read.ios == result.histogram("read").total > 0
    assert job.read.bytes == job.read.ios * 4096
    assert 0.9e9 < job.read.runtime_ns < 3e9
    assert result.duration_ns == job.end_ns
    assert json.loads(result.raw["fio.json"])["jobs"][0]["read"]["total_ios"] == job.read.ios
    for state in (result.device_before, result.device_after):
        assert state and state["settings"][disk.name]["iosched/slice_idle"] == "0"
    # Every direct read reached the disk, and the counters over time add up to no more.
    assert result.disk.read_sectors * 512 >= job.read.bytes
    assert len(result.series.read_bytes) >= 5
    assert 0 < result.series.read_bytes.sum() <= result.disk.read_sectors * 512


def test_a_single_run_is_kept_with_fios_output_and_the_state_of_the_disk(
    mounted: Path, tmp_path: Path
) -> None:
    (tmp_path / "job.fio").write_text(READS)
    told = ["fio", str(tmp_path / "job.fio"), "--rig", "live", "--disk", str(mounted)]
    done = CliRunner().invoke(app, [*told, "--scheduler", "kyber"], catch_exceptions=False)
    assert done.exit_code == 0
    # In real time.
    assert f" {time.localtime().tm_year}\n" in done.stdout and " 1970\n" not in done.stdout
    kept = read.comparison(open_store(locate()), 1, raw=True)
    [one] = kept.runs
    ios = json.loads(one.raw["fio.json"])["jobs"][0]["read"]["total_ios"]
    assert ios == one.measurement.latencies["read"].ios > 0
    for state in (one.device_before, one.device_after):
        assert state and state["settings"][disk_of(mounted).name]["scheduler"] == "kyber"
    assert str(kept.facts["versions"]["fio"]).startswith("fio-")


@pytest.mark.keeps_page_cache
def test_the_cache_is_cold_or_warm_as_it_is_asked_for(mounted: Path) -> None:
    read = {}
    for state in ("cold", "warm"):
        place = LiveRig(cache=state)
        one = experiment(place, mounted, BUFFERED)
        with place.prepared([one], print):
            runs = [place.run(one) for _ in range(2)]
        assert all(run.jobs[0].read.bytes == 4 * MIB for run in runs)
        read[state] = [run.disk.read_sectors * 512 for run in runs]
    assert min(read["cold"]) >= 4 * MIB
    assert read["warm"] == [0, 0]


def test_repeats_with_other_seeds_go_to_other_offsets(mounted: Path) -> None:
    place = LiveRig()
    made = [
        load.Load.of(
            Experiment(entry(READS), place.find_disk(str(mounted)), SchedulerSpec("none"), seed),
            targets.find(str(mounted)),
            8 * MIB,
        )
        for seed in (1, 2)
    ]
    texts = [one.job.write([("0", None)], None) for one in made]
    assert "randseed=1\nrandrepeat=0" in texts[0] and "randseed=2\nrandrepeat=0" in texts[1]


@pytest.mark.parametrize(
    ("options", "size_bytes"),
    [("size=1m", MIB), ("size=1m\noffset=2m", 3 * MIB), ("size=50%", 8 * MIB), ("", 8 * MIB)],
)
def test_in_a_directory_a_device_is_a_file_of_the_used_size(
    options: str, size_bytes: int, mounted: Path
) -> None:
    text = f"[r]\nfilename=/dev/sdx\n{options}\n"
    one = experiment(LiveRig(), mounted, text)
    made = load.Load.of(one, targets.find(str(mounted)), 8 * MIB)
    assert made.sizes == [size_bytes]


def test_compare_says_beforehand_how_long_it_takes_and_ranks(mounted: Path, tmp_path: Path) -> None:
    job = tmp_path / "short.fio"
    job.write_text(READS)
    before = disk_of(mounted).settings()
    words = ["compare", "--rig", "live", "--disk", str(mounted), "--workload", str(job)]
    schedulers = ["--scheduler", "none", "--scheduler", "mq-deadline:fifo_batch=1"]
    out = ["--repeats", "2", "--out", str(tmp_path / "out"), "--json"]
    done = CliRunner().invoke(app, [*words, *schedulers, *out], catch_exceptions=False)
    assert f"4 runs on {mounted}: about 8 s, after 4 MiB of test files" in done.stderr
    assert "2 repeats show a difference of 28.9 % if runs of the same differ by 2%" in done.stderr
    document = json.loads(done.stdout)
    ranking = document["cells"][0]["ranking"]
    assert {row["scheduler"] for row in ranking} == {"none", "mq-deadline:fifo_batch=1"}
    assert all(row["ios_per_s"] > 0 for row in ranking)
    setup = document["setup"]
    assert setup["rig"] == "live" and setup["rig_setup"]["cache"] == "cold"
    settings = {row["key"]: row["value"] for row in setup["disks"][0]["parameters"]}
    assert settings[f"{disk_of(mounted).name}: nr_requests"] == before["nr_requests"]
    assert (tmp_path / "out/report.html").exists()
    assert disk_of(mounted).settings() == before


def test_a_job_larger_than_the_free_space_is_refused_before_anything_is_written(
    mounted: Path, journal: Journal
) -> None:
    place = LiveRig()
    one = experiment(place, mounted, READS.replace("size=4m", "size=60m"))
    with (
        pytest.raises(InputError, match=_NO_ROOM.format(mounted)),
        place.prepared([one], print),
    ):
        pass
    assert journal.keys() == []
    # A job that names a device gets a file, which leaves a tenth of the file system free.
    one = experiment(place, mounted, "[d]\nfilename=/dev/sda\nrw=read\nbs=1m\nio_size=1m\n")
    with place.prepared([one], print):
        free = os.statvfs(mounted)
        assert 0.05 < free.f_bavail / free.f_blocks < 0.15
        assert place.run(one).jobs[0].read.bytes == MIB


@pytest.mark.parametrize(
    ("options", "scheduler", "message"),
    [
        ({"cache": "hot"}, "none", "--cache: no 'hot'; there is: cold, warm"),
        ({}, "cfq", "the kernel refuses cfq.* it has none, mq-deadline"),
        ({}, "mq-deadline:fifo_batsh=1", "no such tunable; did you mean 'fifo_batch'"),
        ({}, "kyber@mine", "a kernel of its own needs --rig kernel"),
    ],
)
def test_wrong_options_are_one_line_and_nothing_runs(
    mounted: Path, journal: Journal, options: dict[str, str], scheduler: str, message: str
) -> None:
    before = disk_of(mounted).settings()
    with pytest.raises((InputError, RunError), match=message):
        place = LiveRig(**options)
        one = experiment(place, mounted, READS, scheduler)
        with place.prepared([one], print):
            pytest.fail("it was prepared")
    assert (disk_of(mounted).settings(), journal.keys()) == (before, [])


def test_a_host_cannot_be_given_and_a_disk_must_be() -> None:
    with pytest.raises(InputError, match="the host is this machine"):
        LiveRig().check_host({"cpus": 3})
    done = CliRunner().invoke(app, ["compare", "--rig", "live"])
    assert "expected --disk DIRECTORY" in str(done.exception)


def test_a_missing_program_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None if name != "setpriv" else "/x")
    with pytest.raises(InputError) as refused:
        LiveRig()
    assert str(refused.value) == ("--rig live needs fio, unshare: apt-get install fio util-linux")


def test_the_library_runs_it_too(mounted: Path) -> None:
    result = blklab.simulate(WRITES, disk=mounted, scheduler="none", rig="live")
    assert result.jobs[0].write.bytes == MIB
    assert result.disk.write_sectors * 512 >= MIB
    assert [path.name for path in mounted.iterdir()] == ["lost+found"]


def test_io_of_others_is_noted_and_ones_own_is_not() -> None:
    def noted(moved: int, asked_of_device: int, direct: bool) -> list[str]:
        place = targets.Target(Path("/dev/sdx1"), "sdx1", ())
        still = surroundings.Snapshot(Counters(), Counters(), 0.0, 10.0, 0.0, {})
        after = surroundings.Snapshot(
            Counters(read_sectors=moved // 512),
            Counters(read_sectors=asked_of_device // 512),
            0.5, 20.0, 0.0, {},
        )  # fmt: skip
        return surroundings.notes(place, still, after, (), direct=direct, own_cpu_s=0.5)

    assert noted(64 * MIB, 64 * MIB, direct=False) == []
    what = "other programs have read from the disk meanwhile, over 5% of all"
    assert noted(64 * MIB, 32 * MIB, direct=False) == [what]
    assert noted(64 * MIB, 64 * MIB, direct=True) == [what]
