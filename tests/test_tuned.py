"""The profile that we write, as tuned itself reads it: its daemon, on loop devices."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from blklab.host.devices.queue import Queue
from blklab.host.roots import HERE, Roots
from blklab.settings import profile
from tests.applying import Asked, apply, loop_disk

_DEADLINE_S = 60

# In a separate mount namespace, where /etc/tuned is the test's.
_TUNED = (
    'mount --bind "$1/etc/tuned" /etc/tuned && '
    'exec tuned --no-dbus --no-socket -p blklab -l "$1/log" -P "$1/pid"'
)


@contextmanager
def _tuned(top: Path) -> Iterator[Path]:
    """Its daemon with the configuration below `top`; its log."""
    command = ["unshare", "-m", "sh", "-c", _TUNED, "sh", str(top)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as daemon:
        try:
            yield top / "log"
        finally:
            daemon.terminate()


def _wait_for(log: Path, words: str) -> None:
    deadline = time.monotonic() + _DEADLINE_S
    while not (log.exists() and words in log.read_text()):
        assert time.monotonic() < deadline, log.read_text() if log.exists() else "no log"
        time.sleep(0.1)


def test_tuned_itself_gives_our_profile_the_disk_and_others_theirs(
    loop: Queue, roots: Roots, programs: Asked, tmp_path: Path
) -> None:
    if shutil.which("tuned") is None:
        # Not among what `make test` installs: the package starts a daemon that changes settings.
        pytest.skip("tuned is not installed: apt-get install tuned")
    if Path("/run/tuned/tuned.pid").exists():
        pytest.skip("tuned runs here, and would set the same disks")
    (tmp_path / "other").mkdir()
    with loop_disk(tmp_path / "other") as other:
        tuned = roots.etc / "tuned"
        (tuned / "mine").mkdir(parents=True)
        theirs = f"[disk]\ndevices={loop.name},{other.name}\nelevator=kyber\nreadahead=1024\n"
        (tuned / "mine/tuned.conf").write_text(theirs)
        (tuned / "active_profile").write_text("mine\n")
        shutil.copy(HERE.etc / "tuned/tuned-main.conf", tuned)
        apply(loop, "bfq", roots, programs)
        assert profile.place(roots).exists()
        for disk in (loop, other):
            disk.write("scheduler", "none")
        with _tuned(roots.etc.parent) as log:
            _wait_for(log, "static tuning from profile 'blklab' applied")
            assert [disk.read("scheduler") for disk in (loop, other)] == ["bfq", "kyber"]
            # Other disk settings of the previous profile stay.
            assert loop.read("read_ahead_kb") == other.read("read_ahead_kb") == "1024"
