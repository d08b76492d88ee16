"""The guest's view of this machine."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from blklab.errors import InputError
from blklab.rigs.kernel import view
from tests.hostile_kernel import PYTHON

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory, as the current directory."""
    made = tmp_path / "homes/me"
    made.mkdir(parents=True)
    made.chmod(0o755)
    monkeypatch.setenv("HOME", str(made))
    monkeypatch.chdir(made)
    return made


@pytest.fixture
def project(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory in it, as the current directory."""
    made = home / "project"
    made.mkdir()
    made.chmod(0o755)
    monkeypatch.chdir(made)
    return made


def test_the_current_directory_is_shared(project: Path) -> None:
    assert view.shared(["true"]) == view.Shared((project,), None)


@pytest.mark.parametrize("place", [".", "..", "../..", "/", "/tmp", "/var", "/home", "/run"])
def test_home_directories_and_shared_directories_are_not_shared_as_a_whole(
    home: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.chdir(place)
    found = view.shared(["true"])
    assert found.paths == ()
    assert found.note is not None
    assert found.note.endswith("what the command names in it; to share a directory: --share DIR")


@pytest.mark.parametrize("place", ["/proc", "/sys/block", "/dev", "/usr/bin", "/etc"])
def test_system_directories_are_not_shared_twice(
    home: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.chdir(place)
    assert view.shared(["true"]).paths == ()


def test_files_named_by_the_command_are_shared(home: Path) -> None:
    for name in ("program", "input", "unnamed"):
        (home / name).write_text("")
    (home / "data").mkdir()
    (home / "link").symlink_to(home / "input")
    named = ["./program", "input", "data", "link", "away", "", "-v", "x" * 5000, "/usr/bin/env"]
    found = view.shared([*named, str(home / "program"), ".", "/"])
    assert found.paths == tuple(home / name for name in ("program", "input", "data", "link"))


def test_private_files_are_not_shared_even_if_named(home: Path) -> None:
    (home / ".ssh").mkdir()
    for name in (".ssh/id", ".netrc"):
        (home / name).write_text("key")
    assert view.shared([".ssh", ".ssh/id", ".netrc", f"{home}/.ssh/../.ssh/id"]).paths == ()


def test_a_link_leads_to_nothing_private(home: Path, tmp_path: Path) -> None:
    (home / ".ssh").mkdir()
    (home / ".ssh/id").write_text("key")
    for name, target in (("key", ".ssh/id"), ("keys", ".ssh"), ("all", "/"), ("me", ".")):
        (home / name).symlink_to(home / target)
        with pytest.raises(InputError):
            view.shared([], [home / name])
    assert view.shared(["key", "keys", "all", "me"]).paths == ()


def test_the_target_of_a_link_in_a_shared_directory_is_shared_at_its_own_path(
    project: Path, tmp_path: Path
) -> None:
    there = tmp_path / "there"
    there.mkdir()
    (project / "link").symlink_to(there)
    assert view.shared(["link"]).paths == (project, there)


def test_private_files_in_a_shared_directory_are_masked(project: Path) -> None:
    (project / ".ssh").mkdir()
    (project / ".env").write_text("PASSWORD=x")
    (project / ".aws").symlink_to("/elsewhere")
    found = set(view.masked((project,)))
    assert {project / ".ssh", project / ".env"} <= found
    assert project / ".aws" not in found


def test_a_path_given_several_times_is_shared_once(project: Path, home: Path) -> None:
    (home / "more/inner").mkdir(parents=True)
    found = view.shared(["true"], [home / "more", Path("../more/inner"), home / "more"])
    assert found.paths == (home / "more", project)


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ("/", "/ (files of all users) is never shared as a whole"),
        ("~", "~ (a home directory) is never shared as a whole"),
        ("/tmp", "/tmp (a guest has its own) is never shared as a whole"),
        ("/proc/self", "/proc/self (the machine itself) is never shared as a whole"),
        ("/dev/null", "/dev/null (the machine itself) is never shared as a whole"),
        ("~/.ssh", "~/.ssh is private; a guest could pass on what it reads"),
        ("~/away", "~/away does not exist"),
    ],
)
def test_paths_that_are_never_shared_are_refused_with_the_reason(
    home: Path, asked: str, why: str
) -> None:
    (home / ".ssh").mkdir()
    with pytest.raises(InputError) as told:
        view.shared(["true"], [Path(asked)])
    assert str(told.value).startswith(f"--share: {why}")


def test_paths_hidden_by_the_guests_own_directories_are_mounted_again(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    shown = view.View(shared=(tmp_path, file, Path("/usr"))).hidden_by_own()
    assert shown == ([tmp_path] if tmp_path.is_relative_to("/tmp") else [])


@pytest.fixture
def closed() -> Iterator[Path]:
    """A directory only for root, as the current directory."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    here = Path.cwd()
    place = Path("/opt/../srv") / f"blklab-test-{os.getpid()}"
    place.mkdir(mode=0o700)
    os.chdir(place)
    yield place.resolve()
    os.chdir(here)
    place.rmdir()


def test_root_gets_an_error_if_its_guest_cannot_read_a_file(closed: Path) -> None:
    note = view.shared(["true"]).note
    assert note == f"{closed} is readable only for root: a guest runs as nobody, and cannot read it"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_system_files_that_only_the_users_group_may_read_are_hidden(project: Path) -> None:
    user, group = 1000, 50_000
    files = {
        Path(f"/etc/blklab-test-{os.getpid()}-{mode:o}"): mode for mode in (0o644, 0o640, 0o600)
    }
    for path, mode in files.items():
        path.touch(mode)
        path.chmod(mode)
        os.chown(path, 0, group)
    words = ["setpriv", f"--reuid={user}", f"--regid={user}", f"--groups={group}", PYTHON, "-c",
             "from blklab.rigs.kernel import view; print(*view.masked(()))"]  # fmt: skip
    try:
        done = subprocess.run(
            words, env={"PYTHONPATH": str(ROOT / "python")}, capture_output=True, text=True,
            check=False, cwd="/",
        )  # fmt: skip
    finally:
        for path in files:
            path.unlink()
    if "Permission denied" in done.stderr or "No module" in done.stderr:
        pytest.skip(f"others may not read this checkout: {done.stderr.splitlines()[-1]}")
    found = [path for path in files if str(path) in done.stdout.split()]
    assert [files[path] for path in found] == [0o640], done.stderr
