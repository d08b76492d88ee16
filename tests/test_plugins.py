"""Schedulers from WebAssembly files: the requests of built-in ones, their identity, errors."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

import blklab
from blklab.base.catalogue import Entry
from blklab.domain import plugins, scheduler, specs
from blklab.domain.experiment import Disk, Experiment, RigSpec, SchedulerSpec
from blklab.domain.space import spaces
from blklab.domain.task import Task
from blklab.errors import InputError
from blklab.execute import KeptRun, carried_out
from blklab.execute.identity import key_of
from tests.plugins import ROOT, built, example, of_tests

JOB = """[global]
direct=1
size=64m
runtime=2
time_based
[readers]
rw=randread
numjobs=3
ioengine=libaio
iodepth=8
[writer]
rw=write
bs=16k
ioengine=libaio
iodepth=32
[buffered]
rw=randwrite
direct=0
fsync=8
"""

BEGIN = bytes([0, 0x61, 0x73, 0x6D, 1, 0, 0, 0])
"""The beginning of each file of WebAssembly; alone it is an empty module."""


@pytest.fixture(autouse=True)
def _no_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test begins without names of plug-ins."""
    monkeypatch.setattr(plugins, "_names", {})


def same(one: blklab.Result, other: blklab.Result) -> bool:
    """All requests of both are the same, and all figures."""
    pairs = zip(vars(one.overview).values(), vars(other.overview).values(), strict=True)
    return (
        str(one) == str(other)
        and one.disk == other.disk
        and all(np.array_equal(np.asarray(mine), np.asarray(its)) for mine, its in pairs)
    )


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("noop", ""),
        ("noop", ":nr_requests=16"),
        ("deadline", ""),
        ("deadline", ":fifo_batch=2,write_expire=50,writes_starved=1"),
        ("deadline", ":front_merges=0,nr_requests=16"),
    ],
)
@pytest.mark.parametrize("disk", ["wd10ezrx", "su800-128gb"])
def test_a_plugin_of_the_same_algorithm_makes_the_same_requests(
    name: str, settings: str, disk: str
) -> None:
    spec = blklab.load_plugin(of_tests(name))
    assert spec.name == f"plugin-{name}" and spec.plugin is not None
    for seed in (1, 2):
        built_in = blklab.simulate(JOB, disk=disk, scheduler=name + settings, seed=seed)
        plugin = blklab.simulate(JOB, disk=disk, scheduler=spec.name + settings, seed=seed)
        assert built_in.disk.read_ios > 100
        assert same(built_in, plugin)


def test_another_algorithm_makes_other_requests() -> None:
    spec = blklab.load_plugin(example())
    noop = blklab.simulate(JOB, disk="wd10ezrx", scheduler="noop")
    assert not same(noop, blklab.simulate(JOB, disk="wd10ezrx", scheduler=spec))


def test_the_example_is_the_scheduler_that_contributing_adds_to_the_tree() -> None:
    """Its decision, line for line: what differs is the frame."""
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    plugin = (ROOT / "examples/sstf-plugin/src/lib.rs").read_text(encoding="utf-8")
    body = re.compile(r"    fn dispatch\(.*?\n    }\n", re.DOTALL)
    [in_tree], [here] = body.findall(contributing), body.findall(plugin)
    assert in_tree == here


def test_a_plugin_has_tunables_as_other_schedulers() -> None:
    spec = blklab.load_plugin(example())
    model = blklab.find_scheduler("my-sstf:max_wait=7")
    [row] = model.tunables
    assert (row.name, row.value, row.default, row.unit) == ("max_wait", 7, 500, "ms")
    assert "my-sstf" in blklab.names("scheduler")
    assert [one.name for one in blklab.list_schedulers()][-1] == "my-sstf"
    with pytest.raises(
        InputError, match=r"my-sstf has no tunable 'max_wit'; did you mean 'max_wait'"
    ):
        blklab.find_scheduler("my-sstf:max_wit=7")
    with pytest.raises(
        InputError, match=r"my-sstf:max_wait: -1 is out of range \(0 to 3600000 ms\)"
    ):
        blklab.simulate(JOB, disk="wd10ezrx", scheduler="my-sstf:max_wait=-1")
    fifo = blklab.simulate(JOB, disk="wd10ezrx", scheduler="my-sstf:max_wait=0")
    assert not same(fifo, blklab.simulate(JOB, disk="wd10ezrx", scheduler=spec))


def test_a_search_tries_its_tunables() -> None:
    spec = blklab.load_plugin(example())
    [space] = spaces([spec])
    assert "max_wait" in {knob.name for knob in space.knobs}
    assert all(one.plugin == spec.plugin for one in space.only(["max_wait"]).all())


def task(spec: SchedulerSpec) -> Task:
    """A run of the job under this scheduler."""
    disk = Disk(specs.disk("wd10ezrx").file)
    return Task(RigSpec("sim"), Experiment(Entry("job", Path("job.fio"), JOB), disk, spec, 1))


def test_the_content_of_a_plugin_is_a_part_of_a_runs_key_and_of_its_bytes() -> None:
    content = example().read_bytes()
    spec = blklab.load_plugin(example())
    assert spec.plugin == sha256(content).hexdigest()
    # Another content, of the same behaviour: a section that is not read.
    plugins.load_content(content + b"\0\x02\x01x", "other.wasm")
    other = specs.scheduler("my-sstf")
    assert other != spec
    assert key_of(task(other)) != key_of(task(spec))
    # Equal inputs have equal keys; a run without a plug-in has the key that it had before.
    assert key_of(task(replace(spec))) == key_of(task(spec))
    sent = task(spec).to_bytes()
    script = (
        "import sys; from blklab.domain.task import Task; from blklab.execute import carried_out;"
        "task = Task.from_bytes(sys.stdin.buffer.read());"
        "print(repr(carried_out(task).found.measurement))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], input=sent, capture_output=True, check=False
    )
    assert ran.returncode == 0, ran.stderr.decode()
    here = carried_out(task(spec)).found
    assert isinstance(here, KeptRun)
    assert ran.stdout.decode().strip() == repr(here.measurement)


def test_other_bytes_than_those_of_the_hash_are_refused() -> None:
    document = json.loads(task(blklab.load_plugin(example())).to_bytes())
    document["experiment"]["scheduler"]["plugin"] = "0" * 64
    with pytest.raises(
        InputError, match="plug-in 000000000000: its content is not that of its hash"
    ):
        Task.from_bytes(json.dumps(document).encode())


def test_a_plugin_that_is_not_loaded_is_named() -> None:
    spec = SchedulerSpec("my-sstf", plugin="1" * 64)
    with pytest.raises(InputError, match=r"plug-in 111111111111 is not loaded; expected --plugin"):
        blklab.simulate(JOB, disk="wd10ezrx", scheduler=spec)


def test_other_rigs_refuse_a_plugin_in_one_line() -> None:
    blklab.load_plugin(example())
    with pytest.raises(InputError, match="scheduler 'my-sstf' is a plug-in; expected --rig sim"):
        scheduler.parse("my-sstf")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "is not WebAssembly; expected a file built for wasm32-unknown-unknown"),
        (b"#!/bin/sh\n", "is not WebAssembly; expected a file built for wasm32-unknown-unknown"),
        (BEGIN[:6], "is no valid WebAssembly: "),
        (BEGIN, "is no plug-in of blklab: it has no memory of the name 'memory'"),
    ],
)
def test_a_file_that_is_no_plugin_is_one_line(content: bytes, told: str, tmp_path: Path) -> None:
    file = tmp_path / "wrong.wasm"
    file.write_bytes(content)
    with pytest.raises(InputError) as error:
        blklab.load_plugin(file)
    assert str(error.value).startswith(f"plug-in {file}: {told}")
    assert len(str(error.value).splitlines()) == 1


def test_commands_take_a_plugin(tmp_path: Path) -> None:
    file = example()
    job = tmp_path / "job.fio"
    job.write_text(JOB, encoding="utf-8")

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "blklab", *words],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )

    plugin = ["--plugin", str(file), "--scheduler", "my-sstf:max_wait=50"]
    ran = run("fio", str(job), "--disk", "wd10ezrx", "--no-keep", *plugin)
    assert ran.returncode == 0 and "IOPS=" in ran.stdout, ran.stderr
    ran = run("explain", str(job), "--disk", "wd10ezrx", "--until", "50ms", *plugin)
    assert ran.returncode == 0 and "my-sstf:max_wait=50" in ran.stdout, ran.stderr
    both = [*plugin, "--scheduler", "noop", "--repeats", "2", "--no-keep"]
    ran = run("compare", "--workload", str(job), "--disk", "wd10ezrx", *both)
    assert ran.returncode == 0 and "my-sstf:max_wait=50" in ran.stdout, ran.stderr
    told = json.loads((tmp_path / "reports/compare/results.json").read_text(encoding="utf-8"))
    assert sha256(file.read_bytes()).hexdigest()[:12] in json.dumps(told)
    ran = run("schedulers", "my-sstf", "--plugin", str(file))
    assert ran.returncode == 0 and "max_wait = 500 ms" in ran.stdout
    for words in (
        ["fio", str(job), "--disk", "wd10ezrx", "--plugin", "none.wasm"],
        ["fio", str(job), "--disk", "wd10ezrx", "--plugin", str(job)],
        ["fio", str(job), "--disk", "wd10ezrx", "--rig", "kernel", *plugin],
    ):
        ran = run(*words)
        assert ran.returncode != 0
        assert len(ran.stderr.strip().splitlines()) == 1, ran.stderr


def in_words(where: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command of its own."""
    return subprocess.run(
        [sys.executable, "-m", "blklab", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=where,
    )


def test_workers_of_a_cluster_run_a_plugin_with_the_same_figures(tmp_path: Path) -> None:
    file = example()
    job = tmp_path / "job.fio"
    job.write_text(JOB, encoding="utf-8")
    words = ["compare", "--workload", str(job), "--disk", "wd10ezrx", "--repeats", "2"]
    words += ["--scheduler", "my-sstf", "--scheduler", "noop", "--plugin", str(file), "--no-keep"]
    figures = []
    for place in ("local", "local:2"):
        ran = in_words(tmp_path, *words, "--on", place, "--out", place.replace(":", "-"))
        assert ran.returncode == 0, ran.stderr
        document = tmp_path / place.replace(":", "-") / "results.json"
        told = json.loads(document.read_text(encoding="utf-8"))
        figures.append(sorted(json.dumps(run, sort_keys=True) for run in told["runs"]))
    assert len(figures[0]) == 4 and figures[0] == figures[1]


def test_a_study_and_a_recorded_load_take_a_plugin(tmp_path: Path) -> None:
    file = example()
    (tmp_path / "job.fio").write_text(JOB, encoding="utf-8")
    (tmp_path / "mine.toml").write_text(
        'title = "t"\nquestion = "q?"\nrepeats = 2\n[[part]]\nname = "one"\n'
        'disks = ["wd10ezrx"]\nworkloads = ["job.fio"]\nschedulers = ["my-sstf", "noop"]\n',
        encoding="utf-8",
    )
    plugin = ["--plugin", str(file)]
    ran = in_words(tmp_path, "run", "mine.toml", *plugin, "--no-keep")
    assert ran.returncode == 0 and "my-sstf" in ran.stdout, ran.stderr
    ran = in_words(tmp_path, "run", "mine.toml", "--no-keep")
    assert ran.returncode == 2 and "no scheduler 'my-sstf'" in ran.stderr
    blklab.record_run(str(tmp_path / "job.fio"), str(tmp_path / "load.rec"), disk="wd10ezrx")
    ran = in_words(tmp_path, "whatif", "load.rec", "--disk", "wd10ezrx", *plugin,
                   "--scheduler", "my-sstf", "--scheduler", "noop")  # fmt: skip
    assert ran.returncode == 0 and "my-sstf" in ran.stdout, ran.stderr


def test_an_interrupted_comparison_needs_the_same_plugin_to_go_on(tmp_path: Path) -> None:
    file = example()
    job = tmp_path / "job.fio"
    job.write_text(JOB, encoding="utf-8")
    store = ["--store", str(tmp_path / "s.db")]
    begun = """
import contextlib, blklab
class Stops(blklab.Listener):
    @contextlib.contextmanager
    def runs(self, total, what):
        count = 0
        def ended(_):
            nonlocal count
            count += 1
            if count == 2:
                raise KeyboardInterrupt
        yield ended
blklab.load_plugin(%r)
try:
    blklab.compare(disks=["wd10ezrx"], workloads=[%r], schedulers=["my-sstf"], repeats=6,
                   keep=True, store=%r, max_parallel=1, listener=Stops())
except blklab.StoppedError:
    print("stopped")
"""
    script = begun % (str(file), str(job), str(tmp_path / "s.db"))
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert ran.stdout == "stopped\n", ran.stderr
    ran = in_words(tmp_path, "compare", "--resume", *store)
    assert ran.returncode == 2
    assert ran.stderr.startswith("blklab: plug-in ") and "expected --plugin FILE" in ran.stderr
    assert len(ran.stderr.strip().splitlines()) == 1, ran.stderr
    ran = in_words(tmp_path, "compare", "--resume", "--plugin", str(file), *store)
    assert ran.returncode == 0 and "my-sstf" in ran.stdout, ran.stderr


PANICS = """
use blklab_plugin::{Generation, Info, Limits, Merges, Queue, RequestId, Scheduler, Settings};

struct Panics;

impl Scheduler for Panics {
    const INFO: Info = Info {
        name: "panics",
        generation: Generation::MultiQueue,
        summary: "it ends",
        follows: "nothing",
        lock_ns: 0,
        merges: Merges::Never,
        tunables: &[],
    };

    fn new(_: &Settings, _: &Limits) -> Self {
        Panics
    }

    fn insert(&mut self, _: &Queue<'_>, id: RequestId) {
        assert!(id.0 > 1000, "request {} is too small", id.0);
    }

    fn dispatch(&mut self, _: &Queue<'_>, _: u16) -> Option<RequestId> {
        None
    }

    fn requests_merged(&mut self, _: &Queue<'_>, _: RequestId, _: RequestId) {}
}

blklab_plugin::plugin!(Panics);
"""


def test_a_panic_is_shown_with_its_place_in_the_file(tmp_path: Path) -> None:
    of_tests("noop")  # Skips where there is no compiler.
    crate = tmp_path / "panics-plugin"
    (crate / "src").mkdir(parents=True)
    cargo = (ROOT / "examples/sstf-plugin/Cargo.toml").read_text(encoding="utf-8")
    cargo = cargo.replace("sstf-plugin", "panics-plugin").replace("../../crates", f"{ROOT}/crates")
    (crate / "Cargo.toml").write_text(cargo, encoding="utf-8")
    (crate / "src/lib.rs").write_text(PANICS, encoding="utf-8")
    blklab.load_plugin(built(crate))
    with pytest.raises(blklab.RunError) as error:
        blklab.simulate(JOB, disk="wd10ezrx", scheduler="panics")
    told = str(error.value)
    assert re.fullmatch(
        r"plug-in panics, at .* of virtual time: panicked at src/lib.rs:\d+:\d+: +"
        "request 0 is too small",
        told,
    ), told
