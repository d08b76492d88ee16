"""CONTRIBUTING.md's examples, carried out literally."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import blklab
from blklab import _core

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def examples(kind: str) -> dict[str, str]:
    """Blocks of that kind below a file's name, by that name."""
    found = re.findall(rf"^\*\*`([^`\n]+)`\*\*\n\n```{kind}\n(.*?)^```$", TEXT, re.M | re.S)
    assert len(found) == TEXT.count(f"```{kind}\n"), f"a block of {kind} without a file's name"
    return dict(found)


def commands(section: str) -> list[str]:
    """The commands of a section."""
    text = TEXT.split(f"\n## {section}\n")[1].split("\n## ")[0]
    return [
        line
        for block in re.findall(r"```sh\n(.*?)```", text, re.S)
        for line in block.split("\n")
        if line
    ]


def apply(diff: str, text: str, path: str) -> str:
    """Apply a diff without line numbers to a file's text; its context must occur once."""
    lines = diff.splitlines(keepends=True)
    old = "".join(line[1:] for line in lines if line[0] in " -")
    new = "".join(line[1:] for line in lines if line[0] in " +")
    assert text.count(old) == 1, f"{path}: does not have exactly once:\n{old}"
    return text.replace(old, new)


OVER = """
mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/files,workdir=$2/work" "$1" && cd "$1" || exit
shift 2
exec "$@"
"""
"""To a command, what it writes and the files that are there lie over the checkout's own. All of the
checkout is where Cargo and rustc know it, so that only what differs is compiled, on top of what
`cargo test` has built."""


class Tree:
    """The checkout, with other files over it that only its own commands see."""

    def __init__(self, place: Path) -> None:
        self._place = place
        for name in ("files", "work"):
            (place / name).mkdir()

    def write(self, path: str, text: str) -> None:
        """A new file, or another text of one."""
        file = self._place / "files" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def call(self, *command: str) -> str:
        """The output of a command in the checkout's directory."""
        unshare = ["unshare", "--mount", *(["--map-root-user"] if os.geteuid() else [])]
        done = subprocess.run(
            [*unshare, "sh", "-c", OVER, "sh", str(ROOT), str(self._place), *command],
            env=os.environ | {"CARGO_TARGET_DIR": str(ROOT / "target")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout


def build(test: str) -> None:
    """Build the checkout's own tests of that command, as `make test` has done already: then only
    what differs is compiled. The example must be written later: Cargo compiles what is newer than
    its last build."""
    subprocess.run([*test.split(), "--no-run", "--quiet"], cwd=ROOT, check=True)


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Tree]:
    if shutil.which("cargo") is None:
        pytest.skip("needs cargo")
    place = tmp_path / "tree"
    place.mkdir()
    made = Tree(place)
    try:
        made.call("true")
    except AssertionError as error:
        pytest.skip(f"no overlay of the checkout: {str(error).splitlines()[-1]}")
    yield made
    # Some 300 MB.
    shutil.rmtree(place, ignore_errors=True)


def test_a_scheduler_is_one_file_and_two_lines_and_then_passes_every_property(tree: Tree) -> None:
    [test] = commands("Add a scheduler")
    build(test)
    for path, text in examples("rust").items():
        assert not (ROOT / path).exists()
        tree.write(path, text)
    for path, diff in examples("diff").items():
        tree.write(path, apply(diff, (ROOT / path).read_text(encoding="utf-8"), path))
    tree.call("rustfmt", "--check", "--edition", "2024", *examples("rust"))
    printed = tree.call(*test.split())
    for ran in ("sstf::tests::the_nearest_goes_first", "testing::properties::no_request_is_lost"):
        assert re.search(rf"^test scheduler::{ran}\w* \.\.\. ok$", printed, re.M), ran


def test_a_disk_is_one_file_that_is_built_into_the_core_and_held_against_its_figures(
    tree: Tree,
) -> None:
    [(path, text)] = examples("toml").items()
    assert not (ROOT / path).exists()
    [test] = [line for line in commands("Add a disk") if line.startswith("cargo test")]
    build(test)
    tree.write(path, text)
    printed = tree.call(*test.split(), "--", "--show-output")
    assert re.search(r"^test every_disk_gives_its_published_figures\w* \.\.\. ok$", printed, re.M)
    assert re.search(r"^wd10ealx: \d+ random reads in 30 s", printed, re.M)


def test_a_disk_is_one_file_that_is_found_by_name_and_gives_its_published_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [(path, text)] = examples("toml").items()
    file = tmp_path / Path(path).name
    file.write_text(text, encoding="utf-8")
    monkeypatch.setenv("BLKLAB_DISKS", str(tmp_path))
    figures = _core.Disk(text, path).validate()
    assert len(figures) == 3
    for row in figures:
        assert row.met, row.figure
    unsourced = [
        row.key
        for row in _core.Disk(text, path).parameters
        if not row.source and row.key not in ("kind", "name", "summary", "transport")
    ]
    assert not unsourced
    for command in commands("Add a disk"):
        if command.startswith("blklab"):
            run(command, tmp_path)
    report = json.loads((tmp_path / "reports/compare/results.json").read_text())
    assert [disk["label"] for disk in report["setup"]["disks"]] == ["wd10ealx"]


@pytest.fixture
def workload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The example's job file, in the directory of workloads, which is the current directory."""
    [(path, text)] = examples("ini").items()
    file = tmp_path / path
    file.parent.mkdir(parents=True)
    file.write_text(text, encoding="utf-8")
    monkeypatch.setenv("BLKLAB_WORKLOADS", str(file.parent))
    return tmp_path


def test_a_workload_is_one_file_that_is_found_by_name(workload: Path) -> None:
    for command in commands("Add a workload"):
        if command.startswith("blklab"):
            run(command, workload)
    result = blklab.simulate("backup", disk="wd10ezrx")
    assert [job.name for job in result.jobs] == ["clients", "clients", "backup"]
    assert all(job.read.ios for job in result.jobs)


@pytest.mark.skipif(shutil.which("fio") is None, reason="needs fio")
def test_fio_accepts_the_workload(workload: Path) -> None:
    [command] = [text for text in commands("Add a workload") if text.startswith("fio")]
    run(command, workload)


def run(command: str, directory: Path) -> None:
    """As typed, with this environment's blklab."""
    done = subprocess.run(
        command.split(),
        cwd=directory,
        env=os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stderr}"
