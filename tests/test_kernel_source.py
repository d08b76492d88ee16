"""The origin of a kernel's source, and incomplete downloads."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path

import pytest

from blklab.base.steps import Steps
from blklab.errors import InputError
from blklab.rigs.kernel import cache, mirror, source, tools
from blklab.rigs.kernel.errors import KernelError
from tests import fake_linux

needs_tools = pytest.mark.skipif(
    bool(tools.missing()), reason=f"not installed: {', '.join(tools.missing())}"
)
BACKPORTS, SID = mirror.SUITES[:2]


@pytest.fixture
def debian(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> fake_linux.Mirror:
    monkeypatch.setenv("BLKLAB_CACHE", str(tmp_path / "cache"))
    made = fake_linux.Mirror(tmp_path / "mirror")
    monkeypatch.setenv("BLKLAB_MIRROR", made.address)
    monkeypatch.setenv("BLKLAB_KEYRING", str(tmp_path / "no keyring"))
    made.versions = {
        BACKPORTS: ["7.2.9-1~bpo13+1", "7.3.4-1~bpo13+1", "7.3.10-1~bpo13+1", "7.3.10~rc2-1"],
        SID: ["7.4.1-1"],
    }
    made.write()
    return made


@pytest.mark.parametrize(
    ("wanted", "taken"),
    [
        ("7", "7.3.10-1~bpo13+1"),
        ("7.3", "7.3.10-1~bpo13+1"),
        ("7.3.4", "7.3.4-1~bpo13+1"),
        ("7.2", "7.2.9-1~bpo13+1"),
        ("7.4", "7.4.1-1"),
        ("7.3.10~rc2-1", "7.3.10~rc2-1"),
    ],
)
def test_a_version_means_the_newest_that_begins_with_it_in_the_first_suite_that_has_one(
    debian: fake_linux.Mirror, wanted: str, taken: str
) -> None:
    assert mirror.newest(wanted).version == taken


def test_a_release_is_newer_than_its_own_backport(debian: fake_linux.Mirror) -> None:
    debian.versions[BACKPORTS] = ["7.3.10-1", "7.3.10-1~bpo13+1"]
    debian.write()
    assert mirror.newest("7.3").version == "7.3.10-1"


def test_an_index_with_an_odd_version_is_refused_in_one_line(debian: fake_linux.Mirror) -> None:
    debian.versions[BACKPORTS] = ["7.3 10"]
    debian.write()
    with pytest.raises(KernelError, match=r"by-hash.*: linux-source: Invalid.*7\.3 10") as refused:
        mirror.newest("7.3")
    assert "\n" not in str(refused.value)


def test_a_version_that_no_suite_has_is_refused_with_those_that_there_are(
    debian: fake_linux.Mirror,
) -> None:
    with pytest.raises(InputError, match=r"Linux 7\.30 .*there is: 7\.4\.1, 7\.3\.10, .*7\.2\.9"):
        mirror.newest("7.30")


@needs_tools
def test_a_version_is_fetched_once_and_then_needs_no_network(
    debian: fake_linux.Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = source.find("7.3", Steps())
    assert first.name == "7.3.10"
    assert (first.top / "block/elevator.c").read_text() == fake_linux.FILES["block/elevator.c"]
    monkeypatch.setenv("BLKLAB_MIRROR", "http://127.0.0.1:1")
    assert source.find("7.3", Steps()) == first
    with pytest.raises(KernelError, match=r"127\.0\.0\.1:1/.*refused"):
        source.find("7.3", Steps(), refresh=True)


@needs_tools
def test_unused_folders_of_a_source_are_not_unpacked_except_for_their_kconfig(
    debian: fake_linux.Mirror,
) -> None:
    top = source.find("7.3", Steps()).top
    assert not (top / "drivers/gpu/huge.c").exists()
    assert (top / "drivers/gpu/Kconfig").is_file()


@needs_tools
@pytest.mark.parametrize("damage", ["other bytes", "too short", "too long", "missing"])
def test_a_damaged_download_is_refused_and_not_kept(debian: fake_linux.Mirror, damage: str) -> None:
    file = debian.path("7.3.10-1~bpo13+1")
    whole = file.read_bytes()
    changed = {
        "other bytes": whole[:-1] + bytes([whole[-1] ^ 1]),
        "too short": whole[:-1],
        "too long": whole + b"x",
    }
    file.unlink() if damage == "missing" else file.write_bytes(changed[damage])
    with pytest.raises(KernelError, match=r"SHA-256 is|bytes came, expected|No such file"):
        source.find("7.3", Steps())
    left = [path for path in cache.root().rglob("*") if path.is_file() and ".lock" not in path.name]
    assert left == []


def test_an_index_with_another_hash_is_refused(debian: fake_linux.Mirror) -> None:
    [index] = (debian.top / f"dists/{BACKPORTS}").rglob("by-hash/SHA256/*")
    index.write_bytes(index.read_bytes() + b" ")
    with pytest.raises(KernelError, match="SHA-256"):
        mirror.newest("7.3")


@pytest.mark.skipif(shutil.which("gpgv") is None, reason="gpgv is not installed")
def test_an_unsigned_release_is_refused_where_a_keyring_is(
    debian: fake_linux.Mirror, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert not mirror.newest("7.3").signed
    (tmp_path / "ring.gpg").write_bytes(b"")
    monkeypatch.setenv("BLKLAB_KEYRING", str(tmp_path / "ring.gpg"))
    with pytest.raises(KernelError, match="signature is not good"):
        mirror.newest("7.3")


@needs_tools
@pytest.mark.parametrize("packing", ["xz", "gz"])
def test_a_tarball_of_ones_own_is_unpacked_once(
    debian: fake_linux.Mirror, tmp_path: Path, packing: str
) -> None:
    ball = tmp_path / f"linux-7.3-mine.tar.{packing}"
    ball.write_bytes(fake_linux.tarball(packing))
    found = source.find(str(ball), Steps())
    assert found.name == "linux-7.3-mine"
    assert (found.top / "Kconfig").is_file()
    before = found.top.stat().st_ctime_ns
    assert source.find(str(ball), Steps()).top.stat().st_ctime_ns == before


@needs_tools
def test_a_tarball_that_is_none_or_holds_no_linux_is_refused_and_leaves_nothing(
    debian: fake_linux.Mirror, tmp_path: Path
) -> None:
    (tmp_path / "cut.tar.xz").write_bytes(fake_linux.tarball()[:200])
    with tarfile.open(tmp_path / "other.tar.gz", "w:gz") as tar:
        tar.add(__file__, "top/readme")
    for name, words in (("cut.tar.xz", "could not be unpacked"), ("other.tar.gz", "no Kconfig")):
        with pytest.raises(KernelError, match=words):
            source.find(str(tmp_path / name), Steps())
    assert not list((cache.root() / "sources").glob("[!.]*"))


def test_a_source_that_is_nothing_is_refused(debian: fake_linux.Mirror, tmp_path: Path) -> None:
    said = "no directory, no tarball, no DIRECTORY@COMMIT, and no version"
    with pytest.raises(InputError, match=said):
        source.find("nowhere/linux", Steps())
    with pytest.raises(InputError, match="not a Linux source"):
        source.find(str(tmp_path), Steps())
    (tmp_path / "a.zip").write_text("")
    with pytest.raises(InputError, match="not a tarball"):
        source.find(str(tmp_path / "a.zip"), Steps())


def test_a_directory_that_was_built_in_is_refused(tmp_path: Path) -> None:
    top = fake_linux.write_tree(tmp_path / "linux")
    (top / ".config").write_text("")
    with pytest.raises(InputError, match="make mrproper"):
        source.find(str(top), Steps())
