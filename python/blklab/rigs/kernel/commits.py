"""Commits of a git repository as sources: ``DIRECTORY@COMMIT``.

The repository itself is only read. A commit's files are in a directory of the cache, for which git
has an index and settings of ours, so that from one commit to the next only files that differ are
written, and only what depends on them is compiled.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from blklab.base import homes
from blklab.base.steps import Steps
from blklab.errors import InputError, MachineError
from blklab.rigs.kernel import cache
from blklab.rigs.kernel.errors import KernelError

_SHORT = 12
"""Digits of a commit's hash that are shown, as in the kernel's own messages."""
_PLACES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR",
           "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE", "GIT_PREFIX")  # fmt: skip
"""In a hook, or a rebase's shell, they lead git to the repository of that: to its index, which
would be written."""


@dataclass(frozen=True)
class Commit:
    """A commit of a repository."""

    repository: Path
    """The user's directory."""
    hash: str

    @property
    def short(self) -> str:
        """The hash for a person."""
        return self.hash[:_SHORT]

    @property
    def text(self) -> str:
        """As a source is given to a command."""
        return f"{self.repository}@{self.hash}"

    @property
    def subject(self) -> str:
        """The first line of its message."""
        return git(self.repository, "log", "-1", "--format=%s", self.hash).strip()


def find(what: str) -> Commit | None:
    """The commit of ``DIRECTORY@COMMIT``, None if the text has another form. InputError if the
    directory has no such commit."""
    directory, _, revision = what.rpartition("@")
    if not directory or not revision:
        return None
    path = homes.expanded(directory)
    return named(path, revision, "--source") if path.is_dir() else None


def named(directory: Path, revision: str, option: str) -> Commit:
    """The commit that `revision` names: a hash, a tag, a branch. InputError, with `option`, if it
    names none."""
    command = ["rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}"]
    try:
        found = git(directory, *command).strip()
    except KernelError as error:
        said = error.detail[-1].removeprefix("fatal: ") if error.detail else str(error)
        raise InputError(f"{option}: {directory} has no commit '{revision}' ({said})") from None
    return Commit(directory.resolve(), found)


def before(bad: Commit, good: Sequence[str], paths: Sequence[str]) -> list[str]:
    """The hashes of all commits that `bad` has and those of `good` have not, in the order in which
    a search tries them: that first which halves the history best. With `paths` only commits that
    change files there."""
    limits = [f"^{commit}" for commit in good]
    told = git(bad.repository, "rev-list", "--bisect-all", bad.hash, *limits, "--", *paths)
    return [line.split()[0] for line in told.splitlines()]


def is_before(commit: Commit, later: Commit) -> bool:
    """Whether `later` has `commit` among the commits before it."""
    command = ["merge-base", "--is-ancestor", commit.hash, later.hash]
    return _run(commit.repository, *command).returncode == 0


def has(commit: Commit, name: str) -> bool:
    """Whether it has a file or directory of that name."""
    return _run(commit.repository, "cat-file", "-e", f"{commit.hash}:{name}").returncode == 0


def place(commit: Commit) -> Path:
    """The directory of the repository's files: one for all its commits."""
    return cache.root() / "sources" / cache.key_of(f"repository {commit.repository}") / "tree"


@contextmanager
def checked_out(commit: Commit, left_out: Sequence[str], steps: Steps) -> Iterator[None]:
    """The commit's files are at `place`, without those that the patterns `left_out` name, and stay
    there. KernelError if git cannot write them."""
    tree = place(commit)
    with cache.locked(tree.parent, lambda: steps.note("waiting for another commit's build")):
        ours = tree.with_name("git")
        tree.mkdir(parents=True, exist_ok=True)
        steps.begin(f"checking out {commit.short} of {commit.repository}")
        if not (ours / "HEAD").is_file():
            shutil.rmtree(ours, ignore_errors=True)
            git(tree, "init", "--quiet", "--bare", str(ours))
        objects = git(commit.repository, "rev-parse", "--git-path", "objects").strip()
        alternates = os.fsencode(commit.repository / objects) + b"\n"
        (ours / "objects/info/alternates").write_bytes(alternates)
        (ours / "info").mkdir(exist_ok=True)
        sparse = "".join(f"{pattern}\n" for pattern in ("/*", *(f"!{name}" for name in left_out)))
        (ours / "info/sparse-checkout").write_text(sparse, encoding="utf-8")
        # A killed git leaves it; with the lock held no other one is at work.
        (ours / "index.lock").unlink(missing_ok=True)
        own = [f"--git-dir={ours}", f"--work-tree={tree}", "-c", "core.sparseCheckout=true"]
        git(tree, *own, "read-tree", "--reset", "-u", commit.hash)
        yield


def git(directory: Path, *words: str) -> str:
    """What git prints, run in that directory. KernelError with its own last lines if it fails."""
    done = _run(directory, *words)
    if done.returncode:
        words_of_git = done.stderr.decode(errors="replace").splitlines()
        raise KernelError(f"{directory}: git failed", words_of_git[-3:])
    return os.fsdecode(done.stdout)


def _run(directory: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    if shutil.which("git") is None:
        raise MachineError("needs git: apt-get install git")
    others = {name: value for name, value in os.environ.items() if name not in _PLACES}
    return subprocess.run(
        ["git", "-C", str(directory), *words],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        # The words are read.
        env=others | {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"},
        check=False,
    )
