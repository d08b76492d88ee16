"""Test files on a real disk are removed with their run, however it ends."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from blklab.base.journal import Journal
from blklab.base.signals import Signals
from blklab.errors import InputError, RunError
from blklab.rigs.live import files, leftovers, target, whereabouts
from tests import loop_device


def killed_with_files(directory: Path, journal: Journal) -> None:
    """A process lays out a test file there and is killed."""
    child = os.fork()
    if child == 0:
        # The fork must never continue as a second pytest.
        try:
            with files.laid_in(directory, journal, Signals(), []) as laid:
                laid.lay_out([1000], lambda _: None)
                os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(1)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])


def test_test_files_are_written_out_and_removed(
    tmp_path: Path, journal: Journal, signals: Signals
) -> None:
    told: list[str] = []
    written: list[int] = []
    with files.laid_in(tmp_path, journal, signals, told) as laid:
        laid.lay_out([3 << 20, 5], written.append)
        assert [path.stat().st_size for path in sorted(laid.directory.iterdir())] == [3 << 20, 5]
        assert laid.path(0).stat().st_blocks * 512 >= 3 << 20, "no hole: a read must reach the disk"
        assert sum(written) == (3 << 20) + 5
        assert laid.directory.stat().st_mode & 0o777 == 0o700
    assert (told, journal.keys()) == ([], [])
    assert [path.name for path in tmp_path.iterdir()] == ["journal"]
    assert [path.name for path in journal.directory.iterdir()] == []


@pytest.mark.parametrize("when", ["before they are made", "while they are made"])
def test_files_are_made_on_the_disk_that_was_named_or_nowhere(
    mounted: Path, journal: Journal, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """After an unmount the path names a directory on another disk, or one that `restore` would
    never find."""
    found = target.find(str(mounted))
    unmount = ["umount", "--lazy", str(mounted)]
    if when == "before they are made":
        subprocess.run(unmount, check=True)
    else:
        asked = whereabouts.inside

        def too_late(handle: int) -> whereabouts.Inside | None:
            subprocess.run(unmount, check=True)
            return asked(handle)

        monkeypatch.setattr(whereabouts, "inside", too_late)
    with (
        pytest.raises(RunError, match="was unmounted or replaced while the run began"),
        files.laid_in(mounted, journal, Signals(), [], found.identity),
    ):
        pass
    assert (journal.keys(), list(mounted.iterdir())) == ([], [])


def test_test_files_of_a_killed_process_are_removed_and_nothing_else(
    tmp_path: Path, journal: Journal
) -> None:
    killed_with_files(tmp_path, journal)
    (place,) = tmp_path.glob(".blklab-*")
    # A directory with foreign files stays.
    (place / "thesis").write_text("mine")
    found = leftovers.restore(journal)
    assert found.problems == [f"{place}: not removed: Directory not empty"]
    assert [path.name for path in place.iterdir()] == ["thesis"]
    (place / "thesis").unlink()
    assert leftovers.restore(journal).done == [f"{place}: removed"]
    assert not place.exists()


def test_a_link_in_the_place_of_test_files_is_not_followed(
    tmp_path: Path, journal: Journal
) -> None:
    treasure = tmp_path / "treasure"
    treasure.mkdir(mode=0o700)
    (treasure / "0").write_text("keep")
    with journal.locked("files-abc", "it"):
        journal.write("files-abc", files.KIND, {"directory": str(tmp_path / ".blklab-abc")})
    (tmp_path / ".blklab-abc").symlink_to(treasure)
    assert "not removed" in leftovers.restore(journal).problems[0]
    assert (treasure / "0").read_text() == "keep"


@pytest.mark.parametrize("when", ["while it runs", "after it was killed"])
def test_test_files_of_a_file_system_that_was_unmounted_are_removed_all_the_same(
    tmp_path: Path, journal: Journal, signals: Signals, when: str
) -> None:
    if not shutil.which("mkfs.ext4"):
        pytest.skip("needs mkfs.ext4: apt-get install e2fsprogs")
    loop_device.require()
    with loop_device.attached(tmp_path) as name:
        subprocess.run(["mkfs.ext4", "-q", f"/dev/{name}"], check=True)
        mounted, other = tmp_path / "mounted", tmp_path / "other"
        for place in (mounted, other):
            place.mkdir()
        subprocess.run(["mount", f"/dev/{name}", str(mounted)], check=True)
        (mounted / "deep").mkdir()
        lazily = ["umount", "--lazy", str(mounted)]
        told: list[str] = []
        if when == "while it runs":
            with files.laid_in(mounted / "deep", journal, signals, told) as laid:
                laid.lay_out([1000], lambda _: None)
                subprocess.run(lazily, check=True)
                laid.lay_out([1000, 2000], lambda _: None)
        else:
            killed_with_files(mounted / "deep", journal)
            subprocess.run(lazily, check=True)
            for _ in range(2):
                [line] = leftovers.restore(journal).problems
                assert f"{mounted}/deep/.blklab-" in line and "is not mounted" in line
        assert told == []
        subprocess.run(["mount", f"/dev/{name}", str(other)], check=True)
        try:
            if when == "after it was killed":
                [line] = leftovers.restore(journal).done
                assert line.startswith(f"{other}/deep/.blklab-") and line.endswith(": removed")
            assert (list((other / "deep").iterdir()), journal.keys()) == ([], [])
        finally:
            subprocess.run(["umount", str(other)], check=True)


def test_test_files_that_can_never_be_reached_again_can_be_forgotten(
    tmp_path: Path, journal: Journal
) -> None:
    gone = {"type": "ext4", "uuid": "0000", "fsid": 1, "path": "/.blklab-abc"}
    place = tmp_path / ".blklab-abc"
    with journal.locked("files-abc", "it"):
        record = {"directory": str(place), "inode": 7, "inside": gone}
        journal.write("files-abc", files.KIND, record)
    [line] = leftovers.restore(journal).problems
    assert line == (
        f"{place}: not removed: its file system, ext4 0000, is not mounted; once it is: blklab "
        f"restore; if it never will be: blklab restore --forget {place}"
    )
    assert leftovers.forget(journal, str(place)) == f"{place}: record discarded; it stays as it is"
    assert list(journal.directory.iterdir()) == []


def test_a_directory_that_another_user_swaps_leads_to_nothing_else(
    tmp_path: Path, journal: Journal, signals: Signals
) -> None:
    treasure = tmp_path / "treasure"
    treasure.mkdir(mode=0o700)
    for name in ("0", "1", "thesis"):
        (treasure / name).write_text("keep")
    (treasure / files.WORK).mkdir()
    told: list[str] = []
    with files.laid_in(tmp_path, journal, signals, told) as laid:
        laid.lay_out([1000], lambda _: None)
        place = laid.place.path
        place.rename(tmp_path / "taken")
        place.symlink_to(treasure)
        laid.lay_out([2000, 3000], lambda _: None)
        assert (laid.path(1)).stat().st_size == 3000
    assert list((tmp_path / "taken").iterdir()) == []
    assert sorted(path.name for path in treasure.iterdir()) == ["0", "1", "thesis", files.WORK]
    assert {(treasure / name).read_text() for name in ("0", "1")} == {"keep"}
    assert (told, journal.keys()) == ([], [])


def test_another_directory_of_the_same_name_is_not_emptied(
    tmp_path: Path, journal: Journal
) -> None:
    killed_with_files(tmp_path, journal)
    [place] = tmp_path.glob(".blklab-*")
    place.rename(tmp_path / "taken")
    place.mkdir(mode=0o700)
    (place / "0").write_text("keep")
    [line] = leftovers.restore(journal).problems
    assert line == f"{place}: not removed: it is not the directory that was made"
    assert (place / "0").read_text() == "keep"


def test_programs_that_use_paths_run_only_where_no_other_user_can_replace_one(
    tmp_path: Path, journal: Journal, signals: Signals
) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    own = tmp_path / "own"
    own.mkdir()
    for owner, mode, why in (
        (65534, 0o755, "user nobody may change the contents of"),
        (0, 0o777, "other users may change the contents of"),
        (0, 0o1777, ""),
        (0, 0o755, ""),
    ):
        os.chown(own, owner, owner)
        own.chmod(mode)
        with files.laid_in(own, journal, signals, []) as laid:
            if why:
                with pytest.raises(InputError, match=f"{own}: {why} {own}"), laid.work(others=True):
                    pass
            else:
                with laid.work(others=True) as place:
                    (place / "deep/er").mkdir(parents=True)
                    (place / "deep/er/x").symlink_to("/etc/passwd")
        assert list(own.iterdir()) == []


def test_a_full_file_system_is_one_line_and_the_files_go(
    tmp_path: Path, journal: Journal, signals: Signals
) -> None:
    with (
        loop_device.file_system(tmp_path) as mounted,
        pytest.raises(RunError, match=r"a test file of 64 MiB could not be written: No space left"),
        files.laid_in(mounted, journal, signals, []) as laid,
    ):
        assert files.room_bytes(mounted) < 16 << 20
        laid.lay_out([64 << 20], lambda _: None)
    assert journal.keys() == []
