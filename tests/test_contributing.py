"""CONTRIBUTING.md's examples, carried out literally."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import blklab
from blklab import _core

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
# One place, and the checkout's own target: what did not change is not built again.
TREE = ROOT / "target" / "contributing"


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


def apply(diff: str, path: Path) -> None:
    """Apply a diff without line numbers to a file; its context must occur once."""
    lines = diff.splitlines(keepends=True)
    old = "".join(line[1:] for line in lines if line[0] in " -")
    new = "".join(line[1:] for line in lines if line[0] in " +")
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{path}: does not have exactly once:\n{old}"
    path.write_text(text.replace(old, new), encoding="utf-8")


@pytest.fixture
def tree() -> Path:
    """A copy of the checkout's Rust."""
    shutil.rmtree(TREE / "crates", ignore_errors=True)
    shutil.copytree(ROOT / "crates", TREE / "crates")
    # The workspace has a member there.
    shutil.rmtree(TREE / "fuzz", ignore_errors=True)
    shutil.copytree(ROOT / "fuzz", TREE / "fuzz", ignore=shutil.ignore_patterns("target"))
    for name in ("Cargo.toml", "Cargo.lock", "rustfmt.toml"):
        shutil.copy2(ROOT / name, TREE / name)
    lend_libraries(TREE / "target/debug")
    return TREE


def lend_libraries(target: Path) -> None:
    """A first copy reuses the libraries of other packages that `cargo test` has built."""
    built = ROOT / "target/debug"
    if target.exists() or not built.exists():
        return

    def ours(_: str, names: list[str]) -> set[str]:
        return {name for name in names if "blklab" in name}

    def ours_or_programs(_: str, names: list[str]) -> set[str]:
        return ours(_, names) | {name for name in names if not name.startswith("lib")}

    for kind, ignore in {
        "deps": ours_or_programs, ".fingerprint": ours, "build": ours,
    }.items():  # fmt: skip
        shutil.copytree(built / kind, target / kind, copy_function=os.link, ignore=ignore)


def cargo(command: str, tree: Path) -> str:
    """Its output, in the copy."""
    # Not the checkout's own: to Cargo the copy is the same package, and the checkout's next
    # build would take what was built of the copy for its own.
    environment = os.environ | {"CARGO_TARGET_DIR": str(tree / "target")}
    done = subprocess.run(
        command.split(), cwd=tree, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.mark.skipif(shutil.which("cargo") is None, reason="needs cargo")
def test_a_scheduler_is_one_file_and_two_lines_and_then_passes_every_property(tree: Path) -> None:
    for path, text in examples("rust").items():
        assert not (tree / path).exists()
        (tree / path).write_text(text, encoding="utf-8")
    for path, diff in examples("diff").items():
        apply(diff, tree / path)
    [test] = commands("Add a scheduler")
    cargo(f"rustfmt --check --edition 2024 {' '.join(examples('rust'))}", tree)
    printed = cargo(test, tree)
    for ran in ("sstf::tests::the_nearest_goes_first", "testing::properties::no_request_is_lost"):
        assert re.search(rf"^test scheduler::{ran}\w* \.\.\. ok$", printed, re.M), ran


@pytest.mark.skipif(shutil.which("cargo") is None, reason="needs cargo")
def test_a_disk_is_one_file_that_is_built_into_the_core_and_held_against_its_figures(
    tree: Path,
) -> None:
    [(path, text)] = examples("toml").items()
    assert not (tree / path).exists()
    (tree / path).write_text(text, encoding="utf-8")
    [test] = [line for line in commands("Add a disk") if line.startswith("cargo test")]
    printed = cargo(f"{test} -- --show-output", tree)
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
