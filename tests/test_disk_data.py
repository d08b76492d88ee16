"""A file for a disk's data is new, or one that blklab made, and one disk's at a time."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from blklab.api import ublk
from blklab.errors import InputError, RunError
from blklab.rigs.disk_data import DiskData
from blklab.rigs.kernel import cache, program
from tests.test_cli import failing, run
from tests.test_kernel_default import PLAIN

SIZE = 1 << 20
SU800_BYTES = 128_035_676_160


def made(path: Path, size: int = SIZE) -> Path:
    """A file for a disk of that size."""
    DiskData(path, size).close()
    return path


@pytest.mark.parametrize("content", [b"", b"precious", bytes(SIZE)])
def test_a_file_that_blklab_did_not_make_is_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "v"
    file.write_bytes(content)

    def state() -> tuple[int, ...]:
        # Without the time of access, which a look at it may change.
        found = file.stat()
        return found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns

    before = state()
    with pytest.raises(InputError, match="was not made by blklab, and is not changed"):
        DiskData(file, SIZE)
    assert (file.read_bytes(), state()) == (content, before)


@pytest.mark.parametrize("kind", ["link", "dangling", "directory", "fifo", "device"])
def test_only_a_regular_file_is_accepted(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "v"
    if kind == "link":
        path.symlink_to(made(tmp_path / "there"))
    elif kind == "dangling":
        path.symlink_to(tmp_path / "away")
    elif kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path = Path("/dev/null")
    with pytest.raises(InputError, match="is not a regular file"):
        DiskData(path, SIZE)
    assert not (tmp_path / "away").exists()


def test_a_new_file_has_the_disks_size_takes_no_room_and_is_known_again(tmp_path: Path) -> None:
    file = made(tmp_path / "v", SU800_BYTES)
    assert (file.stat().st_size, file.stat().st_blocks) == (SU800_BYTES, 0)
    with pytest.raises(InputError, match="is of another disk: it has 128035676160 bytes"):
        DiskData(file, SIZE)
    DiskData(file, SU800_BYTES).close()


def test_a_file_that_has_grown_or_shrunk_is_another(tmp_path: Path) -> None:
    file = made(tmp_path / "v")
    os.truncate(file, SIZE - 512)
    with pytest.raises(InputError, match="is of another disk"):
        DiskData(file, SIZE)
    assert file.stat().st_size == SIZE - 512


def test_a_file_is_one_disks_at_a_time(tmp_path: Path) -> None:
    first = DiskData(tmp_path / "v", SIZE)
    with pytest.raises(RunError, match="is in use by another disk"):
        DiskData(tmp_path / "v", SIZE)
    first.close()
    DiskData(tmp_path / "v", SIZE).close()


def test_it_is_empty_until_something_is_written(tmp_path: Path) -> None:
    data = DiskData(tmp_path / "v", SIZE)
    assert data.is_empty
    with (tmp_path / "v").open("r+b") as file:
        file.seek(SIZE - 1)
        file.write(b"x")
    assert not data.is_empty
    data.close()


def test_where_no_mark_can_be_kept_no_file_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr(os, "setxattr", refused)
    with pytest.raises(InputError, match=r"no extended attributes.*expected another place"):
        DiskData(tmp_path / "v", SIZE)
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"^--data: .*/away/v: No such file or directory$"):
        DiskData(tmp_path / "away/v", SIZE)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_roots_guest_is_given_what_is_roots_and_nothing_of_another(tmp_path: Path) -> None:
    data = DiskData(tmp_path / "v", SIZE)
    data.hand_over(65534)
    assert (tmp_path / "v").stat().st_uid == 65534
    data.hand_over(65534)
    os.chown(tmp_path / "v", 1000, 1000)
    with pytest.raises(InputError, match="belongs to user 1000; expected to be run by that user"):
        data.hand_over(65534)
    data.close()


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A kernel with ext4, which is never started."""
    monkeypatch.setenv("BLKLAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    tmp_path.chmod(0o755)
    monkeypatch.setattr(program, "_boot", _never)
    (tmp_path / "config").write_text("CONFIG_EXT4_FS=y\n")
    (tmp_path / "linux").write_bytes(b"")
    cache.keep(PLAIN, {"linux": tmp_path / "linux", "config": tmp_path / "config"})
    return PLAIN.key


class StartedError(RunError):
    """A guest would have started."""


def _never(*_: object) -> None:
    raise StartedError("started")


def test_a_file_system_is_not_made_over_data_unless_that_is_said(
    kernel: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("kernel", "run", "--kernel", kernel, "--disk", "su800-128gb", "--data", "v")
    mkfs = (*words, "--mkfs", "ext4")
    started = (1, "blklab: started\n")
    assert failing(capfd, monkeypatch, *mkfs, "--", "true") == started
    assert failing(capfd, monkeypatch, *mkfs, "--", "true") == started
    with Path("v").open("r+b") as file:
        file.write(b"precious")
    assert failing(capfd, monkeypatch, *mkfs, "--", "true") == (
        2,
        "blklab: --mkfs: v holds data, which it would overwrite; to do so: --overwrite-data\n",
    )
    assert failing(capfd, monkeypatch, *words, "--", "true") == started
    assert failing(capfd, monkeypatch, *mkfs, "--overwrite-data", "--", "true") == started


def test_an_unrelated_file_is_no_disk_of_a_guest(
    kernel: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("letter").write_text("precious")
    words = ("kernel", "run", "--kernel", kernel, "--disk", "su800-128gb", "--data", "letter")
    code, text = failing(capfd, monkeypatch, *words, "--", "true")
    assert code == 2
    assert text.endswith("letter was not made by blklab, and is not changed; expected a new name\n")
    assert Path("letter").read_text() == "precious"


def test_a_disk_of_this_machine_takes_the_same_files_and_keeps_the_lock(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ublk, "_UBLK", tmp_path)
    Path("letter").write_text("precious")
    words = ("disk", "create", "su800-128gb", "--data")
    code, text = failing(capfd, monkeypatch, *words, "letter")
    assert (code, "was not made by blklab" in text) == (2, True)
    assert Path("letter").read_text() == "precious"

    def become(program: Path, words: list[str]) -> None:
        assert program.name == words[0] == "blklab-disk" and "--data=v" in words
        # As in blklab-disk, with the descriptors that it inherits.
        script = "import fcntl, sys; fcntl.flock(open(sys.argv[1]), fcntl.LOCK_EX | fcntl.LOCK_NB)"
        done = subprocess.run(
            [sys.executable, "-c", script, "v"], capture_output=True, text=True, check=False
        )
        assert "BlockingIOError" in done.stderr

    monkeypatch.setattr("os.execv", become)
    assert run(*words, "v").exit_code == 0
    assert Path("v").stat().st_size == SU800_BYTES
