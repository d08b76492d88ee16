"""Temporary files are removed with their run or by the next one, and no other files are."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from blklab.base import owned, scratch
from blklab.base.journal import Journal
from blklab.errors import RunError
from blklab.rigs.live import leftovers


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of temporary files."""
    place = tmp_path / "scratch"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    return place


def killed(*, in_it: bool = True) -> None:
    """Runs a process that is killed while it has temporary files."""
    child = os.fork()
    if child == 0:
        # The fork must never continue as a second pytest.
        try:
            with scratch.directory("run") as place:
                if in_it:
                    (place / "deep/er").mkdir(parents=True)
                    (place / "deep/er/file").write_text("x")
                os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(1)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])


def test_it_is_there_for_the_run_and_then_gone(own: Path, journal: Journal) -> None:
    with scratch.directory("run") as place:
        assert place.parent == own and place.name.startswith("blklab-run-")
        assert place.stat().st_mode & 0o777 == 0o700
        (place / "a/b").mkdir(parents=True)
        (place / "a/b/c").write_text("x")
        (place / "a").chmod(0)
        (place / "link").symlink_to("/etc")
        assert len(journal.keys()) == 1
    assert (list(own.iterdir()), list(journal.directory.iterdir())) == ([], [])
    with pytest.raises(ZeroDivisionError), scratch.directory("guest", own) as place:
        assert place.name.startswith("blklab-guest-")
        raise ZeroDivisionError
    assert (list(own.iterdir()), list(journal.directory.iterdir())) == ([], [])


def test_leftovers_of_a_killed_process_are_removed(own: Path, journal: Journal) -> None:
    killed()
    [place] = own.iterdir()
    assert leftovers.restore(journal).done == [f"{place}: removed"]
    assert (list(own.iterdir()), list(journal.directory.iterdir())) == ([], [])


def test_the_next_that_needs_scratch_removes_it(own: Path, journal: Journal) -> None:
    killed()
    scratch._clear_once.cache_clear()
    with scratch.directory("run") as place:
        assert list(own.iterdir()) == [place]
        # Files of a running process are not removed.
        scratch._clear_once.cache_clear()
        with scratch.directory("run") as other:
            assert sorted(own.iterdir()) == sorted([place, other])


@pytest.mark.parametrize(
    ("where", "name"),
    [
        (owned.OwnedPlace, "make"),
        (owned.OwnedPlace, "remove"),
        (owned, "empty"),
        (Journal, "remove"),
    ],
)
def test_interrupted_in_the_middle_of_it_nothing_stays(
    own: Path, journal: Journal, monkeypatch: pytest.MonkeyPatch, where: object, name: str
) -> None:
    done, interrupted = getattr(where, name), list[str]()

    def once(*given: object) -> object:
        found = done(*given)
        if not interrupted:
            interrupted.append(name)
            raise KeyboardInterrupt
        return found

    monkeypatch.setattr(where, name, once)
    with pytest.raises(KeyboardInterrupt), scratch.directory("run") as place:
        (place / "file").write_text("x")
    assert (list(own.iterdir()), list(journal.directory.iterdir())) == ([], [])


def test_many_threads_have_their_own(own: Path, journal: Journal) -> None:
    seen = []

    def work() -> None:
        for _ in range(5):
            with scratch.directory("run") as place:
                seen.append(place)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(seen)) == 40
    assert (list(own.iterdir()), list(journal.directory.iterdir())) == ([], [])


@pytest.mark.parametrize("what", ["link", "another", "of another user"])
def test_a_file_in_the_place_of_a_leftover_is_not_touched(
    own: Path, journal: Journal, tmp_path: Path, what: str
) -> None:
    killed()
    [place] = own.iterdir()
    place.rename(own / "away")
    treasure = tmp_path / "treasure"
    treasure.mkdir(mode=0o700)
    (treasure / "thesis").write_text("mine")
    if what == "link":
        place.symlink_to(treasure)
    else:
        treasure.rename(place)
        treasure = place
    if what == "of another user":
        if os.geteuid() != 0:
            pytest.skip("needs root")
        os.chown(place, 65534, 65534)
    [line] = [*leftovers.restore(journal).problems, *leftovers.restore(journal).done][:1] or [""]
    assert (treasure / "thesis").read_text() == "mine"
    assert "not the directory that was made" in line or what == "link"


@pytest.mark.parametrize("text", ["/etc", "/tmp/blklab-run-", "relative", "/x/../etc/passwd", "\0"])
def test_a_record_of_something_else_is_one_line(journal: Journal, text: str) -> None:
    with journal.locked("scratch-abc", "it"):
        journal.write("scratch-abc", scratch.KIND, {"directory": text, "inode": 1})
    [line] = leftovers.restore(journal).problems
    assert "not a record of scratch" in line


def test_no_room_is_one_line(tmp_path: Path, journal: Journal) -> None:
    with (
        pytest.raises(RunError, match="cannot hold temporary files: No such file"),
        scratch.directory("run", tmp_path / "none"),
    ):
        pass
    assert journal.keys() == []
