"""Real fio on loop devices: its measurements, and no leftovers."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import blklab
from blklab.base.catalogue import Entry
from blklab.base.journal import Journal
from blklab.base.signals import ENDING, Signals
from blklab.cli import app
from blklab.domain import specs
from blklab.domain.experiment import Experiment, RigSpec, SchedulerSpec
from blklab.errors import InputError, RunError
from blklab.host.devices import queue
from blklab.rigs import rig
from blklab.rigs.live import danger, load, outlook, program, surroundings
from blklab.rigs.live import target as targets
from blklab.rigs.live.borrowed import borrowing
from blklab.rigs.live.counters import Counters
from blklab.rigs.live.rig import LiveRig
from blklab.store import read
from blklab.store.opening import open_store
from blklab.store.place import find as locate
from tests import loop_device

MIB = 1 << 20
BLKLAB = [sys.executable, "-m", "blklab"]
READS = "[r]\nrw=randread\nbs=4k\ndirect=1\nsize=4m\nruntime=1\ntime_based\n"
BUFFERED = "[r]\nrw=read\nbs=64k\nsize=4m\n"
WRITES = "[w]\nrw=randwrite\nbs=4k\nsize=4m\nio_size=1m\nend_fsync=1\n"
LONG = "[r]\nrw=randread\nbs=4k\ndirect=1\nsize=4m\nnumjobs=2\nruntime=600\ntime_based\n"

pytestmark = pytest.mark.skipif(
    any(shutil.which(name) is None for name in program.PACKAGES),
    reason=f"needs {', '.join(program.PACKAGES)}",
)


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[str]:
    """A loop device with nothing on it."""
    loop_device.require()
    with loop_device.attached(tmp_path) as name:
        yield name


def disk_of(directory: Path) -> queue.Queue:
    return queue.named(targets.find(str(directory)).disks[0])


def entry(text: str) -> Entry:
    return Entry("job", Path("job.fio"), text)


def experiment(place: LiveRig, where: object, text: str, scheduler: str = "none") -> Experiment:
    return Experiment(entry(text), place.find_disk(str(where)), specs.scheduler(scheduler), 1)


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


def test_a_device_is_read_but_not_written_to_unless_that_is_said(loop: str) -> None:
    node = Path(f"/dev/{loop}")
    place = rig("live")
    one = Experiment(entry(READS), place.find_disk(str(node)), SchedulerSpec("kyber"), 1)
    with place.prepared([one], print):
        assert place.run(one).jobs[0].read.ios > 0
    both = Experiment(
        entry(WRITES + WRITES.replace("[w]", "[v]")), one.disk, SchedulerSpec("none"), 1
    )
    with pytest.raises(InputError, match="--write-device"), place.prepared([both], print):
        pass
    assert node.read_bytes() == bytes(loop_device.SIZE_BYTES)
    place = rig(RigSpec("live", write_device=True))
    with place.prepared([both], print):
        result = place.run(both)
    assert [job.write.bytes for job in result.jobs] == [MIB, MIB]
    # Each job has its own piece; nothing is written after the pieces.
    content = node.read_bytes()
    assert any(content[: 4 * MIB]) and any(content[4 * MIB : 8 * MIB])
    assert not any(content[8 * MIB :])


def test_a_known_signature_is_overwritten_only_under_the_full_id(loop: str) -> None:
    node = Path(f"/dev/{loop}")
    subprocess.run(["mkswap", str(node)], check=True, capture_output=True)
    before = node.read_bytes()
    for overwrite in (None, loop):
        place = rig(RigSpec("live", write_device=True, overwrite=overwrite))
        one = Experiment(entry(WRITES), place.find_disk(str(node)), SchedulerSpec("none"), 1)
        with pytest.raises(InputError, match=r"swap|not the full id"), place.prepared([one], print):
            pass
    assert node.read_bytes() == before
    place = rig(RigSpec("live", overwrite=danger.full_id(loop)))
    with place.prepared([one], print):
        place.run(one)
    assert node.read_bytes() != before


def test_a_mounted_device_is_not_written_to_even_under_its_full_id(mounted: Path) -> None:
    name = disk_of(mounted).name
    node = Path(f"/dev/{name}")
    (mounted / "thesis").write_text("mine")
    os.sync()
    before = node.read_bytes()
    place = rig(RigSpec("live", write_device=True, overwrite=danger.full_id(name)))
    one = Experiment(entry(WRITES), place.find_disk(str(node)), SchedulerSpec("none"), 1)
    with (
        pytest.raises(InputError, match=f"it is mounted at {mounted}.*never written to"),
        place.prepared([one], print),
    ):
        pass
    assert node.read_bytes() == before


def test_a_device_cannot_be_mounted_between_its_check_and_the_end_of_the_runs(
    loop: str, tmp_path: Path
) -> None:
    node = Path(f"/dev/{loop}")
    subprocess.run(["mkfs.ext4", "-q", str(node)], check=True)
    place = rig(RigSpec("live", overwrite=danger.full_id(loop)))
    one = Experiment(entry(WRITES), place.find_disk(str(node)), SchedulerSpec("none"), 1)
    mount = ["mount", str(node), str(tmp_path)]
    with place.prepared([one], print):
        assert subprocess.run(mount, check=False, capture_output=True).returncode != 0
        place.run(one)
        assert subprocess.run(mount, check=False, capture_output=True).returncode != 0


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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_interrupted_nothing_of_it_stays(
    mounted: Path, tmp_path: Path, journal: Journal, number: signal.Signals
) -> None:
    disk, there = disk_of(mounted), sorted(mounted.iterdir())
    before, chance = disk.settings(), random.Random(int(number))
    job = tmp_path / f"long{int(number)}.fio"
    job.write_text(LONG)
    where = ["--rig", "live", "--disk", str(mounted), "--scheduler", "kyber"]
    words = ["fio", str(job), *where]
    if number == signal.SIGTERM:
        words = ["compare", "--workload", str(job), *where, "--out", str(tmp_path / "out")]
    for _ in range(2 if number == signal.SIGKILL else 1):
        process = subprocess.Popen(
            [*BLKLAB, *words], stderr=subprocess.PIPE, stdout=subprocess.PIPE
        )
        try:
            _wait(lambda: len(_fio_at(mounted)) >= 3, "fio and its two processes run")
            assert disk.read("scheduler") == "kyber"
            time.sleep(chance.uniform(0, 0.3))
        finally:
            process.send_signal(number)
            _, stderr = process.communicate(timeout=60)
        _wait(lambda: not _fio_at(mounted), "fio has ended with us")
        if number == signal.SIGKILL:
            assert disk.read("scheduler") == "kyber"
            words_of_restore = CliRunner().invoke(app, ["restore"], catch_exceptions=False).stdout
            assert f"{disk.name}: restored to none" in words_of_restore
            assert "removed" in words_of_restore
        else:
            assert process.returncode == {signal.SIGINT: 130, signal.SIGTERM: 143}[number], stderr
        assert (disk.settings(), sorted(mounted.iterdir())) == (before, there)
        assert journal.keys() == []
    assert CliRunner().invoke(app, ["restore"]).stdout == "nothing to restore\n"


@pytest.mark.parametrize(
    "number", sorted(ENDING - {signal.SIGPIPE, signal.SIGXFSZ} - {*range(35, 64)})
)
def test_a_signal_at_any_moment_of_a_run_leaves_nothing(
    mounted: Path, tmp_path: Path, journal: Journal, number: int
) -> None:
    disk, there = disk_of(mounted), sorted(mounted.iterdir())
    before, chance = disk.settings(), random.Random(number)
    (tmp_path / "long.fio").write_text(LONG)
    words = ["fio", str(tmp_path / "long.fio"), "--rig", "live", "--disk", str(mounted)]
    own = tmp_path / "scratch"
    own.mkdir()
    handler = signal.getsignal(number)
    if handler is signal.SIG_IGN:
        # Under nohup SIGHUP is ignored, and the command would inherit that.
        signal.signal(number, signal.SIG_DFL)
    process = subprocess.Popen(
        [*BLKLAB, *words, "--scheduler", "bfq:slice_idle=0,nr_requests=32"],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"TMPDIR": str(own)},
    )
    signal.signal(number, handler)
    try:
        _wait((journal.directory / f"disk-{disk.name}.json").exists, "the disk is borrowed")
        # From the first setting to the middle of fio's work.
        time.sleep(chance.uniform(0, 0.8))
    finally:
        process.send_signal(number)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == (130 if number == signal.SIGINT else 128 + number), stderr
    _wait(lambda: not _fio_at(mounted), "fio has ended with us")
    assert (disk.settings(), sorted(mounted.iterdir())) == (before, there)
    assert (journal.keys(), sorted(own.iterdir())) == ([], [])


def test_where_users_have_no_namespaces_fio_ends_all_the_same(
    mounted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (program, load, outlook):
        monkeypatch.setattr(module, "confined", tuple)
    place, lines, ended = LiveRig(), list[str](), list[BaseException]()
    one = experiment(place, mounted, LONG)

    def run() -> None:
        try:
            place.run(one)
        except BaseException as error:
            ended.append(error)

    with place.prepared([one], lines.append):
        thread = threading.Thread(target=run)
        thread.start()
        _wait(lambda: _fio_at(mounted), "fio runs")
        place.cancel()
        thread.join(60)
        _wait(lambda: not _fio_at(mounted), "fio has ended, and its jobs with it")
    assert [type(error) for error in ended] == [KeyboardInterrupt]
    assert any("no PID namespaces for this user" in line for line in lines)


def test_a_killed_comparison_goes_on_where_it_was(
    mounted: Path, tmp_path: Path, own_store: Path, journal: Journal
) -> None:
    disk, job, out = disk_of(mounted), tmp_path / "short.fio", tmp_path / "out"
    before = disk.settings()
    job.write_text(READS)
    where = ["--rig", "live", "--disk", str(mounted), "--workload", str(job), "--out", str(out)]
    words = ["compare", *where, "--scheduler", "none", "--scheduler", "bfq", "--repeats", "2"]
    process = subprocess.Popen([*BLKLAB, *words], stderr=subprocess.PIPE)

    def kept() -> int:
        # The file exists before it has tables.
        with (
            contextlib.suppress(sqlite3.OperationalError),
            contextlib.closing(sqlite3.connect(f"file:{own_store}?mode=ro", uri=True)) as store,
        ):
            return int(store.execute("SELECT count(*) FROM run").fetchone()[0])
        return 0

    try:
        _wait(lambda: own_store.exists() and kept() >= 1, "a run is kept")
    finally:
        process.kill()
        process.communicate()
    there = kept()
    assert 1 <= there < 4
    done = CliRunner().invoke(app, ["compare", "--resume"], catch_exceptions=False)
    assert f"{4 - there} runs on {mounted}" in done.stderr
    assert f"{disk.name}: restored to none" in done.stderr
    assert ": removed" in done.stderr
    assert kept() == 4
    runs = json.loads((out / "results.json").read_text())["runs"]
    assert [(run["scheduler"], run["repeat"]) for run in runs] == [
        ("none", 0), ("none", 1), ("bfq", 0), ("bfq", 1),
    ]  # fmt: skip
    assert disk.settings() == before
    assert ([path.name for path in mounted.iterdir()], journal.keys()) == (["lost+found"], [])


def test_a_disk_is_described_as_it_was_before_a_run_that_was_killed(
    mounted: Path, journal: Journal
) -> None:
    place, disk = LiveRig(), disk_of(mounted)
    one = experiment(place, mounted, READS)
    before = place.describe_disk(one.disk)
    child = os.fork()
    if child == 0:
        # The fork must never continue as a second pytest.
        try:
            with borrowing([disk], journal, Signals(), []) as borrowed:
                borrowed.use("bfq", {})
                os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(1)
    os.waitpid(child, 0)
    assert disk.read("scheduler") == "bfq"
    assert place.describe_disk(one.disk) != before
    assert disk.read("scheduler") == "bfq", "a question has changed the disk"
    place.put_right()
    assert place.describe_disk(one.disk) == before
    told: list[str] = []
    with place.prepared([one], told.append):
        pass
    [line] = [line for line in told if "restored to none" in line]
    assert line.startswith(f"{disk.name}: ")


_NO_ROOM = "the files need 60 MiB, {} has room for [0-9.]+ MiB; smaller ones: [a-z]+:size="


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


def test_a_user_without_rights_measures_the_current_settings_and_gets_the_command_for_root(
    mounted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed = os.access

    def access(path: object, mode: int) -> bool:
        outside = str(path).startswith(("/sys", "/proc"))
        return not outside and allowed(path, mode)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "access", access)
    monkeypatch.setattr(sys, "argv", ["/x/blklab", "fio", "a b"])
    place = LiveRig()
    one = experiment(place, mounted, READS, "bfq")
    with (
        pytest.raises(
            InputError, match=r"needs root; type: sudo /x/blklab fio 'a b' \(or .* none\)"
        ),
        place.prepared([one], print),
    ):
        pass
    one, lines = experiment(place, mounted, BUFFERED), list[str]()
    with place.prepared([one], lines.append):
        result = place.run(one)
    assert result.disk.read_sectors * 512 >= 4 * MIB, "cold without root"
    assert any("no permission to set anything" in line for line in lines)


@pytest.fixture
def public() -> Iterator[Path]:
    """A file system of 64 MiB at a place that every user can reach."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        with loop_device.file_system(Path(name), 64 * MIB) as place:
            yield place


def test_an_ordinary_user_measures_the_current_settings(public: Path, tmp_path: Path) -> None:
    nobody, own, job = 65534, public / "own", tmp_path / "job.fio"
    own.mkdir()
    os.chown(own, nobody, nobody)
    job.write_text(READS)
    # The user nobody may read everything (this Python may be in root's home), but not write.
    only = ["--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search"]
    user = ["setpriv", f"--reuid={nobody}", f"--regid={nobody}", "--clear-groups", *only]

    def run(scheduler: str, where: Path) -> subprocess.CompletedProcess[str]:
        words = ["fio", str(job), "--rig", "live", "--disk", str(where), "--scheduler", scheduler]
        return subprocess.run(
            [*user, "--bounding-set=-all,+dac_read_search", *BLKLAB, *words],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    environment = os.environ | {"BLKLAB_JOURNAL": str(own / "journal"), "HOME": str(own)}
    # The store must be the user's own, not root's.
    for name in ("BLKLAB_STORE", "XDG_DATA_HOME"):
        environment.pop(name, None)
    done = run("none", own)
    assert done.returncode == 0, done.stderr
    assert "read: IOPS=" in done.stdout
    assert "no permission to set anything" in done.stderr
    assert sorted(path.name for path in own.iterdir()) == [".local", "journal"]
    [kept] = (own / ".local/share/blklab/results.db-waiting").iterdir()
    assert kept.owner() == "nobody"
    refused = run("bfq", own)
    assert refused.returncode == 2
    assert "setting 'bfq' needs root; type: sudo " in refused.stderr
    refused = run("none", public)
    assert refused.stderr == f"blklab: {public}: no permission to write in it\n"


def test_fio_that_fails_is_one_line(mounted: Path) -> None:
    place = LiveRig()
    one = experiment(place, mounted, BUFFERED)
    with place.prepared([one], print):
        (found,) = (path for path in mounted.iterdir() if path.name.startswith(".blklab-"))
        (found / "0").unlink()
        (found / "0").mkdir()
        with pytest.raises(RunError, match=r"fio: .*(Is a directory|Permission denied)") as failed:
            place.run(one)
        (found / "0").rmdir()
    assert "\n" not in str(failed.value)


def test_a_disk_that_fails_in_the_middle_is_one_line_and_is_put_back(
    tmp_path: Path, journal: Journal, loop: str
) -> None:
    disk, place = queue.named(loop), LiveRig()
    before, reads = disk.settings(), _reads_of(loop)

    def fail() -> None:
        _wait(lambda: _reads_of(loop) > reads + 50, "fio reads")
        os.truncate(tmp_path / "loop.img", 0)

    one = experiment(place, f"/dev/{loop}", LONG.replace("600", "60"), "kyber")
    failing = threading.Thread(target=fail)
    with place.prepared([one], print):
        failing.start()
        with pytest.raises(RunError, match=r"^fio: .*Input/output error") as failed:
            place.run(one)
        failing.join()
        assert disk.read("scheduler") == "kyber"
    assert "\n" not in str(failed.value)
    assert (disk.settings(), journal.keys()) == (before, [])


def test_fio_writes_nowhere_else_though_another_user_swaps_its_directory(
    mounted: Path, tmp_path: Path
) -> None:
    treasure = tmp_path / "treasure"
    treasure.mkdir()
    (treasure / "0").write_text("keep")
    place = LiveRig()
    one = experiment(place, mounted, WRITES)
    with place.prepared([one], print):
        (found,) = (path for path in mounted.iterdir() if path.name.startswith(".blklab-"))
        found.rename(mounted / "taken")
        found.symlink_to(treasure)
        assert place.run(one).jobs[0].write.bytes == MIB
    assert [path.name for path in treasure.iterdir()] == ["0"]
    assert (treasure / "0").read_text() == "keep"
    assert list((mounted / "taken").iterdir()) == []


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


def _wait(until: object, what: str) -> None:
    assert callable(until)
    deadline = time.monotonic() + 60
    while not until():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def _reads_of(disk: str) -> int:
    return int(Path(f"/sys/block/{disk}/stat").read_text().split()[0])


def _fio_at(directory: Path) -> list[str]:
    """Processes of fio that work in that file system."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if (place / "comm").read_text() == "fio\n" and str(directory) in str(
                (place / "cwd").readlink()
            ):
                found.append(place.name)
        except OSError:
            continue
    return found
