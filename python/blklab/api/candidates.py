"""The kernels among which `blklab.bisect` searches, and which of them it tries next."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from blklab.api.kernels import build_kernel
from blklab.api.listener import Listener
from blklab.base import homes
from blklab.errors import InputError, RunError
from blklab.rigs.kernel import cache, commits
from blklab.rigs.kernel.commits import Commit


@dataclass(frozen=True)
class Step:
    """A kernel of the search."""

    label: str
    """A kernel's name, a patch's file, or a commit with its subject."""
    kernel: Callable[[], str]
    """Its key; builds it if it is not there."""


class Candidates(Protocol):
    """Kernels between one that is the reference and one that may differ from it."""

    first: Step
    """The reference."""

    @property
    def labels(self) -> tuple[str, ...]:
        """All kernels in order, as far as they are known by name."""
        ...

    @property
    def last(self) -> Step:
        """The first kernel that is known to differ, at the beginning the last one of all."""
        ...

    @property
    def unusable(self) -> tuple[str, ...]:
        """Kernels before `last` of which it is not known whether they differ."""
        ...

    def middle(self) -> Step | None:
        """The kernel to be tried next; None once the search is over."""
        ...

    def tried(self, step: Step, *, differs: bool) -> None:
        """What a run of `step` has shown."""
        ...

    def without(self, step: Step) -> bool:
        """Whether the search can go on without `step`, which could not be built."""
        ...


class Line:
    """Kernels in a line: those before one that is like the reference are like it."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.first = steps[0]
        self._steps = steps
        self._low, self._high = 0, len(steps) - 1

    @property
    def labels(self) -> tuple[str, ...]:
        """See `Candidates`."""
        return tuple(step.label for step in self._steps)

    @property
    def last(self) -> Step:
        """See `Candidates`."""
        return self._steps[self._high]

    @property
    def unusable(self) -> tuple[str, ...]:
        """See `Candidates`."""
        return ()

    def middle(self) -> Step | None:
        """See `Candidates`."""
        if self._high - self._low <= 1:
            return None
        return self._steps[(self._low + self._high) // 2]

    def tried(self, step: Step, *, differs: bool) -> None:
        """See `Candidates`."""
        if differs:
            self._high = self._steps.index(step)
        else:
            self._low = self._steps.index(step)

    def without(self, step: Step) -> bool:
        """See `Candidates`."""
        return False


class History:
    """The commits of a git repository that `bad` has and `good` has not, by ``git rev-list``'s own
    halving, which knows of branches and merges."""

    def __init__(self, good: Commit, bad: Commit, paths: Sequence[str], listener: Listener) -> None:
        self._paths = paths
        self._listener = listener
        self._good = [good.hash]
        self._bad = bad
        self._not_built: dict[str, str] = {}
        self._commits: dict[str, Commit] = {}
        self.first = self._step(good)
        self._last = self._step(bad)
        self._tried = [self.first.label]

    @property
    def labels(self) -> tuple[str, ...]:
        """See `Candidates`."""
        return (*self._tried, self._last.label)

    @property
    def last(self) -> Step:
        """See `Candidates`."""
        return self._last

    @property
    def unusable(self) -> tuple[str, ...]:
        """See `Candidates`."""
        left = set(commits.before(self._bad, self._good, self._paths))
        return tuple(label for made, label in self._not_built.items() if made in left)

    def middle(self) -> Step | None:
        """See `Candidates`."""
        left = commits.before(self._bad, self._good, self._paths)
        known = {self._bad.hash, *self._not_built}
        found = next((one for one in left if one not in known), None)
        if found is None:
            if self._paths and self._bad.hash not in left and not self._not_built:
                raise RunError(
                    f"no commit that changes {', '.join(self._paths)} makes a difference; without "
                    "--path all commits are searched"
                )
            return None
        step = self._step(Commit(self._bad.repository, found))
        tries = max(1, (len(left) - 1).bit_length())
        self._listener.note(f"{len(left):,} commits, about {tries} to try: {step.label}")
        return step

    def tried(self, step: Step, *, differs: bool) -> None:
        """See `Candidates`."""
        commit = self._commits[step.label]
        if differs:
            self._bad, self._last = commit, step
        else:
            self._good.append(commit.hash)
            self._tried.append(step.label)

    def without(self, step: Step) -> bool:
        """See `Candidates`."""
        commit = self._commits[step.label]
        if commit.hash in (self._good[0], self._bad.hash):
            return False
        self._not_built[commit.hash] = step.label
        return True

    def _step(self, commit: Commit) -> Step:
        label = f"{commit.short} {commit.subject}"
        self._commits[label] = commit
        listener = self._listener
        return Step(label, lambda: build_kernel(commit.text, listener=listener).kernel.key)


def series(good: str, patches: Sequence[str | os.PathLike[str]], listener: Listener) -> Line:
    """The source without patches, and with more and more of them."""
    files = [Path(file) for file in patches]
    for file in files:
        if not file.is_file():
            raise InputError(f"--patch: no file '{file}'")
    names = [file.name for file in files]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InputError(f"--patch: {twice} is there twice; each patch needs a name of its own")

    def built(count: int) -> Callable[[], str]:
        return lambda: build_kernel(good, files[:count], listener=listener).kernel.key

    steps = [Step(good, built(0))]
    return Line(steps + [Step(name, built(number)) for number, name in enumerate(names, 1)])


def kernels(good: str, bad: str, through: Sequence[str]) -> Line:
    """The built kernels from `good` to `bad`."""
    ends = cache.find(good), cache.find(bad)
    if ends[0].key == ends[1].key:
        raise InputError(f"--good and --bad: {good} and {bad} are the same kernel")
    if through:
        between = [(name, cache.find(name).key) for name in through]
    else:
        versions = [_numbers(end.version) for end in ends]
        unchanged = {
            kernel.version: kernel.key
            for kernel in reversed(cache.kernels())
            if not kernel.changes and min(versions) < _numbers(kernel.version) < max(versions)
        }
        newest_last = sorted(unchanged, key=_numbers, reverse=versions[0] > versions[1])
        between = [(version, unchanged[version]) for version in newest_last]
    named = [(good, ends[0].key), *between, (bad, ends[1].key)]
    labels = [label for label, _ in named]
    if twice := next((label for label in labels if labels.count(label) > 1), None):
        raise InputError(f"--through: {twice} is there twice")
    return Line([Step(label, partial(str, key)) for label, key in named])


def history(
    repository: str | os.PathLike[str],
    good: str,
    bad: str,
    paths: Sequence[str],
    listener: Listener,
) -> History:
    """The commits of a repository from `good` to `bad`."""
    directory = homes.expanded(os.fspath(repository))
    if not directory.is_dir():
        raise InputError(f"--git: no directory '{directory}'")
    ends = commits.named(directory, good, "--good"), commits.named(directory, bad, "--bad")
    if ends[0] == ends[1]:
        raise InputError(f"--good and --bad: {good} and {bad} are the same commit")
    if not commits.is_before(*ends):
        raise InputError(
            f"--good: {good} is not among the commits before {bad}; one that is: "
            f"git -C {directory} merge-base {good} {bad}"
        )
    if paths and not commits.before(ends[1], [ends[0].hash], paths):
        raise InputError(f"--path: no commit from {good} to {bad} changes {', '.join(paths)}")
    return History(*ends, paths, listener)


def _numbers(version: str) -> tuple[int, ...]:
    """``7.3.4``, ``7.4-rc1`` and so on as numbers, to be compared."""
    parts = version.split("-", maxsplit=1)[0].split(".")
    return tuple(int(part) if part.isdigit() else 0 for part in parts)
