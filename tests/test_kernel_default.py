"""The default kernel of a run is the last one without changes, and runs name it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from blklab.errors import InputError
from blklab.rigs.kernel import cache
from tests import real_kernel
from tests.test_cli import failing, run

PLAIN = cache.Kernel(
    key="aaaaaaaaaaaa",
    version="7.3.4",
    source="a mirror",
    base="debian 7.3.4",
    patches=tuple(cache.OWN_PATCHES),
    config=(),
    built_at="2026-01-01",
    build_s=1.0,
    compiled=1,
)
CHANGED = (
    replace(PLAIN, key="b", built_at="2026-01-02", patches=(*PLAIN.patches, "mine.patch")),
    replace(PLAIN, key="c", built_at="2026-01-03", added=("sstf-iosched.c",)),
    replace(PLAIN, key="d", built_at="2026-01-04", base="directory /linux", source="/linux"),
)


def keep(image: Path, *kernels: cache.Kernel) -> None:
    for kernel in kernels:
        cache.keep(kernel, {"linux": image, "config": with_options()})


def with_options(*options: str) -> Path:
    """A configuration with these options, beside the test's own cache."""
    file = cache.root().with_name("config")
    file.parent.mkdir(exist_ok=True)
    file.write_text("".join(f"CONFIG_{option}=y\n" for option in ("EXT4_FS", *options)))
    return file


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file for an image; the cache is empty."""
    monkeypatch.setenv("BLKLAB_CACHE", str(tmp_path / "cache"))
    image = tmp_path / "linux"
    image.write_bytes(b"")
    return image


def test_the_last_kernel_without_changes_is_taken_and_others_by_name(empty: Path) -> None:
    keep(empty, replace(PLAIN, key="older", built_at="2025-01-01"), PLAIN, *CHANGED)
    assert cache.chosen(None).key == PLAIN.key
    assert cache.chosen("c").key == "c"
    # With an option a guest has less memory for pages: only for what needs it.
    xfs = replace(PLAIN, key="e", config=("XFS_FS=y",), built_at="2026-01-05")
    cache.keep(xfs, {"linux": empty, "config": with_options("XFS_FS")})
    assert cache.chosen(None).key == PLAIN.key
    assert cache.chosen(None, ["XFS_FS"]).key == "e"
    assert cache.chosen(None, ["XFS_FS", "BTRFS_FS"]).key == PLAIN.key
    assert cache.chosen("c", ["XFS_FS"]).key == "c"


def test_an_older_version_that_was_built_later_must_be_named(empty: Path) -> None:
    keep(empty, PLAIN, replace(PLAIN, key="old", version="6.12.117", built_at="2027-01-01"))
    assert cache.chosen(None).key == PLAIN.key


def test_a_kernel_states_its_differences_from_the_published_one(empty: Path) -> None:
    keep(empty, PLAIN, *CHANGED)
    cache.give_name("mine", "b")
    cache.give_name("7.3.4", "c")
    assert [cache.find(key).text for key in (PLAIN.key, "mine", "c", "d")] == [
        "Linux 7.3.4 (aaaaaaaaaaaa, without changes)",
        "Linux 7.3.4 (mine, patched with mine.patch)",
        "Linux 7.3.4 (with sstf-iosched.c)",
        "Linux 7.3.4 (d, /linux)",
    ]
    # From a source that the patch does not fit, or built before the patch existed.
    older = replace(PLAIN, key="e", patches=("clock.patch", "own-cpu.patch"))
    lacking = (
        "lacks seed.patch, lacks disk.patch, lacks ticks.patch, lacks cpus.patch, "
        "lacks work.patch, lacks cpu.patch, lacks spin.patch"
    )
    assert older.text == f"Linux 7.3.4 (e, without changes, {lacking})"
    both = replace(CHANGED[0], added=("a.c",), config=("XFS_FS=y",))
    assert both.text == "Linux 7.3.4 (b, patched with mine.patch, with a.c, XFS_FS=y)"


@pytest.mark.parametrize(
    "command",
    [
        ("fio", "randread", "--disk", "wd10ezrx", "--rig", "kernel"),
        ("compare", "--rig", "kernel"),
        ("kernel", "run", "--disk", "wd10ezrx", "--", "ls"),
        ("kernel", "shell"),
        ("verify", "--quick"),
    ],
)
def test_a_kernel_with_changes_is_never_taken_unasked(
    empty: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
) -> None:
    keep(empty, *CHANGED)
    cache.give_name("waits", "b")
    assert failing(capfd, monkeypatch, *command) == (
        2,
        "blklab: no kernel without changes in the cache; name one (d, c, waits), or build one: "
        "blklab kernel build\n",
    )
    with pytest.raises(InputError, match="no kernel 'wait'; did you mean 'waits'"):
        cache.chosen("wait")


@pytest.fixture
def two(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel without changes, and a later one with the name `waits`."""
    monkeypatch.delenv("BLKLAB_CACHE")
    image = real_kernel.image()
    monkeypatch.setenv("BLKLAB_CACHE", str(empty.parent / "cache"))
    keep(image, PLAIN, CHANGED[0])
    cache.give_name("plain", PLAIN.key)
    cache.give_name("waits", "b")


JOB = "[a]\nrw=randread\nbs=4k\ndirect=1\nsize=1g\nnumber_ios=20\n"


@pytest.mark.parametrize(
    ("options", "kernel"),
    [
        ((), "Linux 7.3.4 (plain, without changes)"),
        (("--kernel", "waits"), "Linux 7.3.4 (waits, patched with mine.patch)"),
    ],
)
def test_a_run_says_which_kernel_it_was_on(
    two: None, tmp_path: Path, options: tuple[str, ...], kernel: str
) -> None:
    job = tmp_path / "j.fio"
    job.write_text(JOB)
    rig = ("--rig", "kernel", "--driver", "native", *options, "--disk", "wd10ezrx")
    done = run("fio", str(job), *rig)
    assert done.exit_code == 0, done.stderr
    assert done.stderr == (
        f"blklab: {kernel}, driver native, disk ublk, without a budget, clock inf-cpu: "
        "virtual; host: CPUs as modelled, 100 ticks per second, files on the bare disk "
        "(--host hz=100,budget=0,large_folios=0,clock_stands=1,kernel_cpus=1)"
        "; real programs: 1 CPU, work as long as here\n"
        "blklab: wd10ezrx: not validated: 0 of 5 independent figures\n"
    )
    assert kernel not in done.stdout
    out = ("--repeats", "1", "--out", str(tmp_path / "out"))
    compared = run("compare", *rig, "--workload", str(job), "--scheduler", "none", *out)
    assert compared.exit_code == 0, compared.stderr
    assert f"Rig: {kernel}, driver native" in " ".join(compared.stdout.split())


def test_without_a_rig_there_is_nothing_to_say(tmp_path: Path) -> None:
    job = tmp_path / "j.fio"
    job.write_text(JOB)
    assert run("fio", str(job), "--disk", "optane-900p").stderr == ""


@pytest.mark.parametrize(
    ("record", "why"),
    [
        ("{}", "missing required field `version`"),
        ("[]", "Expected `object`, got `array`"),
        ("", "Expecting value"),
        ('{"version": 7}', "Expected `str`, got `int`"),
        ("[" * 100_000, "recursion"),
        ("\xff", "not a text file in UTF-8"),
    ],
)
def test_a_damaged_record_is_one_line_and_hides_no_other_kernel(
    record: str, why: str, empty: Path
) -> None:
    keep(empty, PLAIN, *CHANGED)
    cache.give_name("7.3.4", "b")
    (cache.root() / "built/b/kernel.json").write_bytes(record.encode("latin-1"))
    assert [kernel.key for kernel in cache.kernels()] == ["d", "c", PLAIN.key]
    [line] = cache.damaged()
    assert re.fullmatch(f"[^\n]*built/b/kernel.json: [^\n]*{why}[^\n]*; [^\n]*remove [^\n]*", line)
    with pytest.raises(InputError, match=re.escape(f"kernel '7.3.4': {line}")):
        cache.find("7.3.4")
    # It is built again.
    assert cache.by_key("b") is None


def test_a_kernel_without_its_program_is_reported(empty: Path) -> None:
    keep(empty, PLAIN, CHANGED[0])
    (cache.root() / "built/b/linux").unlink()
    assert [kernel.key for kernel in cache.kernels()] == [PLAIN.key]
    assert "built/b/linux: missing" in cache.damaged()[0]


def test_a_name_of_a_removed_kernel_is_not_suggested(empty: Path) -> None:
    keep(empty, PLAIN)
    cache.give_name("7.3.4", "gone")
    with pytest.raises(InputError, match=r"^kernel '7\.3\.4': .*built/gone/kernel\.json: No such"):
        cache.find("7.3.4")
