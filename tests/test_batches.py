"""The batches in which tasks are sent to a cluster."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from blklab.base.catalogue import Entry
from blklab.domain.experiment import Disk, Experiment, RigSpec, SchedulerSpec
from blklab.domain.task import Task
from blklab.execute.cluster.batches import BATCH_S, Batches, Numbered

THREADS = 8


def task(scheduler: str, seed: int = 0) -> Task:
    job, disk = (Entry(name, Path(name), "") for name in ("job", "disk"))
    return Task(RigSpec("sim"), Experiment(job, Disk(disk), SchedulerSpec(scheduler), seed))


def plan(*schedulers: str) -> list[Numbered]:
    return list(enumerate(task(name, number) for number, name in enumerate(schedulers)))


def test_before_any_time_is_known_a_batch_is_one_run_of_each_kind() -> None:
    batches = Batches(iter(plan("none", "none", "bfq", "bfq", "kyber")))
    sent = [batches.next(THREADS) for _ in range(3)]
    names = [[one.experiment.scheduler.name for _, one in batch] for batch in sent]
    assert names == [["none"], ["bfq"], ["kyber"]]


def test_a_batch_has_about_a_second_of_runs() -> None:
    batches = Batches(iter(plan(*["none"] * 10_000)))
    batches.ended(task("none"), 0.03125)
    assert len(batches.next(THREADS)) == BATCH_S / 0.03125


def test_a_run_longer_than_a_batch_is_a_batch() -> None:
    batches = Batches(iter(plan(*["none"] * 100)))
    batches.ended(task("none"), 30.0)
    assert len(batches.next(THREADS)) == 1


def test_kinds_with_the_longest_runs_go_first() -> None:
    batches = Batches(iter(plan("none", "bfq", "kyber", "none", "bfq", "kyber")))
    for name, seconds in (("none", 1.0), ("bfq", 3.0), ("kyber", 2.0)):
        batches.ended(task(name), seconds)
    names = []
    while batches:
        names += [one.experiment.scheduler.name for _, one in batches.next(1)]
    assert names == ["bfq", "bfq", "kyber", "kyber", "none", "none"]


def test_the_last_batches_are_small_enough_for_all_threads() -> None:
    batches = Batches(iter(plan(*["none"] * 80)))
    batches.ended(task("none"), 0.1)
    sizes = []
    while batches:
        sizes.append(len(batches.next(THREADS)))
    assert sum(sizes) == 80
    assert max(sizes) <= 5, "8 s of work, 8 threads, two batches for each"
    assert sizes == sorted(sizes, reverse=True)


def test_each_task_is_sent_once_and_again_only_if_it_comes_back() -> None:
    every = plan(*["none", "bfq"] * 50)
    batches = Batches(iter(every))
    back = batches.next(THREADS)
    batches.ended(task("none"), 0.01)
    batches.back(back)
    found = []
    while batches:
        found += batches.next(THREADS)
    assert sorted(number for number, _ in found) == list(range(100))
    assert dict(found) == dict(every)


def test_a_long_plan_is_taken_in_parts() -> None:
    taken = 0

    def endless() -> object:
        nonlocal taken
        one = task("none")
        while True:
            taken += 1
            yield taken, replace(one, repeat=taken)

    batches = Batches(endless())  # type: ignore[arg-type]
    batches.ended(task("none"), 0.02)
    for _ in range(100):
        batches.next(THREADS)
    assert taken < 20_000
