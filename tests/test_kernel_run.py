"""Any program on a modelled disk: `blklab kernel run`; and disks of this machine, `blklab disk`."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from blklab.rigs.kernel.file_systems import KINDS, SBIN
from tests import guest_place, real_fio, real_kernel

BLKLAB = str(Path(sys.executable).with_name("blklab"))


@pytest.fixture
def place(kernel: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """See `guest_place.current`."""
    with guest_place.current(monkeypatch) as found:
        yield found


def run(kernel: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [BLKLAB, "kernel", "run", f"--kernel={kernel}", "--disk=su800-128gb", *arguments],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


@real_fio.needs_fio
def test_fio_as_a_program_gets_the_guests_clock(place: Path, kernel: str) -> None:
    job = "[a]\nrw=randread\nbs=4k\ndirect=1\nsize=1g\nruntime=10\ntime_based\nfilename={disk}\n"
    Path("plain.fio").write_text(job)
    Path("told.fio").write_text(f"{job}clocksource=clock_gettime\n".replace("{disk}", "/dev/sda"))
    told = run(kernel, "--", "fio", "--output-format=json", str(place / "told.fio"))
    # Virtual time; in real time it is a second or two.
    assert json.loads(told.stdout)["jobs"][0]["job_runtime"] == pytest.approx(10_000, abs=10)
    clock = "fio reads the CPU's own clock"
    assert clock not in told.stderr
    no_name = f"{'x' * 300}.fio"
    for words in (["fio", "plain.fio"], ["sh", "-c", "fio --version"], ["fio", "-v", no_name]):
        assert clock in run(kernel, "--", *words).stderr
    assert clock not in run(kernel, "--", "fio", "--version", "--clocksource=clock_gettime").stderr


def test_a_program_runs_before_the_disk_and_is_traced(place: Path, kernel: str) -> None:
    script = "dd if={disk} of=/dev/null bs=64k count=9 iflag=direct status=none; pwd; ls; exit 7"
    done = run(kernel, "--scheduler=bfq", "--trace=kept", "--", "sh", "-c", script)
    assert done.returncode == 7, done.stderr
    assert done.stdout.endswith("/scratch\n")
    lines = done.stderr.splitlines()
    assert lines[0].startswith("blklab: 9 reads of 0.6 MB, 0 writes of 0.0 MB, 0 flushes; lateness")
    assert lines[1].startswith("blklab: bfq on Linux ")
    events = (place / "kept/trace.txt").read_text()
    assert events.count(" block_rq_issue: ") == events.count(" block_rq_complete: ") == 9


def test_blkparse_reads_the_trace_and_counts_the_disks_commands(place: Path, kernel: str) -> None:
    for tool in ("blkparse", "btt"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} (Debian package blktrace) is not installed")
    script = (
        "dd if={disk} of=/dev/null bs=64k count=9 iflag=direct status=none; "
        "dd if=/dev/zero of={disk} bs=4k count=64 conv=fsync status=none"
    )
    arguments = ("--scheduler=bfq", "--trace=kept", "--", "sh", "-c", script)
    done = run(kernel, "--trace-format=blktrace", *arguments)
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    assert lines[0].startswith("blklab: 9 reads of 0.6 MB, 1 writes of 0.3 MB, 1 flushes; lateness")
    assert lines[2].startswith("blklab: kept/sda.blktrace.0: ")
    events = read_by_blkparse("kept/sda", "%a %d %S %n\n")
    assert f": {len(events)} events" in lines[2]
    reads = [f"RS {128 * number} 128" for number in range(9)]
    for letter in "QGIDC":
        assert [line[2:] for line in events if line.startswith(f"{letter} RS ")] == reads, letter
    assert sum(line.startswith("Q WS") for line in events) == 64
    assert sum(line.startswith("M WS") for line in events) == 63
    assert [line for line in events if line.startswith("D WS")] == ["D WS 0 512"]
    # Without a trace it is the same run.
    plain = run(kernel, *(word for word in arguments if word != "--trace=kept"))
    there = [line.partition(" there")[0] for line in lines[:2]]
    assert [line.partition(" there")[0] for line in plain.stderr.splitlines()] == there
    # The same run as text: the same events.
    run(kernel, *arguments)
    text = (place / "kept/trace.txt").read_text()
    names = {"Q": "bio_queue", "M": "bio_backmerge", "I": "rq_insert", "D": "rq_issue"}
    for letter, name in names.items():
        counted = sum(line.startswith(f"{letter} ") for line in events)
        assert text.count(f" block_{name}: ") == counted > 0, name
    subprocess.run(["blkparse", "-q", "-O", "-i", "kept/sda", "-d", "kept/all"], check=True)
    told = subprocess.run(["btt", "-i", "kept/all"], capture_output=True, text=True, check=True)
    d2c = next(line for line in told.stdout.splitlines() if line.startswith("D2C"))
    assert d2c.split()[-1] == str(9 + 64)


def read_by_blkparse(name: str, form: str) -> list[str]:
    """Events, one a line, each of them in the form."""
    done = subprocess.run(
        ["blkparse", "-q", "-i", name, "-f", form], capture_output=True, text=True, check=True
    )
    return [line for line in done.stdout.splitlines() if not line.startswith("Input file")]


@pytest.fixture
def mkfs() -> None:
    """Needs the program that makes ext4."""
    if not any(Path(directory, "mkfs.ext4").exists() for directory in ("/sbin", "/usr/sbin")):
        pytest.skip("mkfs.ext4 is not installed")


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_file_system_at_rest_leaves_the_disk_alone(place: Path, kind: str) -> None:
    """More than a minute, in which xfs and btrfs would look after their logs three times."""
    if shutil.which(f"mkfs.{kind}", path=SBIN) is None:
        pytest.skip(f"not installed: {KINDS[kind]}")
    counts = "cut -c-80 /sys/block/$(basename {disk})/stat"
    kernel = real_kernel.with_file_systems()
    found = run(kernel, f"--mkfs={kind}", "--", "sh", "-c", f"{counts}; sleep 100; {counts}")
    assert found.returncode == 0, found.stderr
    before, after = (list(map(int, line.split()[:5])) for line in found.stdout.splitlines())
    assert before[0] > 0, "the file system was read"
    assert (after[0] - before[0], after[4] - before[4]) == (0, 0), found.stdout


@pytest.mark.usefixtures("mkfs")
def test_a_file_system_keeps_what_is_written_in_the_disks_file(place: Path, kernel: str) -> None:
    (place / "words").write_text("seen from inside\n")
    made = run(kernel, "--mkfs=ext4", "--data=disk.img", "--",
               "sh", "-c", f"cp {place}/words . && sync && pwd")  # fmt: skip
    assert (made.returncode, made.stdout) == (0, "/mnt\n"), made.stderr
    again = run(kernel, "--data=disk.img", "--",
                "sh", "-c", "mount -t ext4 $BLKLAB_DISK /mnt && cat /mnt/words")  # fmt: skip
    assert again.stdout == "seen from inside\n", again.stderr
    assert sorted(path.name for path in place.iterdir()) == ["disk.img", "tmp", "words"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--mkfs=ext5", "--", "ls"], "--mkfs: no file system 'ext5'; did you mean 'ext4'?"),
        (["--mkfs=ext4", "--data=none", "--", "ls"], "--data none: written data are discarded"),
        (["--mkfs=ext4", "--mount=here", "--", "ls"], "--mount: 'here' is not absolute"),
        (["--data=tmp", "--", "ls"], "is not a regular file"),
        (["--time-travel=fast", "--", "ls"], "--time-travel: no 'fast'"),
        (
            ["--trace-format=blktrace", "--", "ls"],
            "--trace-format: needs --trace with a directory for the events",
        ),
        (
            ["--trace=kept", "--trace-format=blktrac", "--", "ls"],
            "--trace-format: no 'blktrac'; did you mean 'blktrace'?",
        ),
        (["--", "no-such-program"], "no-such-program: cannot be started: No such file"),
    ],
)
def test_a_program_that_cannot_run_is_one_line(
    place: Path, kernel: str, arguments: list[str], message: str
) -> None:
    done = run(kernel, *arguments)
    assert done.returncode in (1, 2)
    assert message in done.stderr and done.stderr.count("\n") == 1


def test_a_disk_of_this_machine_needs_ublk(place: Path) -> None:
    if Path("/dev/ublk-control").exists():
        pytest.skip("this machine has ublk")
    for words in (["list"], ["remove", "0"], ["create", "wd10ezrx", "--data=disk.img"]):
        done = subprocess.run([BLKLAB, "disk", *words], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("blklab-disk: /dev/ublk-control is missing: ")
        assert done.stderr.count("\n") == 1
    assert not (place / "disk.img").exists()
