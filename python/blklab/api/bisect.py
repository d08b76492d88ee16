"""``blklab.bisect``: the first kernel, patch or commit that issues other requests."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from blklab.api import candidates
from blklab.api.candidates import Candidates, Step
from blklab.api.explain import explain
from blklab.api.listener import SILENT, Listener
from blklab.base.catalogue import Entry
from blklab.domain import specs
from blklab.domain.experiment import Disk, RigSpec, SchedulerSpec
from blklab.errors import InputError, RunError
from blklab.timelines import window
from blklab.timelines.difference import Difference, first_difference
from blklab.timelines.timeline import Timeline


@dataclass(frozen=True)
class Bisected:
    """The answer of a search."""

    load: str
    disk: str
    scheduler: str
    labels: tuple[str, ...]
    """All kernels, or the patches after the first kernel, in order; of a git repository the commits
    that were found to be like the first one, and the answer."""
    same: Mapping[str, bool]
    """The kernels that were run: whether their requests are the first one's."""
    first: str | None
    """The first kernel, patch or commit with other requests; None if the last one has none."""
    last_same: str
    """The one before it."""
    difference: Difference | None
    """Between these two; None if there is no first one."""
    requests: int
    """Compared requests of the good kernel."""
    left_out: int
    """Later requests of it, which were not compared: a run keeps the first 100,000."""
    unusable: tuple[str, ...] = ()
    """Commits that could not be built, any of which may be the first one instead."""

    def sentence(self) -> str:
        """The answer in a sentence."""
        where = f"{self.load} on {self.disk} under {self.scheduler}"
        if self.first is None or self.difference is None:
            return f"{where}: all {self.requests:,} requests are the same under {self.labels[-1]}"
        count = self.difference.index
        same = f"the first {count:,} are those of {self.last_same}, then " if count else "at once "
        several = f", or one of {len(self.unusable)} that could not be built,"
        unsure = several if self.unusable else ""
        return (
            f"{where}: {self.first}{unsure} is the first with other requests: "
            f"{same}{self.difference.text}"
        )


def bisect(
    job: str | os.PathLike[str] | Entry,
    *,
    disk: str | os.PathLike[str] | Disk,
    good: str,
    bad: str | None = None,
    through: Sequence[str] = (),
    patches: Sequence[str | os.PathLike[str]] = (),
    git: str | os.PathLike[str] | None = None,
    paths: Sequence[str] = (),
    scheduler: str | SchedulerSpec = "mq-deadline",
    times: bool = False,
    seed: int = 1,
    until: str | None = None,
    host: Mapping[str, int] | None = None,
    listener: Listener = SILENT,
) -> Bisected:
    """Find the first kernel, patch of a series, or commit that issues other requests than `good`.

    Guests run in virtual time and repeat exactly, so that a single other request is a change of
    behaviour. Between two kernels that differ the search halves the list: the kernels before the
    first other one are taken to be like `good`.

    Args:
        job: a fio job or a recording, run by blklab's own driver.
        disk, scheduler, seed, host: as of `explain`.
        good: a kernel of `list_kernels`; with `patches` a source as of `build_kernel`; with `git` a
            commit, by any name that git knows.
        bad: a kernel of `list_kernels`; with `git` a commit; not with `patches`.
        through: the kernels between them, in order. None: all built kernels without changes whose
            version is between theirs.
        patches: a series for `good`, in order; a prefix is built when the search needs it.
        git: a repository, which is only read: its commits between the two are built as the search
            needs them; those that cannot be built are left out.
        paths: with `git` only commits that change these files or directories.
        times: also requests at another time are other ones.
        until: the end of the compared part: ``2s``. None is the run's end.

    Raises:
        blklab.errors.InputError: bad input: nothing has run.
        blklab.errors.RunError: a run or a build failed.
    """
    entry = specs.workload(job)
    among = _candidates(good, bad, through, patches, git, paths, listener)

    def timeline(kernel: str) -> Timeline:
        return explain(
            entry,
            disk=disk,
            scheduler=scheduler,
            until=until,
            requests=window.KEPT,
            seed=seed,
            host=host,
            rig=RigSpec("kernel", kernel=kernel, driver="native"),
        )

    found = search(among, timeline, times=times)
    reference = found.reference
    return Bisected(
        entry.name,
        reference.disk,
        reference.scheduler,
        among.labels,
        found.same,
        found.first,
        found.last_same,
        found.difference,
        len(reference.requests),
        reference.requests_left_out,
        among.unusable if found.first is not None else (),
    )


@dataclass(frozen=True)
class Found:
    """What `search` found: see `Bisected`."""

    reference: Timeline
    same: Mapping[str, bool]
    first: str | None
    last_same: str
    difference: Difference | None


def search(among: Candidates, run: Callable[[str], Timeline], *, times: bool) -> Found:
    """Narrow `among` to the first kernel that differs from the reference; the difference is to the
    last one that does not, which may itself have other times than the reference. `run` makes the
    timeline of a kernel's key."""
    reference = run(among.first.kernel())
    same = {among.first.label: True}
    like, other = reference, None
    last_same = among.first
    step: Step | None = among.last
    while step is not None:
        try:
            kernel = step.kernel()
        except RunError:
            if not among.without(step):
                raise
        else:
            made = run(kernel)
            differs = first_difference(reference, made, times=times) is not None
            same[step.label] = not differs
            if step is among.last and not differs:
                return Found(reference, same, None, step.label, None)
            among.tried(step, differs=differs)
            if differs:
                other = made
            else:
                like, last_same = made, step
        step = among.middle()
    assert other is not None
    difference = first_difference(like, other, times=times)
    return Found(reference, same, among.last.label, last_same.label, difference)


def _candidates(
    good: str,
    bad: str | None,
    through: Sequence[str],
    patches: Sequence[str | os.PathLike[str]],
    git: str | os.PathLike[str] | None,
    paths: Sequence[str],
    listener: Listener,
) -> Candidates:
    """Which of the three it is. InputError where they are mixed."""
    if paths and git is None:
        raise InputError("--path: only with --git")
    if patches:
        if bad is not None or through or git is not None:
            raise InputError(
                "--patch: the series ends with its last patch; omit --bad, --through and --git"
            )
        return candidates.series(good, patches, listener)
    if bad is None:
        of_git = "a commit" if git is not None else "a kernel, or with --patch a series of patches"
        raise InputError(f"--bad: expected {of_git}")
    if git is None:
        return candidates.kernels(good, bad, through)
    if through:
        raise InputError("--through: not with --git, which searches the commits")
    return candidates.history(git, good, bad, paths, listener)
