"""A pipe, a device, a directory or an endless file instead of a file, and unwritable places: one
line at once, without a wait, before any run."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from blklab.base.files import check_directory, check_files, content
from blklab.errors import InputError
from blklab.host import reading

BLKLAB = str(Path(sys.executable).with_name("blklab"))


def run(
    directory: Path, command: str, blklab: Sequence[str] = (BLKLAB,)
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", f"exec {shlex.join(blklab)} {command}"],
        check=False,
        cwd=directory,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=os.environ | {"BLKLAB_CACHE": str(directory / "cache")},
        timeout=60,
    )


_READERS = (
    "fio ./X.fio --disk=su800-128gb",
    "fio including.fio --disk=su800-128gb",
    "compare --workload=./X.fio",
    "explain ./X.fio --disk=su800-128gb",
    "fio randread --disk=./X.toml",
    "disks ./X.toml",
    "workloads ./X.fio",
    "run ./X.toml",
    "studies ./X.toml",
    "results import X.fio",
    "report X.fio",
    "report results-dir",
    "report study-dir",
    "kernel build --patch X.fio",
    "kernel build --add X.c",
    "kernel build --source X.tar.gz",
)


@pytest.mark.parametrize("command", _READERS)
def test_a_pipe_in_place_of_a_file_is_reported_at_once(
    command: str, tmp_path: Path, forking: list[str]
) -> None:
    for folder in ("results-dir", "study-dir"):
        (tmp_path / folder).mkdir()
    for name in ("X.fio", "X.toml", "X.c", "X.tar.gz", "results-dir/results.json",
                 "study-dir/study.json"):  # fmt: skip
        os.mkfifo(tmp_path / name)
    (tmp_path / "including.fio").write_text("[j]\nsize=64k\ninclude X.fio\n")
    done = run(tmp_path, command, forking)
    assert done.returncode == 2
    line = "blklab: [^\n]*(regular file|no study|results.json: No such|no directory, no)[^\n]*\n"
    assert re.fullmatch(line, done.stderr), done.stderr


@pytest.mark.parametrize(
    ("what", "line"),
    [
        ("/dev/null", "/dev/null: is a device; expected a regular file that is a patch"),
        ("/dev/zero", "/dev/zero: is a device; expected a regular file that is a patch"),
        ("/proc", "/proc: is a directory; expected a regular file that is a patch"),
        ("/proc/kallsyms", "/proc/kallsyms: more than 100 bytes are not a patch"),
        ("/none", "/none: No such file or directory"),
        ("/none\0", "/none\0: embedded null byte"),
    ],
)
def test_a_path_that_is_no_file_is_reported(what: str, line: str) -> None:
    with pytest.raises(InputError) as found:
        content(Path(what), 100, "a patch")
    assert str(found.value) == line


def test_a_pipe_that_the_shell_has_made_is_read(tmp_path: Path) -> None:
    done = run(tmp_path, r"fio <(printf '[j]\nsize=64k\n') --disk=su800-128gb")
    assert done.returncode == 0, done.stderr
    done = run(tmp_path, r"fio /dev/stdin --disk=su800-128gb <<<$'[j]\nsize=64k\n'")
    assert done.returncode == 0, done.stderr


def test_a_pipe_in_sysfs_s_place_is_empty(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "attribute")
    assert reading.content(tmp_path / "attribute") == ""


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("compare --out=dangling", "dangling is a link to nowhere/at/all, which does not exist"),
        ("compare --out=dangling/below", "is a link to"),
        ("compare --out=taken", "report.html: is a directory"),
        ("compare --out=/proc/self", "no file can be made|no permission"),
        ("run bfq-2008 --out=dangling", "is a link to"),
        ("run bfq-2008 --out=taken", "report.html: is a directory"),
        ("explain randread --disk=su800-128gb --out=taken", "is a directory"),
        ("explain randread --disk=su800-128gb --perfetto=dangling/x", "is a link to"),
        ("fio randread --disk=su800-128gb --output=taken", "is a directory"),
        ("fio randread --disk=su800-128gb --output=dangling/x", "is a link to"),
        ("fio randread --disk=su800-128gb --output=/proc/self/x", "no file can be made|no perm"),
        ("verify --quick --out=taken", "is a directory"),
    ],
)
def test_an_unwritable_path_is_reported_before_the_first_run(
    command: str, line: str, tmp_path: Path, forking: list[str]
) -> None:
    (tmp_path / "dangling").symlink_to("nowhere/at/all")
    (tmp_path / "taken/report.html").mkdir(parents=True)
    done = run(tmp_path, command, forking)
    assert done.returncode == 2
    assert re.fullmatch(f"blklab: [^\n]*({line})[^\n]*\n", done.stderr), done.stderr
    assert not (tmp_path / "nowhere").exists()


def test_a_place_is_checked_without_a_trace(tmp_path: Path) -> None:
    check_directory(tmp_path / "a/b")
    check_files(tmp_path / "c/d", Path("/dev/null"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("store", "line"),
    [
        ("pipe", "pipe: not a regular file; a store is a file of SQLite, or a URL"),
        ("/dev/null", "not a regular file"),
        ("/dev/full", "not a regular file"),
        ("directory", "is a directory; a store is a file in it: directory/results.db"),
        ("text", "not a store of blklab, or damaged"),
        ("text/below.db", "not a directory|no store there"),
        ("dangling/below.db", "is a link to|no store there"),
        ("/proc/self/x.db", "no file can be made|no permission|no store there"),
        ("mysql://a/b", "no store on 'mysql'"),
        ("postgresql://", "postgresql|connection"),
        ("postgresql://127.0.0.1:1/x", "refused|postgresql|connection"),
        ("postgresql://a:b:c@:x/", "not the URL"),
        ("sqlite://", "a file is expected"),
    ],
)
@pytest.mark.parametrize("command", ["results show 1", "fio ONE"])
def test_a_store_at_a_bad_path_is_reported_before_the_first_run(
    command: str, store: str, line: str, tmp_path: Path, forking: list[str]
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "directory").mkdir()
    (tmp_path / "text").write_text("mine" * 1000)
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "job.fio").write_text("[j]\nsize=64k\n")
    words = command.replace("ONE", "job.fio --disk=su800-128gb")
    done = run(tmp_path, f"{words} '--store={store}'", forking)
    assert done.returncode in {1, 2}, done.stdout
    assert re.fullmatch(f"blklab: [^\n]*({line})[^\n]*\n", done.stderr), done.stderr
    assert (tmp_path / "text").read_text() == "mine" * 1000
    assert not (tmp_path / "reports").exists()
