"""Builds: recompiled files, waiting builds, and the state after a failure."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from blklab.base.steps import Steps
from blklab.errors import InputError, RunError
from blklab.rigs.kernel import cache, config, tools
from blklab.rigs.kernel.build import Built, build
from blklab.rigs.kernel.errors import KernelError
from tests import fake_linux
from tests.test_cli import failing, run

pytestmark = pytest.mark.skipif(
    bool(tools.missing()), reason=f"not installed: {', '.join(tools.missing())}"
)
ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def linux(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own directory, and an empty cache."""
    monkeypatch.setenv("BLKLAB_CACHE", str(tmp_path / "cache"))
    return fake_linux.write_tree(tmp_path / "linux")


@pytest.fixture
def ball(tmp_path: Path, linux: Path) -> str:
    path = tmp_path / "linux-7.3.tar.xz"
    path.write_bytes(fake_linux.tarball())
    return str(path)


def patch(directory: Path, delay: int, name: str = "wait.patch") -> Path:
    path = directory / name
    path.write_text(fake_linux.PATCH.format(delay=delay))
    return path


def image(built: Built) -> bytes:
    return built.kernel.image.read_bytes()


def test_the_same_kernel_is_built_once(ball: str) -> None:
    first, second = build(ball), build(ball)
    assert (first.fresh, second.fresh) == (True, False)
    assert first.kernel == second.kernel
    assert first.kernel.names == ("linux-7.3",)
    assert (first.kernel.version, first.kernel.compiled) == ("7.3.4", 2)


def test_the_effect_of_patches_that_do_not_fit_a_source_is_reported(ball: str) -> None:
    notes: list[str] = []

    class Told(Steps):
        def note(self, text: str) -> None:
            notes.append(text)

    assert build(ball, steps=Told()).kernel.patches == ()
    assert notes == [
        "clock.patch does not fit this source: a guest reads its clock in 256 ns steps",
        "seed.patch does not fit this source: a guest has other random numbers at each boot",
        "own-cpu.patch does not fit this source: a guest is slower, on one CPU",
        "disk.patch does not fit this source: a guest's disk can only be ublk, "
        "neither SATA, SAS nor NVMe",
        "ticks.patch does not fit this source: a guest has 100 ticks per second, not 1000",
        "cpus.patch does not fit this source: a guest's disk has one hardware queue, and the "
        "kernel queues for one CPU",
        "work.patch does not fit this source: a buffered call costs its CPU work before it begins, "
        "not while it copies",
        "cpu.patch does not fit this source: CPU work of programs takes no time in a guest",
        "spin.patch does not fit this source: a guest runs no MariaDB, which would wait for a tick "
        "for ever",
    ]


def test_an_older_source_gets_the_form_of_our_patch_that_fits_it(
    ball: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = tmp_path / "ours"
    ours.mkdir()
    monkeypatch.setattr("blklab.rigs.kernel.build._PATCHES", ours)
    monkeypatch.setattr(cache, "OWN_PATCHES", {"wait.patch": "it does not wait"})
    fitting = patch(ours, 1, "wait-6.12.patch").read_text()
    (ours / "wait.patch").write_text(fitting.replace("_delay = 0", "_delay = 9"))
    first = build(ball)
    assert first.kernel.patches == ("wait.patch",)
    assert first.kernel.compiled == 2
    # The first patch fits now, with the same result: nothing to build.
    patch(ours, 1, "wait.patch")
    assert not build(ball).fresh


def test_another_patch_compiles_only_the_files_that_it_touches(ball: str, tmp_path: Path) -> None:
    plain = build(ball)
    one, two = (build(ball, [patch(tmp_path, delay)]) for delay in (1, 2))
    assert [made.kernel.compiled for made in (plain, one, two)] == [2, 1, 1]
    assert len({image(made) for made in (plain, one, two)}) == 3
    assert two.kernel.names == ("linux-7.3-wait",)
    # The newer kernel has the name; the older one is found by its key.
    assert cache.find(one.kernel.key).names == ()
    # And back: the patch is removed from the tree again.
    again = build(ball, options=["X=y"])
    assert image(again) == image(plain)
    assert again.kernel.compiled == 1


def test_the_unpacked_source_is_never_written_to(ball: str, tmp_path: Path) -> None:
    build(ball)
    build(ball, [patch(tmp_path, 5)])
    [top] = (cache.root() / "sources").glob("*/tree")
    assert {
        str(path.relative_to(top)): path.read_text() for path in top.rglob("*") if path.is_file()
    } == {name: text for name, text in fake_linux.FILES.items() if name != "drivers/gpu/huge.c"}


def test_a_patch_may_make_and_remove_files(ball: str, tmp_path: Path) -> None:
    new = tmp_path / "new.patch"
    new.write_text(
        "--- /dev/null\n+++ b/block/sstf.c\n@@ -0,0 +1 @@\n+int sstf;\n"
        "--- a/block/elevator.c\n+++ /dev/null\n@@ -1 +0,0 @@\n-int elevator;\n"
    )
    build(ball, [new])
    [tree] = (cache.root() / "trees").glob("*/tree")
    assert (tree / "block/sstf.c").is_file() and not (tree / "block/elevator.c").exists()
    build(ball)
    assert not (tree / "block/sstf.c").exists() and (tree / "block/elevator.c").is_file()


def test_a_directory_is_built_again_when_a_file_in_it_changes(linux: Path) -> None:
    first = build(str(linux))
    assert not build(str(linux)).fresh
    (linux / "block/elevator.c").write_text("int elevator = 7;\n")
    (linux / "block/new.c").write_text("int new;\n")
    second = build(str(linux))
    assert (second.fresh, second.kernel.compiled) == (True, 2)
    (linux / "block/new.c").unlink()
    (linux / "block/elevator.c").write_text(fake_linux.FILES["block/elevator.c"])
    third = build(str(linux))
    assert image(third) == image(first) != image(second)
    assert {path.name for path in (linux / "block").iterdir()} == {
        *("Makefile", "kyber-iosched.c", "elevator.c")
    }


def test_ignored_files_of_a_checkout_are_not_built(linux: Path) -> None:
    (linux / ".gitignore").write_text("*.o\n.config\n")
    (linux / ".config").write_text("built in")
    (linux / "block/stale.o").write_text("")
    try:
        subprocess.run(["git", "init", "-q", str(linux)], check=True)
    except FileNotFoundError:
        pytest.skip("git is not installed")
    build(str(linux))
    [tree] = (cache.root() / "trees").glob("*/tree")
    assert not (tree / "block/stale.o").exists()
    assert not (tree / ".config").exists()
    assert (tree / "block/elevator.c").is_file()


def test_a_patch_that_does_not_apply_is_reported_in_patchs_words_and_changes_nothing(
    ball: str, tmp_path: Path
) -> None:
    good = build(ball)
    wrong = patch(tmp_path, 1, "wrong.patch")
    wrong.write_text(wrong.read_text().replace("-int kyber_delay = 0", "-int absent = 0"))
    with pytest.raises(KernelError, match=r"wrong\.patch does not apply") as told:
        build(ball, [wrong])
    assert any("FAILED" in line for line in told.value.detail)
    assert [kernel.key for kernel in cache.kernels()] == [good.kernel.key]
    assert build(ball, options=["X=y"]).kernel.compiled == 0


@pytest.mark.parametrize(
    ("name", "words"),
    [("../../etc/passwd", "outside of the kernel"), ("/etc/passwd", "outside of the kernel")],
)
def test_a_patch_cannot_leave_the_source(ball: str, tmp_path: Path, name: str, words: str) -> None:
    bad = tmp_path / "bad.patch"
    bad.write_text(f"--- a/{name}\n+++ b/{name}\n@@ -0,0 +1 @@\n+x\n")
    with pytest.raises(KernelError, match=words):
        build(ball, [bad])


def test_the_compilers_error_is_shown_with_the_path_of_the_log(
    linux: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (linux / "block/elevator.c").write_text("int elevator = undeclared;\n")
    code, text = failing(capfd, monkeypatch, "kernel", "build", "--source", str(linux))
    assert code == 1
    assert "error: 'undeclared' undeclared" in text
    [log] = (cache.root() / "trees").glob("*/make.log")
    assert text.splitlines()[-1] == f"blklab: make failed; all of it: {log}"
    assert "undeclared" in log.read_text()
    assert cache.kernels() == [] and not list((cache.root() / "built").glob("*"))
    (linux / "block/elevator.c").write_text("int elevator = 1;\n")
    assert build(str(linux)).kernel.compiled == 1


def test_an_option_that_this_kernel_lacks_is_refused_by_name(linux: Path) -> None:
    makefile = linux / "Makefile"
    makefile.write_text(makefile.read_text().replace("cp $(K", "grep -v UBLK= $(K").replace(
        "G) $(O)/.config", "G) > $(O)/.config"))  # fmt: skip
    with pytest.raises(KernelError, match="CONFIG_BLK_DEV_UBLK is n"):
        build(str(linux))
    with pytest.raises(InputError, match="--config: 'no such': expected NAME=y"):
        build(str(linux), options=["no such"])


def test_every_option_of_ours_has_a_group_and_a_value() -> None:
    made = config.fragment(["CONFIG_BLK_WBT=n", "IOSCHED_MINE=y"])
    assert made.own == {"BLK_WBT": "n", "IOSCHED_MINE": "y"}
    assert "BLK_WBT" not in made.needed
    for name in ("IOSCHED_BFQ", "BLK_DEV_UBLK", "EXT4_FS", "UML_TIME_TRAVEL_SUPPORT"):
        assert made.needed[name] == "y"
    assert made.needed["MODULES"] == "n"
    assert {"MEMCG", "TASKSTATS"} <= made.wanted.keys()
    assert config.parse(made.text()) == {**made.needed, **made.wanted, **made.older, **made.own}


def test_missing_tools_are_reported_with_their_packages(
    linux: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(RunError, match=r"needs gcc, .*flex.*: apt-get install .*xz-utils"):
        build(str(linux))


def test_make_test_installs_the_tools_of_a_build() -> None:
    [line] = [
        line
        for line in (ROOT / "Makefile").read_text(encoding="utf-8").splitlines()
        if line.startswith("TEST_PACKAGES :=")
    ]
    named = {word.partition(":")[0]: word.rpartition(":")[2] for word in line.split()[2:]}
    # gcc brings binutils; the others are on every Debian.
    there = {"binutils", "perl-base", "tar", "util-linux"}
    wanted = {command: package for command, package in tools.PACKAGES.items()
              if package not in there}  # fmt: skip
    assert wanted.items() <= named.items()


def _start(source: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "blklab", "kernel", "build", "--json", "--source", source],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT / "python")},
    )


def _wait_for(pattern: str) -> Path:
    for _ in range(600):
        if found := list(cache.root().glob(pattern)):
            return found[0]
        time.sleep(0.05)
    raise AssertionError(f"{pattern} did not come")


def test_two_builds_of_the_same_kernel_at_once_share_one(linux: Path) -> None:
    (linux / "hold").write_text("")
    makefile = linux / "Makefile"
    makefile.write_text(makefile.read_text().replace("exec sleep 600", "while [ ! -e $(O)/go ]; do "
                                                     "sleep 0.05; done"))  # fmt: skip
    one = _start(str(linux))
    begun = _wait_for("trees/*/objects/begun")
    two = _start(str(linux))
    assert two.stderr is not None
    for line in two.stderr:
        if "waiting for another build" in line:
            break
    (begun.parent / "go").write_text("")
    rows = [json.loads(process.communicate(timeout=60)[0]) for process in (one, two)]
    assert [row["fresh"] for row in rows] == [True, True]
    assert rows[0]["key"] == rows[1]["key"]
    log = (begun.parent.parent / "make.log").read_text()
    assert log.count("LD      linux") == 1


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_build_that_is_ended_leaves_no_process_and_nothing_half_made(
    linux: Path, how: signal.Signals
) -> None:
    (linux / "hold").write_text("")
    process = _start(str(linux))
    begun = _wait_for("trees/*/objects/begun")
    process.send_signal(how)
    _, errors = process.communicate(timeout=30)
    assert "Traceback" not in errors
    # make's children hold the lock as long as they live.
    (linux / "hold").unlink()
    # As a killed compiler may leave it: newer than all others.
    half = begun.parent / "block/elevator.o"
    half.write_bytes(b"half")
    assert cache.kernels() == []
    made = build(str(linux))
    assert made.fresh
    assert half.read_bytes() != b"half"


def test_list_and_remove(ball: str, tmp_path: Path) -> None:
    assert "no kernels yet" in run("kernel", "list").stdout
    build(ball)
    build(ball, [patch(tmp_path, 3)], "mine")
    build(ball, name="plain")
    listed = run("kernel", "list").stdout
    assert "mine\n" in listed and "linux-7.3, plain\n" in listed
    assert "patched with wait.patch" in listed
    rows = json.loads(run("kernel", "list", "--json").stdout)
    assert [row["patches"] for row in rows["kernels"] if "mine" in row["names"]] == [["wait.patch"]]
    assert rows["used_bytes"]["trees"] > 0
    assert "only the name" in run("kernel", "remove", "plain").stdout
    assert "removed" in run("kernel", "remove", "linux-7.3").stdout
    assert [kernel.names for kernel in cache.kernels()] == [("mine",)]
    # As a killed unpacking leaves it.
    (cache.root() / "sources/.partial-0123").mkdir()
    assert "MB removed" in run("kernel", "remove", "--sources").stdout
    assert {path.suffix for path in (cache.root() / "sources").iterdir()} <= {".lock"}
    assert not list((cache.root() / "trees").glob("[!.]*"))
    # Its image does not depend on the sources.
    assert cache.find("mine").image.is_file()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["remove", "mien"], "no kernel 'mien'; did you mean 'mine'?"),
        (["remove"], "nothing to remove"),
        (["shell", "--time-travel", "of", "mine"], "no 'of'; did you mean 'off'?"),
        (["build", "--name", "a/b", "--source", "x"], "--name: 'a/b': expected letters"),
        (["build", "--patch", "absent"], "absent: No such file or directory"),
        (["build", "--patch", __file__], "not a patch"),
    ],
)
def test_bad_input_is_one_line(
    ball: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    build(ball, name="mine")
    code, text = failing(capfd, monkeypatch, "kernel", *arguments)
    assert code == 2
    assert message in text and text.count("\n") == 1
