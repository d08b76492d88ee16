"""The modelled host: host files, and its costs measured on a device of the kernel's own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import blklab
from blklab.base.journal import Journal
from blklab.calibration import fit
from blklab.calibration.disturbance import Moment
from blklab.calibration.fit import Loads, Rates
from blklab.calibration.judge import Prediction, swaps
from blklab.calibration.load import Load, Measured, read
from blklab.domain import core, specs
from blklab.errors import InputError, RunError
from blklab.host.devices import queue
from blklab.rigs.live import ahead, leftovers, made
from tests import loop_device

FAST = "constant:transport=nvme,service_us=0.001,queue_depth=128,rotational=off"
DEEP = """[reads]
filename=/dev/x
ioengine=libaio
direct=1
rw=randread
bs=4k
iodepth=32
time_based
runtime=50ms
"""
COSTS = {
    "kernel": 6012,
    "cpus": 2,
    "submit_ns": 2600,
    "complete_ns": 1500,
    "clock_ns": 20,
    "syscall_ns": 700,
    "copy_mb_s": 7000,
    "wake_ns": 9000,
    "driver_ns": 700,
    "switch_ns": 2100,
    "lock_ns.mq-deadline": 1300,
    "lock_ns.bfq": 3000,
}


def command(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "blklab", *arguments]
    return subprocess.run(words, capture_output=True, text=True, check=check)


def iops(host: dict[str, int], jobs: int = 1) -> float:
    job = f"[global]\nnumjobs={jobs}\n{DEEP}"
    run = blklab.simulate(job, disk=FAST, host=host)
    return sum(one.read.ios for one in run.jobs) * 1e9 / run.duration_ns


def written(path: Path, text: str) -> str:
    path.write_text(text)
    return f"@{path}"


def test_a_host_file_gives_its_values_and_those_beside_it_count(tmp_path: Path) -> None:
    text = "[host]\ncpus = 2\nlock_ns.kyber = 1234\n[measured]\nkernel = '6.18'\n"
    file = written(tmp_path / "my.toml", text)
    assert specs.host([file]) == {"cpus": 2, "lock_ns.kyber": 1234}
    for words in ([f"{file},cpus=8"], ["cpus=8", file]):
        assert specs.host(words) == {"cpus": 8, "lock_ns.kyber": 1234}


def test_a_wrong_host_file_is_refused_in_one_line(tmp_path: Path) -> None:
    file = written(tmp_path / "my.toml", "[host]\ncpu = 2\n")
    with pytest.raises(InputError, match=r"my.toml:2: host has no tunable 'cpu'; did you mean"):
        specs.host([file])
    with pytest.raises(InputError, match="No such file"):
        specs.host([f"@{tmp_path}/none.toml"])
    good = written(tmp_path / "good.toml", "[host]\n")
    for words in ([good, "guest"], ["guest", good], [good, good]):
        with pytest.raises(InputError, match=r"--host: '.*' beside '.*'; give one"):
            specs.host(words)
    ended = command("fio", "randread", "--disk", "optane-900p", "--host", file, check=False)
    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1 and "my.toml:2" in ended.stderr


def test_a_drivers_thread_takes_the_idle_cpu_or_its_share_of_all() -> None:
    own = {"cpus": 2, "submit_ns": 3000, "complete_ns": 1000}
    assert iops(own) == pytest.approx(250_000, rel=0.01)
    assert iops(own, jobs=4) == pytest.approx(500_000, rel=0.01)
    thread = own | {"driver_ns": 3000}
    assert iops(thread) == pytest.approx(250_000, rel=0.01), "the thread has a CPU of its own"
    assert iops(thread, jobs=4) == pytest.approx(2e9 / 7000, rel=0.03)
    switches = own | {"driver_ns": 500, "switch_ns": 2500}
    few, many = (iops(switches, jobs) for jobs in (2, 16))
    assert few == pytest.approx(2e9 / 6200, rel=0.1), "a switch for every two or three I/Os"
    assert many == pytest.approx(2e9 / 4700, rel=0.05), "and for more, if more processes wait"
    slow = own | {"driver_ns": 10_000}
    assert iops(slow, jobs=4) == pytest.approx(100_000, rel=0.01), "it is one thread"
    real = [blklab.simulate(DEEP, disk="optane-900p", host=host) for host in (slow, own)]
    ios = [(run.jobs[0].read.ios, run.duration_ns) for run in real]
    assert ios[0] == ios[1], "drivers of real disks have no thread"


def test_a_wake_up_costs_small_depths_their_latency_and_large_ones_nothing() -> None:
    own = {"cpus": 2, "submit_ns": 3000, "complete_ns": 1000}
    single = DEEP.replace("iodepth=32", "iodepth=1")

    def rate(job: str, **host: int) -> float:
        run = blklab.simulate(job, disk=FAST, host=own | host)
        return run.jobs[0].read.ios * 1e9 / run.duration_ns

    assert rate(single) == pytest.approx(250_000, rel=0.01)
    assert rate(single, wake_ns=16_000) == pytest.approx(50_000, rel=0.01)
    assert rate(DEEP, wake_ns=16_000) > 0.75 * rate(DEEP)


def test_costs_are_found_again_from_the_rates_that_they_cause() -> None:
    disk, loads = fit.device_model(128), Loads.of(2)
    schedulers = ("none", "mq-deadline", "bfq")

    def measured(scheduler: str, load: Load) -> list[Measured]:
        rate = fit.simulated(load, scheduler, disk, COSTS)
        slower = Measured(rate * 0.8, 9e9, 0.0)
        return [slower, Measured(rate, 2600.0, 0.0), slower]

    rows = {(name, load): measured(name, load) for name, load in loads.wanted(schedulers)}
    found = fit.costs(Rates(rows), loads, schedulers, 2, 20, disk, kernel=6012)
    assert found.keys() == COSTS.keys()
    for scheduler, load in loads.wanted(schedulers):
        wanted = rows[scheduler, load][1].iops
        assert fit.simulated(load, scheduler, disk, found) == pytest.approx(wanted, rel=0.1)
    # More of one of these and less of the other have nearly the same rates.
    for name in COSTS.keys() - {"driver_ns", "switch_ns"}:
        assert found[name] == pytest.approx(COSTS[name], rel=0.15, abs=60), name


def test_a_prediction_beyond_the_bar_or_in_another_order_is_no_good_one() -> None:
    load = Load(1)
    none = Prediction("none", load, (400.0, 390.0), 405.0)
    kyber = Prediction("kyber", load, (300.0, 310.0), 420.0)
    same = Prediction("bfq", load, (395.0, 398.0), 500.0)
    assert (none.rate, none.is_off, kyber.is_off) == (400.0, False, True)
    assert [(swap.faster, swap.slower) for swap in swaps([none, kyber])] == [("none", "kyber")]
    assert swaps([none, same]) == [], "their runs overlap: no order was measured"


def test_a_load_that_is_not_modelled_is_judged_too() -> None:
    shallow = Prediction("none", Load(3, depth=16), (400.0,), 600.0)
    assert (shallow.error, shallow.is_off) == (0.5, True)
    assert not shallow.load.is_modelled and Load(3).is_modelled


def test_the_simulated_kernel_is_the_newest_that_is_no_newer() -> None:
    versions = ("2.6.28", "4.12.4", "6.11", "6.12.117", "6.18.44-fc", "7.3.4", "8.0", "next")
    found = [core.host_text("kernel", core.newest_kernel_before(version)) for version in versions]
    assert found == ["4.12", "4.12", "4.12", "6.12", "6.12", "7.3", "7.3", "7.3"]


def test_output_that_is_not_fios_is_an_error_in_one_line() -> None:
    for text in ("", "{}", '{"jobs": []}', '{"jobs": [{"read": {"iops": "x"}}]}'):
        with pytest.raises(RunError, match="its output is not the expected JSON"):
            read(text, 0.0)


def test_cpu_time_that_is_neither_fios_nor_the_kernels_is_of_other_programs() -> None:
    before, now = Moment(100.0, 50.0, 10.0), Moment(120.0, 66.0, 13.0)
    assert now.others(before, 8.0) == pytest.approx(0.25)
    assert now.others(before, 20.0) == 0.0
    assert Moment.now().others(Moment.now(), 0.0) <= 1.0


def needs() -> str:
    """The reason why nothing can be measured here; else empty."""
    if reason := loop_device.missing():
        return reason
    return made.kinds()["loop"]


measures = pytest.mark.skipif(bool(needs()), reason=needs())


@measures
def test_the_measured_host_is_a_file_that_commands_take(tmp_path: Path, journal: Journal) -> None:
    file = tmp_path / "here.toml"
    before = busy_loops()
    words = ("host", "measure", "--device", "loop", "--rounds", "1")
    ended = command(*words, "--out", str(file), "--json")
    told = json.loads(ended.stdout)
    assert told["measured"]["device"] == "loop" and told["predictions"] == []
    values = specs.host([f"@{file}"])
    assert values == told["host"]
    assert values["cpus"] == len(os.sched_getaffinity(0))
    assert 100 < values["submit_ns"] + values["complete_ns"] < 1_000_000
    assert {f"lock_ns.{name}" for name in ("mq-deadline", "kyber", "bfq")} & values.keys()
    assert (busy_loops(), journal.keys()) == (before, [])
    run = command("fio", "randread", "--disk", told["disk"], "--host", f"@{file}", "--no-keep")
    assert "IOPS=" in run.stdout
    ended = command(*words, "--out", str(file), check=False)
    assert (ended.returncode, ended.stderr) == (2, f"blklab: {file}: exists already\n")


def busy_loops() -> set[str]:
    """Loop devices with a file."""
    found = Path("/sys/block").glob("loop*/loop/backing_file")
    return {path.parts[3] for path in found if "blklab" in path.read_text()}


@measures
def test_a_killed_measurement_leaves_no_device_and_its_settings_are_restored(
    tmp_path: Path, journal: Journal
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "blklab", "host", "measure", "--device", "loop", "--first"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until_s = time.monotonic() + 60
        while not any(key.startswith("threads") for key in journal.keys()):  # noqa: SIM118
            assert process.poll() is None and time.monotonic() < until_s
            time.sleep(0.05)
        assert any(one.nice == -20 for one in ahead._threads())
        [key] = [key for key in journal.keys() if key.startswith("disk-")]  # noqa: SIM118
        name = key.removeprefix("disk-")
        settings = journal.read(key)
        assert settings is not None
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    for _ in range(100):
        if not Path(f"/sys/block/{name}/loop/backing_file").exists():
            break
        time.sleep(0.05)
    assert not Path(f"/sys/block/{name}/loop/backing_file").exists()
    [threads] = [key for key in journal.keys() if key.startswith("threads")]  # noqa: SIM118
    record = journal.read(threads)
    assert record is not None
    # Another measurement may have raised others meanwhile.
    raised = {(pid, start): nice for pid, start, nice in record["threads"]}
    found = leftovers.restore(journal)
    assert found.problems == [] and journal.keys() == []
    scheduler = settings["settings"]["scheduler"]
    assert queue.named(name).schedulers().active in (scheduler, "none")
    now = {(one.pid, one.start_ticks): one.nice for one in ahead._threads()}
    still = raised.keys() & now.keys()
    assert still
    assert {key: now[key] for key in still} == {key: raised[key] for key in still}


def test_without_root_one_line_says_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(sys, "argv", ["/usr/bin/blklab", "host", "measure", "--check"])
    with pytest.raises(
        InputError, match="needs root; type: sudo /usr/bin/blklab host measure --ch"
    ):
        blklab.measure_host()


def test_a_kind_of_device_that_cannot_be_made_is_refused_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(InputError, match="--device: no 'lop'; did you mean 'loop'"):
        made.chosen("lop")
    monkeypatch.setattr(made, "kinds", lambda _: {"null_blk": "no module", "loop": "no control"})
    with pytest.raises(InputError, match="--device: loop: no control"):
        made.chosen("loop")
    with pytest.raises(
        InputError, match="no device for the measurement: null_blk: no module; loop"
    ):
        made.chosen(None)


def test_records_that_are_not_blklabs_own_are_refused(journal: Journal) -> None:
    for key, kind, record in (
        ("threads-ahead", "threads", {"threads": [[1, "x"]]}),
        ("nullblk-00000000", "nullblk", {"name": "../../x"}),
    ):
        with journal.locked(key, key, once=True):
            journal.write(key, kind, record)
    found = leftovers.restore(journal)
    assert len(found.problems) == 2 and all("not a record" in line for line in found.problems)
