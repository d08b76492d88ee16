"""Commits of a git repository as sources, and the search among them."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blklab
from blklab.api import candidates
from blklab.api.bisect import search
from blklab.errors import InputError, RunError
from blklab.rigs.kernel import cache, tools
from blklab.rigs.kernel.build import Built, build
from blklab.rigs.kernel.errors import KernelError
from blklab.timelines.timeline import Request, Timeline
from tests import fake_linux

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
needs_tools = pytest.mark.skipif(
    bool(tools.missing()), reason=f"not installed: {', '.join(tools.missing())}"
)
_NOBODY = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    **{
        f"GIT_{role}_{what}": text
        for role in ("AUTHOR", "COMMITTER")
        for what, text in (("NAME", "nobody"), ("EMAIL", "@"), ("DATE", "2026-01-01T00:00:00Z"))
    },
}


@dataclass(frozen=True)
class Repository:
    """A git repository made by a test."""

    top: Path

    def git(self, *words: str, given: str | None = None) -> str:
        """What git answers."""
        done = subprocess.run(
            ["git", "-C", str(self.top), *words],
            env=os.environ | _NOBODY,
            input=given,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def commit(self, subject: str, **files: str) -> str:
        """Writes these files and commits all; returns the commit's hash. In a name ``__`` is a
        slash, and ``_c`` stands for ``.c``."""
        for name, text in files.items():
            path = self.top / name.replace("__", "/").replace("_c", ".c")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", subject)
        return self.git("rev-parse", "HEAD")

    def state(self) -> str:
        """A hash over all its files, git's own too."""
        files = sorted(path for path in self.top.rglob("*") if path.is_file())
        digest = hashlib.sha256()
        for path in files:
            digest.update(f"{path} {path.stat().st_mtime_ns}".encode() + path.read_bytes())
        return digest.hexdigest()


@pytest.fixture
def linux(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """Three commits of a source that builds at once."""
    monkeypatch.setenv("BLKLAB_CACHE", str(tmp_path / "cache"))
    made = Repository(fake_linux.write_tree(tmp_path / "linux"))
    made.git("init", "--quiet")
    made.commit("block: begin")
    made.git("tag", "v1")
    made.commit("block: another elevator", block__elevator_c="int another;\n")
    made.commit("block: a third", block__elevator_c="int third;\n", block__new_c="int new;\n")
    made.git("tag", "v3")
    return made


def image(built: Built) -> bytes:
    return built.kernel.image.read_bytes()


@needs_tools
def test_a_commit_is_built_and_the_repository_only_read(linux: Repository) -> None:
    before = linux.state()
    first, third = build(f"{linux.top}@v1"), build(f"{linux.top}@v3")
    assert (first.fresh, third.fresh) == (True, True)
    assert b"elevator" in image(first) and b"another" not in image(first)
    assert b"third" in image(third) and b"new" in image(third)
    assert third.kernel.compiled == 2  # kyber is as it was
    assert linux.state() == before
    [tree] = (cache.root() / "sources").glob("*/tree")
    assert (tree / "drivers/gpu/Kconfig").is_file() and not (tree / "drivers/gpu/huge.c").exists()
    again = build(f"{linux.top}@v1")
    assert not again.fresh and again.kernel.key == first.kernel.key
    assert first.kernel.changes == (f"{linux.top}@{linux.git('rev-parse', 'v1')[:12]}",)


@needs_tools
def test_another_repository_of_the_environment_is_neither_asked_nor_written(
    linux: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a hook of git."""
    other = Repository(tmp_path / "other")
    other.top.mkdir()
    other.git("init", "--quiet")
    other.commit("no kernel", readme="")
    before = other.state()
    wanted = linux.git("rev-parse", "v3")
    monkeypatch.setenv("GIT_DIR", str(other.top / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other.top / ".git/index"))
    assert b"third" in image(build(f"{linux.top}@{wanted}"))
    assert other.state() == before


@needs_tools
def test_a_commit_with_fewer_files_is_built_without_the_others(linux: Repository) -> None:
    build(f"{linux.top}@v3")
    assert b"new" not in image(build(f"{linux.top}@v1"))


@needs_tools
def test_a_checkout_that_was_killed_half_way_is_completed(linux: Repository) -> None:
    build(f"{linux.top}@v1")
    [place] = (path.parent for path in (cache.root() / "sources").glob("*/tree"))
    (place / "git/index.lock").write_text("")
    # Some files were written, the index was not.
    (place / "tree/block/elevator.c").unlink()
    (place / "tree/block/kyber-iosched.c").write_text("int damaged;\n")
    assert b"third" in image(build(f"{linux.top}@v3"))
    assert b"damaged" not in image(build(f"{linux.top}@v3"))


@needs_tools
def test_a_file_of_a_commits_source_is_printed(linux: Repository) -> None:
    assert blklab.kernel_source("block/elevator.c", f"{linux.top}@v3") == b"int third;\n"
    assert blklab.kernel_source("block/elevator.c", f"{linux.top}@v1") == b"int elevator;\n"


def test_wrong_commits_are_refused_in_one_line(linux: Repository, tmp_path: Path) -> None:
    other = Repository(tmp_path / "other")
    other.top.mkdir()
    other.git("init", "--quiet")
    other.commit("no kernel", readme="")
    for source, said in (
        (f"{linux.top}@v9", rf"^--source: {linux.top} has no commit 'v9' \(.*\)$"),
        (f"{linux.top}@--help", r" has no commit '--help' "),
        (f"{tmp_path}@v1", rf"^--source: {tmp_path} has no commit 'v1' \(not a git repository"),
        (f"{other.top}@HEAD", rf"^{other.top}@\w{{12}}: not a Linux source"),
        ("@v1", r"^--source: '@v1': no directory, no tarball, no DIRECTORY@COMMIT"),
        (f"{linux.top}@", r"no DIRECTORY@COMMIT"),
    ):
        with pytest.raises(InputError, match=said):
            build(source)
    assert not list((cache.root() / "sources").glob("[!.]*")), "a checkout was left"


def test_commits_that_git_has_lost_are_a_line(linux: Repository) -> None:
    tree = linux.git("rev-parse", "v1:block")
    (linux.top / ".git/objects" / tree[:2] / tree[2:]).unlink()
    with pytest.raises(KernelError, match=r"git failed$"):
        build(f"{linux.top}@v1")


def timeline(differs: bool) -> Timeline:
    row = Request(1, 0, "read", 8 if differs else 0, 8, 1, 1, None, 11)
    return Timeline("load", "disk", "none", "kernel", 100, 0, 100, {0: "job"}, [row], ())


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Repository]:
    made = Repository(tmp_path_factory.mktemp("history"))
    made.git("init", "--quiet")
    yield made


class Tried:
    """The builds of a search, which are none."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, broken: frozenset[str]) -> None:
        self.commits: list[str] = []
        self._broken = broken
        monkeypatch.setattr(candidates, "build_kernel", self._built)

    def _built(self, source: str, **_: object) -> Built:
        commit = source.rpartition("@")[2]
        self.commits.append(commit)
        if commit in self._broken:
            raise KernelError("make failed")
        kernel = cache.Kernel(commit, "7.3", source, "", (), (), "", 0.0, 0)
        return Built(kernel, fresh=True)


def made_history(repository: Repository, parents: list[list[int]]) -> list[str]:
    """A commit for each list of earlier ones; each changes a file of its own."""
    made: list[str] = []
    for number, before in enumerate(parents):
        blob = repository.git("hash-object", "-w", "--stdin", given=str(number))
        tree = repository.git("mktree", given=f"100644 blob {blob}\tfile{number}\n")
        words = [word for parent in before for word in ("-p", made[parent])]
        made.append(repository.git("commit-tree", tree, *words, "-m", f"commit {number}"))
    return made


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[list[int]], int, frozenset[int]]:
    """Commits with branches and merges, that which changes the behaviour, those that do not build.
    All are before the last one."""
    count = draw(st.integers(3, 14))
    parents: list[list[int]] = [[]]
    for number in range(1, count):
        one = draw(st.integers(max(0, number - 3), number - 1))
        other = draw(st.integers(0, number - 1))
        parents.append([one] if one == other or draw(st.booleans()) else [one, other])
    heads = set(range(count)) - {parent for row in parents for parent in row}
    parents.append(sorted(heads))
    change = draw(st.integers(1, count))
    broken = draw(st.frozensets(st.integers(1, count - 1), max_size=3))
    return parents, change, broken


# Some 30 calls of git each.
@settings(max_examples=40)
@given(histories())
def test_the_first_other_commit_is_found_in_any_history(
    empty: Repository, drawn: tuple[list[list[int]], int, frozenset[int]]
) -> None:
    parents, change, broken = drawn
    made = made_history(empty, parents)
    behind: list[set[int]] = []
    for number, before in enumerate(parents):
        behind.append({number}.union(*(behind[parent] for parent in before)))
    with pytest.MonkeyPatch.context() as patch:
        tried = Tried(patch, frozenset(made[number] for number in broken))
        among = candidates.history(empty.top, made[0], made[-1], (), blklab.Listener())
        found = search(among, lambda key: timeline(change in behind[made.index(key)]), times=False)
    assert len(set(tried.commits)) == len(tried.commits)
    assert found.first is not None and found.difference is not None
    labels = [f"{commit[:12]} commit {number}" for number, commit in enumerate(made)]
    assert set(among.unusable) <= {labels[number] for number in broken}
    assert labels[change] in (among.unusable if change in broken else [found.first])
    assert found.same[found.first] is False


def test_only_commits_that_change_a_path_are_tried(
    empty: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = made_history(empty, [[], [0], [1], [2], [3], [4]])
    # Each has one file, so that file3 is changed by commit 3, and by 4, which lacks it.
    tried = Tried(monkeypatch, frozenset())
    among = candidates.history(empty.top, made[0], made[5], ["file3"], blklab.Listener())
    found = search(among, lambda key: timeline(made.index(key) >= 3), times=False)
    assert found.first == f"{made[3][:12]} commit 3"
    assert set(tried.commits) <= {made[number] for number in (0, 3, 4, 5)}
    among = candidates.history(empty.top, made[0], made[5], ["file3"], blklab.Listener())
    with pytest.raises(RunError, match=r"^no commit that changes file3 makes a difference"):
        search(among, lambda key: timeline(made.index(key) >= 5), times=False)


def test_a_last_commit_like_the_first_ends_the_search(
    empty: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = made_history(empty, [[], [0], [1]])
    tried = Tried(monkeypatch, frozenset())
    among = candidates.history(empty.top, made[0], made[2], (), blklab.Listener())
    found = search(among, lambda _: timeline(False), times=False)
    assert (found.first, len(tried.commits)) == (None, 2)


@pytest.mark.parametrize("end", [0, 2])
def test_an_end_that_cannot_be_built_ends_the_search(
    empty: Repository, monkeypatch: pytest.MonkeyPatch, end: int
) -> None:
    made = made_history(empty, [[], [0], [1]])
    Tried(monkeypatch, frozenset({made[end]}))
    among = candidates.history(empty.top, made[0], made[2], (), blklab.Listener())
    with pytest.raises(KernelError, match="make failed"):
        search(among, lambda key: timeline(key != made[0]), times=False)


def test_wrong_ends_are_refused_in_one_line(empty: Repository) -> None:
    made = made_history(empty, [[], [0], [0]])
    for words, said in (
        ({"git": "no-such"}, r"^--git: no directory 'no-such'$"),
        ({"good": "no-such"}, rf"^--good: {empty.top} has no commit 'no-such' "),
        ({"bad": "no-such"}, rf"^--bad: {empty.top} has no commit 'no-such' "),
        ({"good": made[1], "bad": made[1]}, r"^--good and --bad: \w+ and \w+ are the same commit$"),
        ({"good": made[1], "bad": made[2]}, r"^--good: \w+ is not among the commits before "),
        ({"paths": ["nowhere"]}, r"^--path: no commit from \w+ to \w+ changes nowhere$"),
        ({"bad": None}, r"^--bad: expected a commit$"),
        ({"git": None, "paths": ["block"]}, r"^--path: only with --git$"),
        ({"through": ["x"]}, r"^--through: not with --git"),
        ({"patches": ["x.patch"], "bad": None}, r"^--patch: .*omit --bad, --through and --git$"),
    ):
        usual: dict[str, object] = {"git": empty.top, "good": made[0], "bad": made[1]}
        with pytest.raises(InputError, match=said):
            blklab.bisect("randread", disk="constant", **usual | words)  # type: ignore[arg-type]
