"""Guests of the real kernel: their contents, their ends, and no leftovers."""

from __future__ import annotations

import contextlib
import io
import json
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
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from blklab.base import binaries, pool
from blklab.errors import InputError
from blklab.rigs.kernel import supervise
from blklab.rigs.kernel.boot import Guest, TimeTravel
from blklab.rigs.kernel.boot import boot as boot_guest
from blklab.rigs.kernel.errors import (
    GuestMemoryError,
    GuestPanicError,
    GuestTimeoutError,
    KernelError,
)
from blklab.rigs.kernel.view import HERE, RUN, View
from tests import real_kernel
from tests.test_cli import failing

ROOT = Path(__file__).resolve().parents[1]
INIT = str(HERE / "init")
# Not by mount(8): inside a user namespace its set-user-ID bit is another user's.
MOUNTS = f"""python3 -c '
import ctypes
mount = ctypes.CDLL(None).mount
mount(b"proc", b"/proc", b"proc", 0, None)
mount(b"sysfs", b"/sys", b"sysfs", 0, None)
mount(b"none", b"{RUN}", b"hostfs", 0, b"{RUN}")'
"""


@pytest.fixture(scope="session")
def linux() -> Path:
    return real_kernel.image()


@pytest.fixture
def place(linux: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory for inits; no guest leaves a file below the temporary one in it."""
    # Not below pytest's directory, which only its user may enter.
    with tempfile.TemporaryDirectory(prefix="blklab-test-") as directory:
        temporary = Path(directory) / "tmp"
        temporary.mkdir()
        temporary.chmod(0o777)
        Path(directory).chmod(0o755)
        monkeypatch.setenv("TMPDIR", str(temporary))
        monkeypatch.setattr(tempfile, "tempdir", str(temporary))
        yield Path(directory)
        assert list(temporary.iterdir()) == []


def init(place: Path, script: str) -> Path:
    """A guest's init in sh that powers off at the end."""
    path = place / "init"
    path.write_text(f"#!/bin/sh\nexport PATH={os.defpath}:/usr/sbin:/sbin run={RUN}\n"
                    f"{MOUNTS}{script}\n{real_kernel.POWER_OFF}")  # fmt: skip
    path.chmod(0o755)
    return path


def boot(linux: Path, program: Path, *arguments: str, **options: Any) -> Guest:
    """A guest with the program as its init."""
    return boot_guest(linux, [INIT, *arguments], {}, View({"init": program}), **options)


def read(guest: Guest, name: str) -> str:
    return guest.run.read(name, 1 << 20).decode()


def _until_there(guest: Guest, name: str) -> None:
    end_s = time.monotonic() + 60
    while True:
        assert guest.running and time.monotonic() < end_s
        with contextlib.suppress(FileNotFoundError):
            guest.run.open(name).close()
            return
        time.sleep(0.02)


def _until_gone(place: Path) -> None:
    end_s = time.monotonic() + 20
    while left := real_kernel.processes(place):
        assert time.monotonic() < end_s, left
        time.sleep(0.02)


@pytest.mark.parametrize("time_travel", ["off", "on", "inf-cpu"])
def test_a_guest_runs_the_hosts_programs_and_writes_to_its_run_directory(
    linux: Path, place: Path, time_travel: TimeTravel
) -> None:
    script = 'uname -r > $run/out; sleep 5; cut -d" " -f1 /proc/uptime >> $run/out; echo said "$@"'
    with boot(linux, init(place, script), "a b", "c", time_travel=time_travel) as guest:
        done = guest.wait()
        release, uptime_s = read(guest, "out").split()
    assert release.startswith("7.")
    assert float(uptime_s) >= 5
    if time_travel != "off":
        assert done.wall_s < 5
    assert b"said a b c" in done.console


def test_the_kernel_has_everything_that_the_rig_needs(linux: Path, place: Path) -> None:
    script = """
    modes=/sys/module/null_blk/parameters
    cat /proc/filesystems /proc/misc > $run/names
    mount -t debugfs d /sys/kernel/debug && mount -t tracefs t /sys/kernel/tracing &&
    ls /sys/kernel/tracing/events/block > $run/events
    cat /sys/block/nullb0/queue/scheduler > $run/schedulers
    ls /proc/sys/vm /sys/block/nullb0/queue >> $run/names; cat /proc/self/io >> $run/names"""
    options = ["null_blk.nr_devices=1"]
    with boot(linux, init(place, script), options=options, timeout_s=60) as guest:
        guest.wait()
        names = read(guest, "names")
        for word in ("ext4", "cgroup2", "ublk-control", "dirty_ratio", "wbt_lat_usec",
                     "read_bytes"):  # fmt: skip
            assert word in names.split() or f"{word}:" in names.split(), word
        assert "block_rq_issue" in read(guest, "events")
        schedulers = read(guest, "schedulers").replace("[", "").replace("]", "").split()
    assert set(schedulers) == {"none", "mq-deadline", "kyber", "bfq"}


def test_a_panic_is_reported_with_the_kernels_words(linux: Path, place: Path) -> None:
    start_s = time.monotonic()
    with (
        pytest.raises(GuestPanicError, match="the guest's kernel panicked") as told,
        boot(linux, Path(shutil.copy("/bin/true", place)), timeout_s=100) as guest,
    ):
        guest.wait()
    assert "Attempted to kill init" in told.value.detail[-1]
    assert time.monotonic() - start_s < 50
    _until_gone(place)


@pytest.mark.parametrize("clock", ["off", "inf-cpu"])
def test_a_guest_without_memory_ends_and_says_so(
    linux: Path, place: Path, clock: TimeTravel
) -> None:
    hungry = init(place, "head -c 200m /dev/zero | tail -c 150m > /dev/null")
    with (
        pytest.raises(GuestMemoryError, match="ran out of its 64 MiB of memory") as told,
        boot(linux, hungry, memory_mib=64, time_travel=clock, timeout_s=100) as guest,
    ):
        guest.wait()
    assert "ut of memory" in told.value.detail[-1]


def test_a_guest_that_hangs_is_ended(linux: Path, place: Path) -> None:
    with (
        pytest.raises(GuestTimeoutError, match="ended after 10 s") as told,
        boot(linux, init(place, "echo before; sleep 100"), timeout_s=10) as guest,
    ):
        guest.wait()
    assert told.value.detail[-1] == "before"
    _until_gone(place)


def test_an_image_that_does_not_start_is_reported(place: Path) -> None:
    with pytest.raises(KernelError, match="could not be started") as told:
        boot(place / "absent", Path("/bin/true"), timeout_s=20)
    assert "No such file" in " ".join(told.value.detail)


def test_a_console_has_a_bound(linux: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("blklab.rigs.kernel.boot._CONSOLE_BYTES_MAX", 5000)
    with boot(linux, init(place, "seq 100000"), timeout_s=60) as guest:
        text = guest.wait().console
    assert 5000 <= len(text) < 5200
    assert text.endswith(b"the rest is left out]\n")


_PARENT = """
import sys
from pathlib import Path
from blklab.rigs.kernel.boot import boot
from blklab.rigs.kernel.view import View
guest = boot(Path(sys.argv[1]), ["/run/blklab/init"], {}, View({"init": Path(sys.argv[2])}))
print("started", flush=True)
guest.wait()
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_guest_dies_with_the_process_that_started_it_and_leaves_nothing(
    linux: Path, place: Path, how: signal.Signals
) -> None:
    program = init(place, "sleep 1000")
    with subprocess.Popen(
        [sys.executable, "-c", _PARENT, str(linux), program],
        env=os.environ | {"PYTHONPATH": str(ROOT / "python")},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"started\n"
        assert real_kernel.processes(program)
        parent.send_signal(how)
    _until_gone(program)


def test_a_guest_without_its_parent_dies_before_it_has_begun(tmp_path: Path) -> None:
    for _ in range(20):
        entry = [os.open(os.devnull, os.O_RDWR) for _ in range(4)]
        to, *shared = map(str, entry)
        done = subprocess.run(
            [sys.executable, "-I", "-S", supervise.__file__, "60", f"to:{to}", "1000", *shared,
             "sleep", "60"],
            stdin=subprocess.DEVNULL,
            pass_fds=entry,
            check=False,
            timeout=20,
        )  # fmt: skip
        for one in entry:
            os.close(one)
        assert done.returncode == supervise.ABANDONED


def test_two_guests_run_side_by_side(linux: Path, place: Path) -> None:
    guests = []
    for number in range(2):
        (place / str(number)).mkdir()
        program = init(place / str(number), f"echo {number} > $run/out")
        guests.append(boot(linux, program, timeout_s=60))
    for number, guest in enumerate(guests):
        with guest:
            guest.wait()
            assert read(guest, "out") == f"{number}\n"


def _cpus_of(name: str, program: Path) -> set[str]:
    """The CPUs for the processes of that name of the guest with this init."""
    told = subprocess.run(
        ["pgrep", "--full", "--", f"--ro-bind {program} "], capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    guests = real_kernel.descendants(map(int, told.stdout.split()), name)
    return {row["Cpus_allowed_list"] for row in guests}


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_processes_have_a_cpu_of_their_own_unless_guests_are_side_by_side(
    linux: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = sys.modules["blklab.rigs.kernel.boot"]
    monkeypatch.setattr(module, "other_guests", Counter())
    every_cpu = len(os.sched_getaffinity(0))

    def cpus(number: int) -> tuple[set[str], set[str]]:
        (place / str(number)).mkdir()
        program = init(place / str(number), "touch $run/ready; sleep 60")
        with boot(linux, program, timeout_s=60) as guest:
            _until_there(guest, "ready")
            return _cpus_of("linux", program), _cpus_of("uml-userspace", program)

    kernels, processes = cpus(every_cpu)
    assert (len(kernels), len(processes)) == (1, 1)
    assert kernels != processes
    # A guest of another worker of the tests: ours is beside it.
    for cpu in os.sched_getaffinity(0) - {max(os.sched_getaffinity(0))}:
        module.other_guests[cpu] += 1
    kernels, processes = cpus(every_cpu + 1)
    assert kernels == processes == {str(max(os.sched_getaffinity(0)))}
    module.other_guests.clear()
    found: list[tuple[set[str], set[str]]] = []
    pool.run_all(cpus, range(every_cpu), every_cpu, found.extend, lambda: None)
    assert len(found) == every_cpu
    for kernels, processes in found:
        assert kernels == processes


_HOSTILE = """
id -u; mount -t tmpfs x /mnt && echo mounted; mount -o remount,rw /
mkdir /tmp/again && mount -t hostfs none /tmp/again && echo again
for place in / /tmp/again/ /tmp/again/proc/1/root/; do
    echo y > ${place}etc/blklab-was-here; echo y > ${place}usr/blklab-was-here
    cat ${place}etc/shadow; ls ${place}root ${place}home
done 2>/dev/null
exit 0
"""


@pytest.mark.parametrize("user", [None, 1000])
def test_a_guest_that_mounts_its_root_anew_reaches_nothing_more(
    linux: Path, place: Path, user: int | None
) -> None:
    before: list[str] = []
    python = sys.executable
    if user is not None:
        if os.geteuid() != 0 or not Path("/usr/bin/python3").exists():
            pytest.skip("needs root, to be another user, and /usr/bin/python3")
        before = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        python = "/usr/bin/python3"
    program = {"command": ["sh", "-c", _HOSTILE], "directory": "scratch"}
    order = {
        "disk": {"file": "disk.toml", "seed": 1}, "scheduler": "none", "run": {"program": program},
    }  # fmt: skip
    script = f"""
import sys
from pathlib import Path
from blklab.rigs.kernel.boot import boot
from blklab.rigs.kernel.view import View
image, guest, disk = map(Path, sys.argv[1:])
files = {{"guest.json": {json.dumps(order).encode()!r}, "disk.toml": disk.read_bytes(),
          "scratch": None}}
view = View({{"blklab-guest": guest}})
with boot(image, ["/run/blklab/blklab-guest"], files, view, time_travel="inf-cpu") as guest:
    guest.wait()
    sys.stdout.write(guest.run.read("program.stdout", 1 << 20).decode())
"""
    disk = ROOT / "crates/blklab-disk-model/catalogue/wd10ezrx.toml"
    files = [shutil.copy(one, place) for one in (linux, binaries.find("blklab-guest"), disk)]
    done = subprocess.run(
        [*before, python, "-c", script, *files],
        env=os.environ | {"PYTHONPATH": str(ROOT / "python")},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    if "Permission denied" in done.stderr and "blklab/kernel" not in done.stderr:
        pytest.skip(f"others may not read this checkout: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    # Inside it is root; its output has nothing from outside.
    lines = done.stdout.splitlines()
    assert lines[:3] == ["0", "mounted", "again"]
    roots = ("/", "/tmp/again/", "/tmp/again/proc/1/root/")
    listed = {f"{root}{name}:" for root in roots for name in ("root", "home")}
    assert set(lines[3:]) <= listed | {""}
    for directory in ("/etc", "/usr"):
        assert not Path(directory, "blklab-was-here").exists()


def test_a_command_line_that_cannot_be_written_down_is_refused(place: Path) -> None:
    for word, message in (('a"b', "cannot hold quotes"), ("x" * 3000, "at most 2000")):
        with pytest.raises(InputError, match=message):
            boot(place / "x", Path("/bin/sh"), word)
    # The next guest has its CPUs for itself.
    assert not any(sys.modules["blklab.rigs.kernel.boot"]._CPUS_IN_USE.values())


@contextlib.contextmanager
def shell(linux: Path, *arguments: str) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """A shell in a guest and its terminal, which is restored afterwards."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (43, 132))
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
        os.write(terminal, b"ls /sys/block; stty size; echo $((6 * 7)); pwd; touch here && ls\n")
        text += _read_until(terminal, "here\n")
        assert "\n43 132\n" in text
        assert "\n42\n" in text and "loop0" in text and "ublk" not in text
        os.write(terminal, b"exit\n")
        assert process.wait(60) == 0


def test_a_shell_with_a_disk_has_it_as_it_was_asked_for(linux: Path) -> None:
    spec = "mq-deadline:fifo_batch=5,async_depth=7,nr_requests=48"
    with shell(linux, "--disk", "wd10ezrx:rpm=7200", "--scheduler", spec) as (terminal, process):
        text = _read_until(terminal, "# ")
        assert "/dev/sda" in text and text.count("mq-deadline") == 1
        queue = b"/sys/block/sda/queue"
        # The expected text is not part of the typed text, which the terminal shows too.
        for command, wanted in (
            (b"cat %s/scheduler" % queue, "none [mq-deadline] kyber bfq"),
            (b"cd %s; echo $(cat iosched/fifo_batch async_depth nr_requests)" % queue, "5 7 48\n"),
            (b"echo $(cat %s/rotational /sys/block/sda/size)" % queue, "1 1953525168\n"),
            # The written data are on the disk after the page cache was dropped.
            (b"seq 9999 > /tmp/in; dd if=/tmp/in of=$BLKLAB_DISK conv=fsync", "48888 bytes"),
            (b"echo 3 > /proc/sys/vm/drop_caches && echo $((6 * 7))", "42\n"),
            (b"head -c 48888 $BLKLAB_DISK | cmp - /tmp/in && echo $((7 * 8))", "56\n"),
        ):
            os.write(terminal, command + b"\n")
            _read_until(terminal, wanted)
        os.write(terminal, b"exit\n")
        assert process.wait(60) == 0


def test_a_shell_without_the_requested_disk_prints_why_and_ends(linux: Path) -> None:
    with shell(linux, "--disk", "wd10ezrx", "--scheduler", "noop") as (terminal, process):
        text = _read_until(terminal, "queue/scheduler: noop was refused: Invalid argument\n")
        assert "blklab: in the guest: /sys/block/sda/" in text and "# " not in text
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
