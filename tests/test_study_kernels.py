"""Studies on kernels of their own: which scheduler runs on which, and the real thing."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest
from typer.testing import CliRunner

from blklab import studies
from blklab import study as study_files
from blklab.base.catalogue import Entry
from blklab.base.steps import Steps
from blklab.cli import app
from blklab.domain import core, scheduler, specs
from blklab.domain.conditions import RigData
from blklab.domain.experiment import Experiment, RigSpec, SchedulerSpec
from blklab.domain.result import Result
from blklab.errors import InputError
from blklab.rigs.kernel import cache, tools
from blklab.rigs.kernel.build import Built
from blklab.rigs.modelled import ModelledDisks
from blklab.study import kernels
from blklab.study.kernels import KernelsRig, OwnKernel, needed
from blklab.study.model import Kernel
from blklab.study.plan import Asked, plan
from tests import real_kernel

TEXT = """\
title = "t"
question = "q?"
rigs = ["kernel"]
repeats = 1
[[kernel]]
name = "unused"
[[kernel]]
name = "slow"
patches = ["PATCH"]
late_disk = "it waits"
[[part]]
name = "p"
disks = ["pm983-960gb"]
workloads = ["hdparm-buffered"]
schedulers = ["bfq", "kyber@slow", "none@slow"]
host = { memory_kb = 524288 }
[[part.claim]]
kind = "figures"
text = "ten requests a second, of 2 MiB each, as hdparm reads them"
metric = "mib_s"
tolerance_percent = 10
values = { "kyber@slow" = 20 }
"""
PATCH = studies.STUDIES.packaged / "itmo-2024/kyber-mdelay.patch"


class Recorded(ModelledDisks):
    """A fake rig: records its runs, and whether it was cancelled."""

    name = "kernel"
    spec = RigSpec("kernel")

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.cancelled = threading.Event()

    def run(self, experiment: Experiment) -> Result:
        self.ran.append(experiment.scheduler.label)
        raise InputError("no more is needed")

    def cancel(self) -> None:
        self.cancelled.set()

    def describe(self) -> RigData:
        return {"text": "Linux"}

    def check_host(self, changed: Mapping[str, int]) -> dict[str, int]:
        return core.check_host(changed)

    def check_scheduler(self, spec: SchedulerSpec) -> scheduler.Scheduler:
        return scheduler.Scheduler(spec.label, {}, {})

    def position(self) -> tuple[float, float | None]:
        return 0.0, None


def order(name: str, summary: str = "", late_disk: str = "") -> Kernel:
    return Kernel(name, summary, None, (), (), (), late_disk)


def test_the_name_after_an_at_sign_is_the_kernel() -> None:
    spec = specs.scheduler("kyber:read_lat_nsec=1@slow")
    assert spec == SchedulerSpec("kyber", (("read_lat_nsec", "1"),), "slow")
    assert (spec.text, spec.label) == ("kyber:read_lat_nsec=1", "kyber:read_lat_nsec=1@slow")
    assert specs.scheduler("kyber") == SchedulerSpec("kyber")


def test_each_experiment_goes_to_its_schedulers_kernel() -> None:
    rigs = {"default": Recorded(), "slow": Recorded()}
    rig = KernelsRig({name: OwnKernel(order(name), made) for name, made in rigs.items()})
    job = Entry("j", Path("j.fio"), "")
    for spec in ("none", "kyber:read_lat_nsec=1@slow"):
        with pytest.raises(InputError):
            rig.run(Experiment(job, specs.disk("950pro-256gb"), specs.scheduler(spec), 1))
    assert rigs["default"].ran == ["none"]
    assert rigs["slow"].ran == ["kyber:read_lat_nsec=1"]
    assert rig.check_scheduler(specs.scheduler("kyber@slow")).name == "kyber"
    rig.cancel()
    assert all(made.cancelled.is_set() for made in rigs.values())


def test_a_kernel_with_options_alone_leaves_blklabs_own_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str | None] = []

    def build(_: object, __: object, name: str | None = None, **___: object) -> Built:
        names.append(None if name is None else cache.checked_name(name))
        return Built(cast(cache.Kernel, None), fresh=False)

    monkeypatch.setattr(kernels, "build", build)
    text = TEXT.replace('name = "unused"', 'name = "servers"\nconfig = ["NFSD=y"]')
    file = tmp_path / "my own.toml"
    file.write_text(text.replace('name = "p"', 'name = "p"\nkernel = "servers"'))
    study = study_files.find(file)
    kernels.build_all(study, plan(study, Asked("kernel")), Steps())
    assert names == ["my-own-servers", None]


def test_a_part_may_name_the_kernel_of_schedulers_that_name_none(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(TEXT.replace('name = "p"', 'name = "p"\nkernel = "unused"'))
    planned = plan(study_files.find(tmp_path / "s.toml"), Asked("kernel"))
    assert needed(planned) == ["unused", "slow"]
    rigs = {"unused": Recorded(), "slow": Recorded()}
    rig = KernelsRig({name: OwnKernel(order(name), made) for name, made in rigs.items()}, "unused")
    assert rig.default is rigs["unused"]
    job = Entry("j", Path("j.fio"), "")
    for spec in ("none", "kyber@slow"):
        with pytest.raises(InputError):
            rig.run(Experiment(job, specs.disk("950pro-256gb"), specs.scheduler(spec), 1))
    assert (rigs["unused"].ran, rigs["slow"].ran) == (["none"], ["kyber"])


def test_only_kernels_that_are_run_on_are_built(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(TEXT)
    planned = plan(study_files.find(tmp_path / "s.toml"), Asked("kernel"))
    assert needed(planned) == ["default", "slow"]
    shipped = study_files.find("itmo-2024")
    assert needed(plan(shipped, Asked("sim"))) == []
    modified = shipped.parts[-1]
    assert (modified.name, modified.rigs) == ("modified", ("kernel",))


def test_a_kernel_part_is_left_out_where_nothing_can_be_built(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tools, "missing", lambda: ["gcc", "flex"])
    left_out = [part for part in plan(study_files.find("itmo-2024")) if part.setup is None]
    assert [(part.part.name, part.skipped[0].why) for part in left_out] == [
        ("modified", "building a kernel needs gcc, flex")
    ]


def test_the_report_describes_each_kernel() -> None:
    slow = order("slow", "waits", "it holds the CPU")
    rig = KernelsRig(
        {"default": OwnKernel(order("default"), Recorded()), "slow": OwnKernel(slow, Recorded())}
    )
    told = rig.describe()
    assert told["text"] == (
        "default: Linux; slow (waits): Linux; its disk may be late: it holds the CPU"
    )
    assert [kernel["late_disk"] for kernel in told["kernels"]] == ["", "it holds the CPU"]


def written(tmp_path: Path, schedulers: str) -> Path:
    file = tmp_path / "s.toml"
    file.write_text(TEXT.replace('"bfq", ', schedulers))
    return file


def test_a_patched_kernel_may_have_schedulers_of_its_own(tmp_path: Path) -> None:
    planned = plan(study_files.find(written(tmp_path, '"mine:x=1@slow", ')), Asked("kernel"))
    assert planned[0].setup is not None
    assert planned[0].setup.schedulers[0].label == "mine:x=1@slow"
    for wrong, said in (
        ("mine", "no scheduler 'mine'"),
        # A kernel without changes has no schedulers of its own.
        ("kybr@unused", "no scheduler 'kybr'; did you mean 'kyber'"),
        ("bfq:low_latency@slow", "expected tunable=value"),
    ):
        with pytest.raises(InputError, match=f"s.toml:15: schedulers: .*{said}"):
            plan(study_files.find(written(tmp_path, f'"{wrong}", ')), Asked("kernel"))


def test_a_kernel_with_added_files_may_have_schedulers_of_its_own(tmp_path: Path) -> None:
    file = written(tmp_path, '"mine@slow", ')
    file.write_text(file.read_text().replace('patches = ["PATCH"]', 'add = ["mine.c"]'))
    study = study_files.find(file)
    assert study.kernels[1].added == ("mine.c",)
    [part] = plan(study, Asked("kernel"))
    assert part.setup is not None
    assert part.setup.schedulers[0].label == "mine@slow"


def test_schedulers_and_host_values_of_the_simulator_only_are_omitted(tmp_path: Path) -> None:
    file = written(tmp_path, '"noop", ')
    text = file.read_text().replace("memory_kb", "cpus = 6, kernel = 4012, memory_kb")
    file.write_text(text)
    [part] = plan(study_files.find(file), Asked("kernel"))
    assert part.setup is not None
    # The native driver's processes work on modelled CPUs.
    assert part.setup.host == {"memory_kb": 524288, "cpus": 6}
    lacking = ("noop", "the rig 'kernel' has no 'noop'")
    no_such = ("host kernel=4012", "a guest of the kernel rig has no such setting")
    assert [(skip.what, skip.why) for skip in part.skipped] == [lacking, no_such]
    # A program has none.
    file.write_text(text.replace('"hdparm-buffered"', '"sqlite:insertions=9"'))
    [part] = plan(study_files.find(file), Asked("kernel"))
    assert part.setup is not None
    assert part.setup.host == {"memory_kb": 524288}
    its_own = "a real program runs on the guest's own CPU and file system"
    assert [(skip.what, skip.why) for skip in part.skipped] == [
        lacking, ("host cpus=6", its_own), no_such
    ]  # fmt: skip


def test_async_depth_lies_with_the_queue_since_linux_7() -> None:
    chosen = scheduler.parse("mq-deadline:async_depth=8,fifo_batch=4")
    assert chosen.for_guest({"wbt_lat_usec": 0}, "6.12.107") == {
        "scheduler": "mq-deadline",
        "queue": {"wbt_lat_usec": 0},
        "iosched": {"async_depth": 8, "fifo_batch": 4},
    }
    assert chosen.for_guest({"wbt_lat_usec": 0}, "7.3.4") == {
        "scheduler": "mq-deadline",
        "queue": {"wbt_lat_usec": 0, "async_depth": 8},
        "iosched": {"fifo_batch": 4},
    }
    kyber = scheduler.parse("kyber:async_depth=8").for_guest({}, "7.3.4")
    assert (kyber["queue"], kyber["iosched"]) == ({"async_depth": "8"}, {})
    # The simulator's word for the kernel's choice is not written.
    told = scheduler.parse("mq-deadline:async_depth=0").for_guest({}, "7.3.4")
    assert (told["queue"], told["iosched"]) == ({}, {})


def test_nr_requests_is_written_before_async_depth_which_changes_with_it() -> None:
    both = scheduler.parse("mq-deadline:async_depth=8,nr_requests=64")
    assert both.for_guest({}, "6.12.107")["iosched"] == {"async_depth": 8}
    queue = both.for_guest({"wbt_lat_usec": 0}, "7.3.4")["queue"]
    assert next(iter(queue.items())) == ("nr_requests", 64)
    assert queue["async_depth"] == 8


def test_a_patched_kyber_changes_the_measured_figures(tmp_path: Path) -> None:
    """Its dispatch waits 100 ms, so that at most ten requests a second are possible."""
    real_kernel.image()
    (tmp_path / "s.toml").write_text(TEXT.replace("PATCH", str(PATCH)))
    arguments = ["run", str(tmp_path / "s.toml"), "--out", str(tmp_path / "out"), "--json"]
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    document = json.loads(done.stdout)
    [row] = document["judgements"]
    # At least 28 of 30 requests.
    assert 18.6 < row["measured"]["estimate"] <= 20
    assert row["outcome"] == "reproduced"
    results = json.loads((tmp_path / "out/p/results.json").read_text())
    kernels = results["setup"]["rig_setup"]["kernels"]
    assert [(row["name"], "kyber-mdelay.patch" in row["kernel"]["patches"]) for row in kernels] == [
        ("default", False),
        ("slow", True),
    ]
    rates = {run["scheduler"]: run["bytes_per_s"] for run in results["runs"]}
    assert rates["none@slow"] > 100 * rates["kyber@slow"]
    assert rates["bfq"] > 100 * rates["kyber@slow"]
    page = (tmp_path / "out/p/report.html").read_text()
    assert "its disk may be late: it waits" in page


def test_a_default_of_the_simulator_is_set_where_a_real_disk_may_have_another() -> None:
    asked = scheduler.parse("none:read_ahead_kb=128,nr_requests=0")
    assert asked.changed == {"read_ahead_kb": 128}
    assert scheduler.simulated("none:read_ahead_kb=128").changed == {"read_ahead_kb": 128}
