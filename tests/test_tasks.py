"""Tasks as plain data: bytes hold a whole run, and a hash identifies it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import fields, is_dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from blklab.base.catalogue import Entry
from blklab.domain import specs
from blklab.domain.comparison import Setup, plan
from blklab.domain.events import Nowhere
from blklab.domain.experiment import Disk, Experiment, RigSpec, SchedulerSpec, Window
from blklab.domain.result import Result
from blklab.domain.task import Task
from blklab.errors import InputError
from blklab.execute import Ended, Failed, Local, carried_out, carry_out
from blklab.rigs import rig as rig_of
from blklab.rigs.kernel import cache
from tests import real_kernel

JOB = "[a]\nrw=randread\ndirect=1\nsize=1m\n"

texts = st.text(max_size=8)
words = st.text("abcdefgh", min_size=1, max_size=6)
numbers = st.integers(0, 2**62)
alone = st.builds(Entry, texts, st.just(Path("/somewhere/x.fio")), texts)
beside = st.lists(alone, max_size=2).map(tuple)
entries = st.builds(Entry, texts, st.just(Path("/somewhere/x.fio")), texts, beside=beside)
pairs = st.lists(st.tuples(words, words), max_size=3, unique_by=lambda pair: pair[0]).map(tuple)
schedulers = st.builds(SchedulerSpec, words, pairs, st.none() | words)
windows = st.none() | st.builds(Window, numbers, numbers, numbers)
experiments = st.builds(
    Experiment,
    entries.filter(lambda job: "${" not in job.text and "include" not in job.text),
    st.builds(Disk, entries, pairs),
    schedulers,
    numbers,
    st.dictionaries(words, numbers, max_size=3),
    st.booleans(),
    windows,
)
rigs = st.builds(
    RigSpec,
    st.sampled_from(["sim", "kernel", "live"]),
    *[st.none() | words] * 3,
    st.booleans(),
    st.none() | words,
    *[st.booleans()] * 3,
)
# The machine may be busy.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
tasks = st.builds(Task, rigs, experiments, st.sampled_from(["figures", "result"]), numbers)


@unhurried
@given(tasks)
def test_bytes_hold_all_of_a_task(task: Task) -> None:
    again = Task.from_bytes(task.to_bytes())
    assert again == task
    assert again.content_hash == task.content_hash
    assert again.to_bytes() == task.to_bytes()


@unhurried
@given(tasks, tasks)
def test_two_tasks_have_the_same_hash_only_if_they_are_the_same(one: Task, other: Task) -> None:
    assert (one.content_hash == other.content_hash) == (one == other)


def changes(value: Any, *, is_beside: bool = False) -> list[Any]:
    """The task with one input changed, for each input; the path of a file is not an input."""
    if is_dataclass(value) and not isinstance(value, type):
        return [
            replace(value, **{field.name: changed})
            for field in fields(value)
            if field.name != "in_core"
            for changed in changes(getattr(value, field.name), is_beside=field.name == "beside")
        ]
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1]
    if isinstance(value, str):
        return [f"{value}x"]
    if isinstance(value, tuple):
        more = value[0] if value and isinstance(value[0], Entry) else ("k", "v")
        longer = [(*value, more)] if value or not is_beside else [(Entry("k", Path("k"), "v"),)]
        return longer + [(*value[:n], changed, *value[n + 1 :])
                         for n, one in enumerate(value) for changed in changes(one)]  # fmt: skip
    if isinstance(value, dict):
        return [value | {"zz": 1}, *(value | {key: one + 1} for key, one in value.items())]
    return [] if isinstance(value, Path) else ["something"]


@unhurried
@given(tasks)
def test_each_change_of_an_input_changes_the_hash(task: Task) -> None:
    every = [task, *changes(task)]
    assert len(every) > 20
    assert len({one.content_hash for one in every}) == len(every)


def of_sim(**changed: Any) -> Task:
    experiment = Experiment(
        Entry("a", Path("a.fio"), JOB), Disk(Entry("d", Path("d.toml"), "kind = 1\n")),
        SchedulerSpec("bfq", (("slice_idle", "0"),)), 7, {"cpus": 2, "hz": 100},
    )  # fmt: skip
    return replace(Task(RigSpec("sim"), experiment), **changed)


GOLDEN = "e6edc38350577b65e7eb7bce1cf42e11076ac58e76ccb82e5f522a599dc1e64d"
"""The hash of `of_sim`. If a change of blklab alters it, stored hashes name other runs from then
on: state that in the commit."""


def test_the_hash_of_a_task_is_the_same_on_every_machine() -> None:
    assert of_sim().content_hash == GOLDEN


def test_it_is_the_same_in_another_process_and_in_another_order() -> None:
    code = (
        "import sys; from blklab.domain.task import Task;"
        "print(Task.from_bytes(sys.stdin.buffer.read()).content_hash)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=of_sim().to_bytes(), capture_output=True, check=True
    )
    assert done.stdout.decode().strip() == GOLDEN
    turned = replace(of_sim().experiment, host={"hz": 100, "cpus": 2})
    assert of_sim(experiment=turned).content_hash == GOLDEN


def test_where_a_file_lies_is_no_input() -> None:
    job = replace(of_sim().experiment.job, path=Path("/elsewhere/a.fio"))
    moved = of_sim(experiment=replace(of_sim().experiment, job=job))
    assert moved.content_hash == GOLDEN and moved.to_bytes() != of_sim().to_bytes()


def test_a_job_with_references_is_refused_where_their_content_differs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("BLKLAB_TEST_SIZE", "1m")
    (tmp_path / "more.fio").write_text("direct=1\n")
    text = "[a]\nrw=read\nsize=${BLKLAB_TEST_SIZE}\ninclude more.fio\n"
    job = Entry("a", tmp_path / "a.fio", text)
    task = of_sim(experiment=replace(of_sim().experiment, job=job))
    before, content = task.content_hash, task.to_bytes()
    assert Task.from_bytes(content) == task
    monkeypatch.setenv("BLKLAB_TEST_SIZE", "2m")
    assert task.content_hash != before
    with pytest.raises(InputError, match="a: the job file expands differently on this machine"):
        Task.from_bytes(content)
    monkeypatch.setenv("BLKLAB_TEST_SIZE", "1m")
    assert Task.from_bytes(content) == task
    (tmp_path / "more.fio").write_text("direct=0\n")
    assert task.content_hash != before
    with pytest.raises(InputError, match="expands differently"):
        Task.from_bytes(content)


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"{}", b"\xff", b'{"outside": ""}', of_sim().to_bytes()[:-1],
     of_sim().to_bytes().replace(b'"seed":7', b'"seed":"7"'),
     of_sim().to_bytes().replace(b'"figures"', b'"all"')],
)  # fmt: skip
def test_bytes_that_are_no_task_are_refused_in_one_line(content: bytes) -> None:
    with pytest.raises(InputError, match="not a task of blklab's: ") as found:
        Task.from_bytes(content)
    assert "\n" not in str(found.value)


def worker(number: int, content: bytes) -> Ended:
    """Runs the task in a process that has only the bytes."""
    return carried_out(Task.from_bytes(content), number=number)


class Elsewhere:
    """Runs each task in a fresh process."""

    def run(
        self,
        tasks: Sequence[Task],
        ended: Callable[[Sequence[Ended]], None],
        failed: Callable[[Failed], None] | None = None,
    ) -> None:
        assert failed is None, "a comparison ends with the first failure"
        contents = [json.loads(task.to_bytes()) for task in tasks]
        assert all(isinstance(content, dict) for content in contents)
        spawn = get_context("spawn")
        with ProcessPoolExecutor(2, spawn, max_tasks_per_child=1) as pool:
            running = [pool.submit(worker, *one) for one in
                       enumerate(task.to_bytes() for task in tasks)]  # fmt: skip
            for one in as_completed(running):
                ended([one.result()])


def question() -> Setup:
    return Setup(
        (specs.disk("950pro-256gb"),),
        (Entry("small", Path("small.fio"), JOB),),
        (SchedulerSpec("none"), specs.scheduler("mq-deadline:fifo_batch=1")),
        2,
        3,
    )


def test_a_process_that_has_only_the_bytes_measures_the_same() -> None:
    sim = rig_of("sim")
    runs = plan(question())
    here = carry_out(runs, sim, Local(2, sim), lambda _: None, Nowhere(""))
    elsewhere = carry_out(runs, sim, Elsewhere(), lambda _: None, Nowhere(""))
    assert elsewhere == here
    assert [one.scheduler for one in here[::2]] == ["none", "mq-deadline:fifo_batch=1"]


def test_whole_results_come_back_too() -> None:
    [planned, *_] = plan(question())
    task = Task(RigSpec("sim"), planned.experiment, "result")
    found: list[Ended] = []
    Elsewhere().run([task], found.extend)
    there, here = found[0].found, carried_out(task).found
    assert isinstance(there, Result) and isinstance(here, Result)
    assert (there.disk, there.duration_ns) == (here.disk, here.duration_ns)
    assert there.overview.sector.tolist() == here.overview.sector.tolist()


def test_a_kernel_is_named_by_its_key() -> None:
    key = real_kernel.image().parent.name
    [name, *_] = cache.find(key).names
    experiment = replace(of_sim().experiment, scheduler=SchedulerSpec("kyber", (), name))
    rig = rig_of(RigSpec("kernel", kernel=name, driver="native"))
    spec, alone = rig.alone(experiment)
    assert (spec.name, spec.driver, spec.kernel) == ("kernel", "native", key)
    assert alone == replace(experiment, scheduler=SchedulerSpec("kyber", (), key))
    assert rig_of(spec).spec == spec
