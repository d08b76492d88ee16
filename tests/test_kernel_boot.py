"""Guests of the real kernel: what is in it, how they end, and that nothing of them stays."""

from __future__ import annotations

import contextlib
import io
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from blklab import pool
from blklab.errors import InputError
from blklab.kernel import supervise
from blklab.kernel.boot import TimeTravel, boot
from blklab.kernel.errors import (
    GuestMemoryError,
    GuestPanicError,
    GuestTimeoutError,
    KernelError,
)
from tests import real_kernel
from tests.test_cli import failing

ROOT = Path(__file__).resolve().parents[1]
MOUNTS = "mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t hostfs -o $run none $run\n"


@pytest.fixture(scope="session")
def linux() -> Path:
    return real_kernel.image()


@pytest.fixture
def run_dir(linux: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    # Not below pytest's own, which only its user may enter.
    with tempfile.TemporaryDirectory(prefix="blklab-test-") as directory:
        temporary = Path(directory) / "tmp"
        for place in (Path(directory), temporary):
            place.mkdir(exist_ok=True)
        Path(directory).chmod(0o755)
        temporary.chmod(0o777)
        monkeypatch.setenv("TMPDIR", str(temporary))
        monkeypatch.setattr(tempfile, "tempdir", str(temporary))
        yield Path(directory)
        assert _guest_directories() == []


def init(run_dir: Path, script: str) -> list[str]:
    """A guest's init in sh that powers off at the end."""
    path = run_dir / "init"
    path.write_text(f"#!/bin/sh\nexport PATH={os.defpath}:/usr/sbin:/sbin run={run_dir}\n"
                    f"{MOUNTS}{script}\n{real_kernel.POWER_OFF}")  # fmt: skip
    path.chmod(0o755)
    return [str(path)]


def _guest_directories() -> list[Path]:
    return list(Path(tempfile.gettempdir()).glob("blklab-guest-*"))


def _until_gone(run_dir: Path) -> None:
    end_s = time.monotonic() + 20
    while real_kernel.processes(run_dir) or _guest_directories():
        assert time.monotonic() < end_s, (real_kernel.processes(run_dir), _guest_directories())
        time.sleep(0.02)


@pytest.mark.parametrize("time_travel", ["off", "on", "inf-cpu"])
def test_a_guest_runs_the_hosts_programs_and_writes_to_its_run_directory(
    linux: Path, run_dir: Path, time_travel: TimeTravel
) -> None:
    script = 'uname -r > $run/out; sleep 5; cut -d" " -f1 /proc/uptime >> $run/out; echo said "$@"'
    with boot(
        linux, [*init(run_dir, script), "a b", "c"], run_dir, time_travel=time_travel
    ) as guest:
        done = guest.wait()
    release, uptime_s = (run_dir / "out").read_text().split()
    assert release.startswith("7.")
    assert float(uptime_s) >= 5
    if time_travel != "off":
        assert done.wall_s < 5
    assert done.console is not None and "said a b c" in done.console.read_text()


def test_what_the_rig_needs_is_in_the_kernel(linux: Path, run_dir: Path) -> None:
    script = """
    modes=/sys/module/null_blk/parameters
    cat /proc/filesystems /proc/misc > $run/names
    mount -t debugfs d /sys/kernel/debug && mount -t tracefs t /sys/kernel/tracing &&
    ls /sys/kernel/tracing/events/block > $run/events
    cat /sys/block/nullb0/queue/scheduler > $run/schedulers
    ls /proc/sys/vm /sys/block/nullb0/queue >> $run/names; cat /proc/self/io >> $run/names"""
    with boot(
        linux, init(run_dir, script), run_dir, options=["null_blk.nr_devices=1"], timeout_s=60
    ) as guest:
        guest.wait()
    names = (run_dir / "names").read_text()
    for word in ("ext4", "cgroup2", "ublk-control", "dirty_ratio", "wbt_lat_usec",
                 "read_bytes"):  # fmt: skip
        assert word in names.split() or f"{word}:" in names.split(), word
    assert "block_rq_issue" in (run_dir / "events").read_text()
    schedulers = (run_dir / "schedulers").read_text().replace("[", "").replace("]", "").split()
    assert set(schedulers) == {"none", "mq-deadline", "kyber", "bfq"}


def test_a_guest_cannot_write_beside_its_run_directory(linux: Path, run_dir: Path) -> None:
    beside = run_dir.parent / f"{run_dir.name}-beside"
    script = f"touch {beside} 2> $run/why; cat $run/why"
    with boot(linux, init(run_dir, script), run_dir, timeout_s=60) as guest:
        guest.wait()
    assert "Read-only file system" in (run_dir / "why").read_text()
    assert not beside.exists()


def test_a_panic_is_told_with_the_kernels_words(linux: Path, run_dir: Path) -> None:
    start_s = time.monotonic()
    with (
        pytest.raises(GuestPanicError, match="panicked; its console") as told,
        boot(linux, ["/bin/true"], run_dir, timeout_s=100) as guest,
    ):
        guest.wait()
    assert "Attempted to kill init" in told.value.detail[-1]
    assert time.monotonic() - start_s < 50
    _until_gone(run_dir)


@pytest.mark.parametrize("clock", ["off", "inf-cpu"])
def test_a_guest_without_memory_ends_and_says_so(
    linux: Path, run_dir: Path, clock: TimeTravel
) -> None:
    hungry = "head -c 200m /dev/zero | tail -c 150m > /dev/null"
    with (
        pytest.raises(GuestMemoryError, match="ran out of its 64 MiB of memory; its con") as told,
        boot(
            linux, init(run_dir, hungry), run_dir, memory_mib=64, time_travel=clock, timeout_s=100
        ) as guest,
    ):
        guest.wait()
    assert "ut of memory" in told.value.detail[-1]


def test_a_guest_that_hangs_is_ended(linux: Path, run_dir: Path) -> None:
    with (
        pytest.raises(GuestTimeoutError, match="ended after 2 s") as told,
        boot(linux, init(run_dir, "echo before; sleep 100"), run_dir, timeout_s=2) as guest,
    ):
        guest.wait()
    assert told.value.detail[-1] == "before"
    _until_gone(run_dir)


def test_an_image_that_does_not_start_is_told(run_dir: Path) -> None:
    with (
        pytest.raises(KernelError, match="process died") as told,
        boot(run_dir / "absent", ["/bin/true"], run_dir, timeout_s=20) as guest,
    ):
        guest.wait()
    assert "No such file" in " ".join(told.value.detail)


def test_a_console_has_a_bound(linux: Path, run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("blklab.kernel.boot._CONSOLE_BYTES_MAX", 5000)
    with boot(linux, init(run_dir, "seq 100000"), run_dir, timeout_s=60) as guest:
        guest.wait()
    text = (run_dir / "console").read_bytes()
    assert 5000 <= len(text) < 5200
    assert text.endswith(b"the rest is left out]\n")


_PARENT = """
import sys
from pathlib import Path
from blklab.kernel.boot import boot
guest = boot(Path(sys.argv[1]), [sys.argv[2]], Path(sys.argv[3]))
guest.wait()
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_guest_dies_with_whoever_started_it_and_leaves_nothing(
    linux: Path, run_dir: Path, how: signal.Signals
) -> None:
    program = init(run_dir, "echo up > $run/up; sleep 1000")
    parent = subprocess.Popen(
        [sys.executable, "-c", _PARENT, str(linux), *program, str(run_dir)],
        env=os.environ | {"PYTHONPATH": str(ROOT / "python")},
        stderr=subprocess.DEVNULL,
    )
    while not (run_dir / "up").exists():
        assert parent.poll() is None
        time.sleep(0.02)
    assert real_kernel.processes(run_dir)
    parent.send_signal(how)
    parent.wait(20)
    _until_gone(run_dir)


def test_a_guest_that_nobody_waits_for_any_more_dies_before_it_has_begun(tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.mkdir()
    for _ in range(20):
        done = subprocess.run(
            [sys.executable, "-I", "-S", supervise.__file__, "60", str(tmp_path / "console"),
             "1000", str(private), "sleep", "60"],
            stdin=subprocess.DEVNULL,
            check=False,
            timeout=20,
        )  # fmt: skip
        assert done.returncode == supervise.ABANDONED


def test_two_guests_run_side_by_side(linux: Path, run_dir: Path) -> None:
    guests = []
    for number in range(2):
        place = run_dir / str(number)
        place.mkdir()
        guests.append(boot(linux, init(place, f"echo {number} > $run/out"), place, timeout_s=60))
    for number, guest in enumerate(guests):
        with guest:
            guest.wait()
        assert (run_dir / f"{number}/out").read_text() == f"{number}\n"


def _cpus_of(name: str, run_dir: Path) -> set[str]:
    """Where the host may run the processes of that name which the guest of `run_dir` is."""
    told = subprocess.run(
        ["pgrep", "-f", f"blklab.run={run_dir}"], capture_output=True, text=True, check=False
    )
    kernels = set(told.stdout.split())
    places = set()
    for status in Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError):
            rows = dict(line.split(":\t", 1) for line in status.read_text().splitlines())
            if rows["Name"] == name and {rows["Pid"], rows["PPid"]} & kernels:
                places.add(rows["Cpus_allowed_list"])
    return places


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_processes_have_a_cpu_of_their_own_unless_guests_are_side_by_side(
    linux: Path, run_dir: Path
) -> None:
    everyone = len(os.sched_getaffinity(0))

    def cpus(number: int) -> tuple[set[str], set[str]]:
        place = run_dir / str(number)
        place.mkdir()
        with boot(linux, init(place, "touch $run/ready; sleep 60"), place, timeout_s=60):
            while not (place / "ready").exists():
                time.sleep(0.05)
            return _cpus_of("linux", place), _cpus_of("uml-userspace", place)

    kernels, processes = cpus(everyone)
    assert (len(kernels), len(processes)) == (1, 1)
    assert kernels != processes
    found = pool.run_all(cpus, range(everyone), everyone, lambda _: None, lambda: None)
    for kernels, processes in found:
        assert kernels == processes


def test_no_root_is_needed(linux: Path, run_dir: Path) -> None:
    if os.getuid() == 0 and shutil.which("setpriv") is None:
        pytest.skip("needs setpriv to be somebody else")
    program = init(run_dir, "id -u > $run/out; touch /etc/blklab-was-here")
    own = shutil.copy(linux, run_dir / "linux")
    place = run_dir / "run"
    place.mkdir()
    place.chmod(0o777)
    text = (run_dir / "init").read_text().replace(f"run={run_dir}", f"run={place}")
    (run_dir / "init").write_text(text)
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    # Root's own Python may lie where nobody else can read; boot asks for nothing but one.
    python = shutil.which("python3", path="/usr/bin:/bin") if os.getuid() == 0 else sys.executable
    if python is None:
        pytest.skip("needs a Python that everybody may run")
    done = subprocess.run(
        [*(nobody if os.getuid() == 0 else []), python, "-c", _PARENT, own, *program,
         str(place)],
        env=os.environ | {"PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    if "Permission denied" in done.stderr and "blklab.kernel" not in done.stderr:
        pytest.skip(f"nobody may not read this checkout: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    # Inside, init is root of what its own user may do outside.
    assert (place / "out").read_text() == "0\n"
    assert not Path("/etc/blklab-was-here").exists()


def test_a_command_line_that_cannot_be_written_down_is_refused(run_dir: Path) -> None:
    with pytest.raises(InputError, match="cannot hold quotes"):
        boot(run_dir / "x", ["/bin/sh", 'a"b'], run_dir)
    with pytest.raises(InputError, match="at most 2000"):
        boot(run_dir / "x", ["/bin/sh", "x" * 3000], run_dir)
    # The next guest has its CPUs for itself.
    assert not any(sys.modules["blklab.kernel.boot"]._CPUS_IN_USE.values())


@contextlib.contextmanager
def shell(linux: Path, *arguments: str) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """A shell in a guest and the terminal before it, which is afterwards as it was."""
    ours, theirs = pty.openpty()
    before = termios.tcgetattr(theirs)
    process = subprocess.Popen(
        [sys.executable, "-m", "blklab", "kernel", "shell", linux.parent.name, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=os.environ | {"PYTHONPATH": str(ROOT / "python")},
    )
    try:
        yield ours, process
        assert termios.tcgetattr(theirs) == before
    finally:
        process.kill()
        process.wait()
        os.close(ours)
        os.close(theirs)


def test_a_shell_inside_sees_the_guest_and_leaves_the_terminal_as_it_was(linux: Path) -> None:
    with shell(linux) as (terminal, process):
        text = _read_until(terminal, "# ")
        os.write(terminal, b"ls /sys/block; echo $((6 * 7)); pwd; touch here && ls\n")
        text += _read_until(terminal, "here\n")
        assert "\n42\n" in text and "loop0" in text and "ublk" not in text
        os.write(terminal, b"exit\n")
        assert process.wait(60) == 0


def test_a_shell_with_a_disk_has_it_as_it_was_asked_for(linux: Path) -> None:
    spec = "mq-deadline:fifo_batch=5,async_depth=7,nr_requests=48"
    with shell(linux, "--disk", "wd10ezrx:rpm=7200", "--scheduler", spec) as (terminal, process):
        text = _read_until(terminal, "# ")
        assert "/dev/ublkb0" in text and text.count("mq-deadline") == 1
        queue = b"/sys/block/ublkb0/queue"
        # What is waited for is nowhere in what is typed, which the terminal shows too.
        for command, wanted in (
            (b"cat %s/scheduler" % queue, "none [mq-deadline] kyber bfq"),
            (b"cd %s; echo $(cat iosched/fifo_batch async_depth nr_requests)" % queue, "5 7 48\n"),
            (b"echo $(cat %s/rotational /sys/block/ublkb0/size)" % queue, "1 1953525168\n"),
            # What was written is there when the page cache has forgotten it.
            (b"seq 9999 > /tmp/in; dd if=/tmp/in of=$BLKLAB_DISK conv=fsync", "48888 bytes"),
            (b"echo 3 > /proc/sys/vm/drop_caches && echo $((6 * 7))", "42\n"),
            (b"head -c 48888 $BLKLAB_DISK | cmp - /tmp/in && echo $((7 * 8))", "56\n"),
        ):
            os.write(terminal, command + b"\n")
            _read_until(terminal, wanted)
        os.write(terminal, b"exit\n")
        assert process.wait(60) == 0


def test_a_shell_whose_disk_cannot_be_as_asked_for_says_why_and_ends(linux: Path) -> None:
    with shell(linux, "--disk", "wd10ezrx", "--scheduler", "noop") as (terminal, process):
        text = _read_until(terminal, "queue/scheduler: noop was refused: Invalid argument\n")
        assert "blklab: in the guest: /sys/block/ublkb0/" in text and "# " not in text
        assert process.wait(60) == 1


def test_a_shell_needs_a_terminal(
    linux: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("echo lost"))
    assert failing(capfd, monkeypatch, "kernel", "shell") == (
        2,
        "blklab: a shell needs a terminal as its standard input\n",
    )


def _read_until(terminal: int, wanted: str) -> str:
    text, end_s = "", time.monotonic() + 60
    while wanted not in text:
        assert select.select([terminal], [], [], end_s - time.monotonic())[0], text
        text += os.read(terminal, 4096).decode(errors="replace").replace("\r", "")
    return text
