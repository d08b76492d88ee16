"""The user's own files in the kernel, such as a scheduler."""

from __future__ import annotations

import difflib
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import blklab
import pictures
from blklab.base.steps import Steps
from blklab.domain.result import Result
from blklab.errors import InputError, RunError
from blklab.rigs.kernel import cache, source, tools
from blklab.rigs.kernel.build import build
from blklab.rigs.kernel.errors import KernelError
from tests import fake_linux, real_kernel
from tests.test_cli import failing, run

pytestmark = pytest.mark.skipif(
    bool(tools.missing()), reason=f"not installed: {', '.join(tools.missing())}"
)
ROOT = Path(__file__).resolve().parents[1]
SSTF = ROOT / "examples/sstf-iosched.c"
JOB = """\
[a]
ioengine=libaio
direct=1
rw=randread
bs=4k
iodepth=32
size=900g
norandommap
runtime=5
time_based
"""


@pytest.fixture
def linux(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A tarball, and an empty cache."""
    monkeypatch.setenv("BLKLAB_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "linux-7.3.tar.xz"
    path.write_bytes(fake_linux.tarball())
    return str(path)


def written(directory: Path, name: str, text: str) -> Path:
    directory.mkdir(exist_ok=True)
    (directory / name).write_text(text)
    return directory / name


def built_tree() -> Path:
    [tree] = (cache.root() / "trees").glob("*/tree")
    return tree


def test_a_new_file_is_compiled_and_linked_in(linux: str, tmp_path: Path) -> None:
    plain = build(linux)
    mine = written(tmp_path, "mine-iosched.c", "int mine;\n")
    made = build(linux, added_files=[mine])
    assert (made.kernel.compiled, made.kernel.added) == (1, ("mine-iosched.c",))
    assert made.kernel.names == ("linux-7.3-mine-iosched",)
    makefile = (built_tree() / "block/Makefile").read_text()
    assert makefile.startswith(fake_linux.FILES["block/Makefile"])
    assert makefile.splitlines()[-1] == "obj-y += mine-iosched.o"
    assert not build(linux, added_files=[mine]).fresh
    mine.write_text("int mine = 2;\n")
    again = build(linux, added_files=[mine])
    assert again.fresh and again.kernel.compiled == 1
    # The next kernel without it does not contain it.
    without = build(linux, options=["X=y"])
    assert without.kernel.image.read_bytes() == plain.kernel.image.read_bytes()
    assert not (built_tree() / "block/mine-iosched.c").exists()
    assert (built_tree() / "block/Makefile").read_text() == fake_linux.FILES["block/Makefile"]


def test_a_file_of_the_kernels_own_name_replaces_it(linux: str, tmp_path: Path) -> None:
    build(linux)
    text = run("kernel", "source", "--source", linux, "block/kyber-iosched.c").stdout
    assert text == fake_linux.FILES["block/kyber-iosched.c"]
    mine = written(tmp_path, "kyber-iosched.c", text.replace("= 0", "= 9"))
    made = build(linux, added_files=[mine], name="nine")
    assert made.kernel.compiled == 1
    assert "kyber_delay = 9" in (built_tree() / "block/kyber-iosched.c").read_text()
    assert (built_tree() / "block/Makefile").read_text() == fake_linux.FILES["block/Makefile"]
    assert "with kyber-iosched.c in block/" in run("kernel", "list").stdout


def test_files_come_after_patches(linux: str, tmp_path: Path) -> None:
    patch = written(tmp_path, "make.patch", (
        "--- a/block/Makefile\n+++ b/block/Makefile\n@@ -1,2 +1,3 @@\n obj-y := elevator.o\n"
        "+# patched\n obj-$(CONFIG_MQ_IOSCHED_KYBER) += kyber-iosched.o\n"
    ))  # fmt: skip
    header = written(tmp_path, "mine.h", "#define MINE 3\n")
    mine = written(tmp_path, "mine.c", '#include "mine.h"\nint mine = MINE;\n')
    build(linux, [patch], added_files=[mine, header])
    lines = (built_tree() / "block/Makefile").read_text().splitlines()
    assert lines[1] == "# patched" and lines[-1] == "obj-y += mine.o"
    assert (built_tree() / "block/mine.h").is_file()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["build", "--add", "mine.rs"], "--add: 'mine.rs': expected a C file"),
        (["build", "--add", "absent.c"], "absent.c: No such file or directory"),
        (["build", "--add", str(SSTF), "--add", str(SSTF)], "there is another sstf-iosched.c"),
        (["source", "block/kyber.c"], "no file 'block/kyber.c'; did you mean 'block/kyber-io"),
        (["source", "../cache/kernels/names/x"], "no file '../cache/kernels/names/x'"),
    ],
)
def test_bad_files_are_one_line(
    linux: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    build(linux, name="x")
    code, text = failing(capfd, monkeypatch, "kernel", *arguments, "--source", linux)
    assert code == 2
    assert message in text and text.count("\n") == 1


@pytest.fixture(scope="session")
def sstf() -> str:
    """Key of the default kernel with the example in it; its objects are kept between runs."""
    real_kernel.image()
    return build(added_files=[SSTF]).kernel.key


def measured(spec: str) -> tuple[Result, float, int]:
    """The run, its I/Os a second and its longest read in ms. The disk orders nothing itself."""
    made = blklab.simulate(
        JOB, disk="wd10ezrx:ncq=false", scheduler=spec, rig="kernel", driver="native"
    )
    read = made.jobs[0].read
    return made, read.ios * 1e9 / read.runtime_ns, read.clat.max_ns // 10**6


def as_series(directory: Path) -> Path:
    """The example as others publish a scheduler: one patch with the file, an entry in Kconfig and a
    line in the Makefile."""
    changes: list[str] = []
    for name, anchor, added in (
        (
            "block/Kconfig.iosched",
            "endmenu\n",
            'config MQ_IOSCHED_SSTF\n\tbool "Nearest first"\n\n',
        ),
        ("block/Makefile", "bfq-y", "obj-$(CONFIG_MQ_IOSCHED_SSTF)\t+= sstf-iosched.o\n"),
    ):
        done = run("kernel", "source", name)
        assert done.exit_code == 0, done.output
        whole = done.stdout.replace(anchor, f"{added}{anchor}", 1)
        before, after = (text.splitlines(keepends=True) for text in (done.stdout, whole))
        changes += difflib.unified_diff(before, after, f"a/{name}", f"b/{name}")
    own = SSTF.read_text().splitlines(keepends=True)
    changes += difflib.unified_diff([], own, "/dev/null", "b/block/sstf-iosched.c")
    return written(directory, "sstf.patch", "".join(changes))


def test_a_published_series_with_its_own_option_makes_the_same_requests(
    sstf: str, tmp_path: Path
) -> None:
    series = as_series(tmp_path / "series")
    kernel = build(patch_files=[series], options=["MQ_IOSCHED_SSTF=y"]).kernel.key
    own, _, _ = measured(f"sstf@{sstf}")
    published, _, _ = measured(f"sstf@{kernel}")
    assert published.detail.sector.tolist() == own.detail.sector.tolist()
    assert (published.detail.issued_ns == own.detail.issued_ns).all()
    # Without its option it is not compiled, and a wrong one is told before that.
    without = build(patch_files=[series]).kernel.key
    with pytest.raises(RunError, match=r"'sstf' was not taken .*mq-deadline.* kyber bfq"):
        measured(f"sstf@{without}")
    with pytest.raises(KernelError, match=r"CONFIG_MQ_IOSCHED_STSF is n .* does not exist in this"):
        build(patch_files=[series], options=["MQ_IOSCHED_STSF=y"])


def test_a_new_scheduler_changes_the_measured_figures(sstf: str) -> None:
    """Nearest first is fast and starves requests; max_wait=0 is first come, first served."""

    def seek(made: Result) -> float:
        return float(np.abs(np.diff(made.detail.sector)).mean())

    fair, fair_ios, _ = measured(f"sstf:max_wait=0@{sstf}")
    near, near_ios, near_ms = measured(f"sstf:max_wait=600000@{sstf}")
    _, default_ios, default_ms = measured(f"sstf@{sstf}")
    assert seek(near) < 0.3 * seek(fair)
    assert near_ios > 1.5 * fair_ios
    # In between: a limit of 500 ms, and those that pass it together wait for each other.
    assert fair_ios < default_ios < near_ios
    assert 500 < default_ms < near_ms
    # Readers alone are served by kyber in the order in which they come.
    kyber, _, _ = measured(f"kyber@{sstf}")
    assert kyber.detail.sector.tolist() == fair.detail.sector.tolist()


@pytest.mark.parametrize("rw", ["write", "write:-8k"])
def test_its_requests_grow_at_both_ends_and_nothing_is_lost(sstf: str, rw: str) -> None:
    """With an offset of -8k after each block of 4k, the second workload goes backwards."""
    job = f"[a]\nrw={rw}\nioengine=libaio\ndirect=1\niodepth=32\nsize=64m\nnumber_ios=2000\n"
    disk = blklab.simulate(
        job, disk="wd10ezrx:ncq=false", scheduler=f"sstf@{sstf}", rig="kernel", driver="native"
    ).disk
    assert disk.write_ios + disk.write_merges == 2000
    assert disk.write_merges > 1800
    assert disk.write_sectors == 2000 * 8


def test_a_file_system_on_it_keeps_its_files(sstf: str) -> None:
    if shutil.which("mkfs.ext4", path="/usr/sbin:/sbin") is None:
        pytest.skip("mkfs.ext4 is not installed")
    script = (
        "for n in 1 2 3 4 5; do seq $n 40000 > $n & done; wait; sync;"
        "echo 3 > /proc/sys/vm/drop_caches; for n in 1 2 3 4 5; do seq $n 40000 | cmp - $n; done"
    )
    done = run(
        *("kernel", "run", "--kernel", sstf, "--scheduler", "sstf", "--disk", "wd10ezrx"),
        *("--mkfs", "ext4", "--", "sh", "-c", script),
    )
    assert (done.exit_code, done.stdout) == (0, ""), done.stderr


def test_the_tutorials_line_of_kyber_gives_reads_way(tmp_path: Path) -> None:
    real_kernel.image()
    kyber = tmp_path / "kyber-iosched.c"
    kyber.write_bytes(source.file(source.find(None, Steps()), "block/kyber-iosched.c"))
    page = (ROOT / "docs/own-scheduler.md").read_text(encoding="utf-8")
    [change] = re.findall(r"^\$ (sed .*)$", page, re.MULTILINE)
    subprocess.run(["bash", "-c", change], cwd=tmp_path, check=True)
    changed = build(added_files=[kyber]).kernel.key
    default = real_kernel.image().parent.name

    def both(kernel: str) -> tuple[float, int]:
        reader, writer = blklab.simulate(
            ROOT / "examples/reads-beside-writes.fio",
            disk="su800-128gb",
            scheduler=f"kyber@{kernel}",
            rig="kernel",
            driver="native",
        ).jobs
        return float(reader.read.clat_hist.percentile(50)), writer.write.ios

    (slow_ns, many), (quick_ns, few) = both(default), both(changed)
    assert quick_ns < 0.3 * slow_ns
    assert 0.3 * many < few < 0.5 * many


def test_the_tutorials_picture_is_its_commands_output(sstf: str) -> None:
    kept = (ROOT / "docs/images/own-scheduler.svg").read_text(encoding="utf-8")
    assert pictures.picture("own-scheduler") == kept, (
        "run: .venv/bin/python docs/pictures.py docs/images/own-scheduler.svg"
    )


def test_a_kernel_without_it_says_which_schedulers_it_has(sstf: str) -> None:
    default = real_kernel.image().parent.name
    with pytest.raises(RunError, match=r"'sstf' was not taken .*mq-deadline.* kyber bfq"):
        measured(f"sstf@{default}")
    with pytest.raises(RunError, match="iosched/max_wait=soon: refused"):
        measured(f"sstf:max_wait=soon@{sstf}")
    with pytest.raises(InputError, match="no kernel 'absent'"):
        measured("sstf@absent")
