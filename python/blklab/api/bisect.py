"""``blklab.bisect``: the first kernel or patch that issues other requests."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from blklab.api.explain import explain
from blklab.api.kernels import build_kernel
from blklab.api.listener import SILENT, Listener
from blklab.base.catalogue import Entry
from blklab.domain import specs
from blklab.domain.experiment import Disk, RigSpec, SchedulerSpec
from blklab.errors import InputError
from blklab.rigs.kernel import cache
from blklab.timelines import window
from blklab.timelines.difference import Difference, first_difference
from blklab.timelines.timeline import Timeline


@dataclass(frozen=True)
class Step:
    """A kernel of the search."""

    label: str
    """A kernel's name, or a patch's file."""
    kernel: Callable[[], str]
    """Its key; builds it if it is not there."""


@dataclass(frozen=True)
class Bisected:
    """The answer of a search."""

    load: str
    disk: str
    scheduler: str
    labels: tuple[str, ...]
    """All kernels, or the patches after the first kernel, in order."""
    same: Mapping[str, bool]
    """The kernels that were run: whether their requests are the first one's."""
    first: str | None
    """The first kernel or patch with other requests; None if the last one has none."""
    last_same: str
    """The one before it."""
    difference: Difference | None
    """Between these two; None if there is no first one."""
    requests: int
    """Compared requests of the good kernel."""
    left_out: int
    """Later requests of it, which were not compared: a run keeps the first 100,000."""

    def sentence(self) -> str:
        """The answer in a sentence."""
        where = f"{self.load} on {self.disk} under {self.scheduler}"
        if self.first is None or self.difference is None:
            return f"{where}: all {self.requests:,} requests are the same under {self.labels[-1]}"
        count = self.difference.index
        same = f"the first {count:,} are those of {self.last_same}, then " if count else "at once "
        return (
            f"{where}: {self.first} is the first with other requests: {same}{self.difference.text}"
        )


def bisect(
    job: str | os.PathLike[str] | Entry,
    *,
    disk: str | os.PathLike[str] | Disk,
    good: str,
    bad: str | None = None,
    through: Sequence[str] = (),
    patches: Sequence[str | os.PathLike[str]] = (),
    scheduler: str | SchedulerSpec = "mq-deadline",
    times: bool = False,
    seed: int = 1,
    until: str | None = None,
    host: Mapping[str, int] | None = None,
    listener: Listener = SILENT,
) -> Bisected:
    """Find the first kernel, or the first patch of a series, whose requests are not `good`'s.

    Guests run in virtual time and repeat exactly, so that a single other request is a change of
    behaviour. Between two kernels that differ the search halves the list: the kernels before the
    first other one are taken to be like `good`.

    Args:
        job: a fio job or a recording, run by blklab's own driver.
        disk, scheduler, seed, host: as of `explain`.
        good: a kernel of `list_kernels`; with `patches` a source as of `build_kernel`.
        bad: a kernel of `list_kernels`; not with `patches`.
        through: the kernels between them, in order. None: all built kernels without changes whose
            version is between theirs.
        patches: a series for `good`, in order; a prefix is built when the search needs it.
        times: also requests at another time are other ones.
        until: the end of the compared part: ``2s``. None is the run's end.

    Raises:
        blklab.errors.InputError: bad input: nothing has run.
        blklab.errors.RunError: a run or a build failed.
    """
    entry = specs.workload(job)
    if patches and (bad is not None or through):
        raise InputError("--patch: the series ends with its last patch; omit --bad and --through")
    steps = _series(good, patches, listener) if patches else _kernels(good, bad, through)

    def timeline(step: Step) -> Timeline:
        return explain(
            entry,
            disk=disk,
            scheduler=scheduler,
            until=until,
            requests=window.KEPT,
            seed=seed,
            host=host,
            rig=RigSpec("kernel", kernel=step.kernel(), driver="native"),
        )

    found = search(steps, timeline, times=times)
    reference = found.reference
    return Bisected(
        entry.name,
        reference.disk,
        reference.scheduler,
        tuple(step.label for step in steps),
        found.same,
        found.first,
        found.last_same,
        found.difference,
        len(reference.requests),
        reference.requests_left_out,
    )


@dataclass(frozen=True)
class Found:
    """What `search` found: see `Bisected`."""

    reference: Timeline
    same: Mapping[str, bool]
    first: str | None
    last_same: str
    difference: Difference | None


def search(steps: Sequence[Step], run: Callable[[Step], Timeline], *, times: bool) -> Found:
    """Halve `steps` to the first that differs from step 0; the difference is to the step before
    it, which may itself have other times than step 0."""
    reference = run(steps[0])
    same = {steps[0].label: True}
    runs = {0: reference}

    def differs(at: int) -> bool:
        runs[at] = run(steps[at])
        differing = first_difference(reference, runs[at], times=times) is not None
        same[steps[at].label] = not differing
        return differing

    low, high = 0, len(steps) - 1
    if not differs(high):
        return Found(reference, same, None, steps[high].label, None)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if differs(middle) else (middle, high)
    difference = first_difference(runs[low], runs[high], times=times)
    return Found(reference, same, steps[high].label, steps[low].label, difference)


def _series(good: str, patches: Sequence[str | os.PathLike[str]], listener: Listener) -> list[Step]:
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
    return steps + [Step(name, built(number)) for number, name in enumerate(names, 1)]


def _kernels(good: str, bad: str | None, through: Sequence[str]) -> list[Step]:
    """The kernels from `good` to `bad`."""
    if bad is None:
        raise InputError("--bad: expected a kernel, or with --patch a series of patches")
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
    return [Step(label, partial(str, key)) for label, key in named]


def _numbers(version: str) -> tuple[int, ...]:
    """``7.3.4``, ``7.4-rc1`` and so on as numbers, to be compared."""
    parts = version.split("-", maxsplit=1)[0].split(".")
    return tuple(int(part) if part.isdigit() else 0 for part in parts)
