"""The places of the user's own files; the errors without a home directory."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from blklab.base import homes, journal
from blklab.disks import DISKS
from blklab.errors import InputError
from blklab.rigs.kernel import cache
from blklab.store import place

BLKLAB = str(Path(sys.executable).with_name("blklab"))
_VARIABLES = ("HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")
_OF_NOBODY = (
    *("setpriv", "--reuid=12345", "--regid=12345", "--clear-groups"),
    # The checkout may lie in root's home.
    *("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"),
)


@pytest.fixture
def homeless(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """No HOME, and a user id without a name."""

    def unknown(number: int) -> pwd.struct_passwd:
        raise KeyError(number)

    for name in (*_VARIABLES, "BLKLAB_CACHE", "BLKLAB_STORE", "BLKLAB_JOURNAL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    return monkeypatch


def test_without_a_home_the_files_that_ship_are_found(homeless: pytest.MonkeyPatch) -> None:
    assert DISKS.find("su800-128gb").name == "su800-128gb"


def test_without_a_home_each_place_says_how_to_name_another(homeless: pytest.MonkeyPatch) -> None:
    said = "no home directory: HOME is not set and user id 12345 has no name; set HOME or "
    with pytest.raises(InputError) as of_kernels:
        cache.root()
    with pytest.raises(InputError) as of_store:
        place.find()
    with pytest.raises(InputError) as of_journal:
        journal.default_directory()
    assert str(of_kernels.value) == f"{said}XDG_CACHE_HOME, or BLKLAB_CACHE"
    assert str(of_store.value) == f"{said}XDG_DATA_HOME"
    assert str(of_journal.value) == f"{said}XDG_STATE_HOME"


def test_a_tilde_without_a_home_and_an_unknown_user_are_told(
    homeless: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(InputError, match=r"^~/x\.toml: no home directory: .*'~'$"):
        DISKS.find("~/x.toml")
    with pytest.raises(InputError, match=r"^~no-such/x\.toml: no user 'no-such'; .* \./~no-such"):
        DISKS.find("~no-such/x.toml")
    with pytest.raises(InputError, match=r"^~/x\.db: no home directory"):
        place.find("~/x.db")


@pytest.mark.parametrize("relative", ["", "here", "./here", "~/here"])
def test_a_base_directory_that_is_not_absolute_is_ignored(
    relative: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in _VARIABLES[1:]:
        monkeypatch.setenv(name, relative)
    assert homes.data() == tmp_path / ".local/share"
    assert homes.state() == tmp_path / ".local/state"
    assert homes.cache() == tmp_path / ".cache"


def test_an_absolute_base_directory_is_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert homes.data() == tmp_path


@pytest.mark.parametrize("home", ["", "here"])
def test_a_home_that_is_no_path_is_not_taken(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", home)
    assert homes.expanded("~/x") == Path(pwd.getpwuid(os.getuid()).pw_dir) / "x"


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("disks", 0, ""),
        ("fio job.fio --disk su800-128gb", 0, "results will not be stored: no home directory"),
        (
            "compare --disk su800-128gb --workload job.fio --repeats 1",
            0,
            "results will not be stored",
        ),
        ("explain job.fio --disk su800-128gb", 0, ""),
        ("restore", 2, "no home directory"),
        ("results", 2, "no home directory"),
        ("report 3", 2, "no home directory"),
        ("kernel list", 2, "no home directory"),
        ("verify --quick", 2, "no home directory"),
        ("run ~/x.toml", 2, "no home directory"),
        ("compare --rig live --disk . --workload tpcc", 2, "no home directory"),
    ],
)
def test_a_user_without_home_and_name_gets_results_or_one_line(
    command: str, code: int, said: str
) -> None:
    if os.geteuid():
        pytest.skip("needs root, to run as a user without a name")
    # Not tmp_path: root's temporary directories are closed to others.
    with tempfile.TemporaryDirectory() as directory:
        job = Path(directory, "job.fio")
        job.write_text("[job]\nsize=64k\n")
        os.chown(directory, 12345, 12345)
        done = subprocess.run(
            [*_OF_NOBODY, BLKLAB, *command.split()],
            check=False,
            cwd=directory,
            env={"PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
    assert said in done.stderr
    if code:
        assert done.stderr.startswith("blklab: ")
        assert done.stderr.count("\n") == 1
