"""The application as functions: typed results, nothing printed, events to a listener."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import blklab
from blklab.cli.listening import error_text
from blklab.errors import InputError, Kept, RunError, StoppedError
from blklab.rigs.sim import SimRig
from tests import real_kernel

SMALL: dict[str, Any] = {
    "disks": ["950pro-256gb"],
    "workloads": ["randread"],
    "schedulers": ["none", "mq-deadline"],
    "repeats": 2,
}


class Heard(blklab.Listener):
    """Records its calls."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.numbers: list[str] = []

    def note(self, line: str) -> None:
        self.notes.append(line)

    def kept(self, numbers: Any, *, study: bool) -> None:
        self.numbers += numbers


def test_compare_returns_every_run_and_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    found = blklab.compare(**SMALL)
    assert [(row["scheduler"], row["repeat"]) for row in found.rows()] == [
        ("none", 0), ("none", 1), ("mq-deadline", 0), ("mq-deadline", 1)
    ]  # fmt: skip
    assert all(row["read_p99_ns"] > 0 and row["bytes_per_s"] > 0 for row in found.rows())
    assert found.to_pandas()["read_ios"].min() > 0
    assert found.summary()["cells"][0]["disk"] == "950pro-256gb"
    assert (found.kept, found.page) == (None, None)
    assert capsys.readouterr() == ("", "")


def test_the_function_writes_and_keeps_the_same_as_the_command(tmp_path: Path) -> None:
    heard, store = Heard(), str(tmp_path / "results.db")
    found = blklab.compare(**SMALL, out=tmp_path / "a", keep=True, store=store, listener=heard)
    assert found.page == tmp_path / "a/report.html"
    written = json.loads((tmp_path / "a/results.json").read_text())
    assert len(written["runs"]) == len(found.results.runs)
    assert heard.numbers == [str(found.kept)] == ["1"]
    again = blklab.resume(1, store=store, out=tmp_path / "b")
    assert again.rows() == found.rows()
    assert (tmp_path / "b/report.html").exists()


def test_an_interrupt_reports_the_stored_runs_and_resume_runs_only_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, began = str(tmp_path / "results.db"), []
    real = SimRig.run

    def stops_at_the_third(self: SimRig, experiment: Any) -> Any:
        began.append(experiment)
        if len(began) == 3:
            raise KeyboardInterrupt
        return real(self, experiment)

    monkeypatch.setattr(SimRig, "run", stops_at_the_third)
    with pytest.raises(StoppedError) as stopped:
        blklab.compare(**SMALL, keep=True, store=store, max_parallel=1)
    assert stopped.value.kept == Kept(("1",))
    assert str(stopped.value) == "interrupted"
    assert error_text(stopped.value).endswith("to continue: blklab compare --resume 1")
    found = blklab.resume(store=store, max_parallel=1)
    assert len(began) == 3 + 2
    monkeypatch.undo()
    assert found.rows() == blklab.compare(**SMALL).rows()


def test_each_kind_of_error_names_its_command() -> None:
    error = RunError("the disk was late")
    assert error_text(error) == "the disk was late"
    error.kept = Kept(("7", "8"), study=True, complete=True)
    assert error_text(error).endswith(": blklab run --resume 7 --out DIRECTORY")


def test_a_job_that_has_run_prints_as_fio_does(tmp_path: Path) -> None:
    job = tmp_path / "small.fio"
    job.write_text("[w]\nrw=write\nbs=4k\nsize=1M\n")
    ran = blklab.run_job(job, disk="950pro-256gb", scheduler="kyber")
    told = json.loads(ran.fio_output("json"))
    assert told["jobs"][0]["write"]["total_ios"] == ran.result.jobs[0].write.ios == 256
    with pytest.raises(InputError, match="no format 'yaml'"):
        ran.fio_output("yaml")


def test_explain_returns_the_requests_of_the_window_and_writes_the_page(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    timeline = blklab.explain(
        "readers-vs-writer", disk="wd10ezrx", scheduler="bfq", until="50ms", page_file=page
    )
    assert timeline.requests
    assert timeline.until_ns == 50_000_000
    assert page.exists()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: blklab.compare(objective="fast"), "--objective: no 'fast'"),  # type: ignore[arg-type]
        (lambda: blklab.compare(repeats=3, budget="10s"), "not with --budget"),
        (lambda: blklab.compare(rig=blklab.RigSpec("sim", driver="native")), "--driver"),
        (lambda: blklab.compare(rig="simm"), "--rig: no rig 'simm'"),
        (lambda: blklab.explain("sqlite", disk="wd10ezrx"), "is a real program"),
        (lambda: blklab.run_job("sqlite", disk="wd10ezrx"), "is not a fio job"),
        (lambda: blklab.run_study("bfq"), "bfq"),
        (lambda: blklab.verify(workloads=["nothing"]), "nothing"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_before_anything_runs(
    call: Any, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SimRig, "run", lambda *_: pytest.fail("it ran"))
    with pytest.raises(InputError, match=said) as found:
        call()
    assert "\n" not in str(found.value)


def test_a_listener_without_methods_of_its_own_is_enough() -> None:
    silent = blklab.Listener()
    silent.note("a")
    silent.kept(["1"], study=False)
    seen = []
    with silent.runs(3, "x") as ended, silent.run(SimRig()), silent.building() as steps:
        ended(SimpleNamespace())
        steps.note("b")
        seen.append("inside")
    with pytest.raises(RunError, match="a failed run"), silent.run(SimRig()):
        raise RunError("a failed run")
    assert seen == ["inside"]
    assert len(blklab.compare(**SMALL, listener=silent).rows()) == 4


@pytest.fixture
def kept(tmp_path: Path) -> str:
    """A store with two comparisons."""
    store = str(tmp_path / "results.db")
    for seed in (1, 5):
        blklab.compare(**SMALL, seed=seed, keep=True, store=store)
    return store


def test_stored_comparisons_are_listed_read_compared_and_removed(kept: str) -> None:
    assert [row.id for row in blklab.results(store=kept)] == [2, 1]
    assert blklab.results(store=kept, schedulers=["bfq"]) == []
    assert blklab.results(store=kept, since_="1h", disks=["950pro"])[0].rig == "sim"
    found = blklab.stored(1, store=kept)
    assert found.listed.kept == len(found.results.runs) == 4
    assert found.analysis.recommendations.keys() == {"950pro-256gb"}
    assert found.summary()["cells"]
    gap = blklab.difference([1], [2], store=kept)
    assert [pair.scheduler for pair in gap.pairs] == ["none", "mq-deadline"]
    assert blklab.remove_results([1], store=kept) == [1]
    assert [row.id for row in blklab.results(store=kept)] == [2]
    with pytest.raises(InputError, match="no comparison 1"):
        blklab.stored(1, store=kept)


def test_an_export_is_imported_once(kept: str, tmp_path: Path) -> None:
    file, other = tmp_path / "export.json", str(tmp_path / "other.db")
    content = blklab.export([1, 2], out=file, store=kept)
    assert file.read_bytes() == content
    assert blklab.import_results(file, store=other) == blklab.Imported((1, 2), ())
    assert blklab.import_results(file, store=other) == blklab.Imported((), (1, 2))
    assert blklab.stored(2, store=other).results.runs == blklab.stored(2, store=kept).results.runs
    rows = blklab.export([1], "csv", store=kept).decode().splitlines()
    assert len(rows) == 1 + 4
    with pytest.raises(InputError, match="--format: no 'xml'"):
        blklab.export([1], "xml", store=kept)  # type: ignore[arg-type]


def test_a_report_is_written_again(kept: str, tmp_path: Path) -> None:
    page = blklab.write_report(1, out=tmp_path / "again/report.html", store=kept)
    assert page == tmp_path / "again/report.html" and "950pro-256gb" in page.read_text()
    with pytest.raises(InputError, match="--store: only works with a number"):
        blklab.write_report(tmp_path, store=kept)


def test_without_a_store_nothing_is_listed(tmp_path: Path) -> None:
    assert blklab.results(store=str(tmp_path / "none.db")) == []
    assert not (tmp_path / "none.db").exists(), "a question makes no store"


def test_devices_are_those_of_sysfs() -> None:
    def there() -> dict[str, int]:
        # A disk that was removed and made again is another directory.
        return {path.name: path.stat().st_ino for path in Path("/sys/class/block").iterdir()}

    # Other tests make and remove loop devices meanwhile.
    before, found, after = there(), blklab.devices(), there()
    names = {one.name for one in found.devices}
    stayed = {name for name, number in before.items() if after.get(name) == number}
    assert stayed <= names <= {*before, *after}
    assert len(found.to_json()["devices"]) == len(found.devices)
    with pytest.raises(InputError, match="nosuch"):
        blklab.devices(["nosuch"])


def test_apply_refuses_before_anything_changes() -> None:
    with pytest.raises(InputError, match="name a disk"):
        blklab.apply(None, "bfq")
    with pytest.raises(InputError, match="give one of"):
        blklab.apply("sda", "bfq", preset="x")
    with pytest.raises(InputError, match="--of-disk: only works with --from"):
        blklab.apply("sda", "bfq", disk="x")


def test_every_name_of_the_package_can_be_had_and_only_those() -> None:
    assert sorted(blklab.__all__) == sorted(blklab._WHERE)
    for name in blklab.__all__:
        assert getattr(blklab, name) is not None
    with pytest.raises(AttributeError, match="nothing"):
        _ = blklab.nothing


def test_texts_and_typed_objects_mean_the_same() -> None:
    disk = blklab.find_disk("950pro-256gb:channels=4").disk
    job = blklab.find_workload("randread").entry
    spec = blklab.find_scheduler("mq-deadline:fifo_batch=1").spec
    assert spec == blklab.SchedulerSpec("mq-deadline", (("fifo_batch", "1"),))
    typed = blklab.simulate(job, disk=disk, scheduler=spec)
    told = blklab.simulate(
        "randread", disk="950pro-256gb:channels=4", scheduler="mq-deadline:fifo_batch=1"
    )
    assert (typed.disk, typed.duration_ns) == (told.disk, told.duration_ns)
    found = blklab.compare(disks=[disk], workloads=[job], schedulers=[spec, "none"], repeats=1)
    assert {row["disk"] for row in found.rows()} == {"950pro-256gb:channels=4"}
    assert [row["scheduler"] for row in found.rows()] == ["mq-deadline:fifo_batch=1", "none"]
    ran = blklab.run_job(job, disk=disk, scheduler=spec)
    assert ran.result.disk == typed.disk
    timeline = blklab.explain(job, disk=disk, scheduler=spec, until="1ms")
    assert timeline.scheduler == "mq-deadline:fifo_batch=1"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "scheduler '': expected name"),
        ("kyber:", "kyber: expected tunable=value, found ''"),
        ("kyber:read_lat_nsec=1,read_lat_nsec=2", "read_lat_nsec is given twice"),
        ("a b", "scheduler 'a b': expected name"),
    ],
)
def test_a_scheduler_of_another_form_is_refused_where_it_is_read(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        blklab.scheduler_spec(text)
    with pytest.raises(InputError, match=said):
        blklab.simulate("randread", disk="950pro-256gb", scheduler=text)


def test_lists_of_disks_schedulers_and_workloads_are_typed() -> None:
    disks = blklab.list_disks()
    disk = disks["wd10ezrx"]
    assert disk == blklab.find_disk("wd10ezrx")
    assert (disk.kind, disk.limits["queue_depth"], disk.disk.label) == ("hdd", 32, "wd10ezrx")
    rpm = next(one for one in disk.parameters if one.key == "rpm")
    assert rpm.value == "5400" and rpm.source
    named = {one.name: one for one in blklab.list_schedulers()}
    batch = next(one for one in named["mq-deadline"].tunables if one.name == "fifo_batch")
    assert batch.value == batch.default == 16 and batch.least <= 16 <= batch.most
    changed = blklab.find_scheduler("mq-deadline:fifo_batch=1").tunables
    assert {one.name: one.value for one in changed}["fifo_batch"] == 1
    jobs = {one.entry.name: one for one in blklab.list_workloads()}
    assert (jobs["randread"].kind, jobs["sqlite"].kind) == ("fio", "program")
    assert jobs["sqlite"].parameters and not jobs["randread"].parameters
    assert "SQLite" in jobs["sqlite"].about and jobs["randread"].about == ""
    host = {one.name: one.value for one in blklab.modelled_host({"cpus": 2}).host}
    assert host["cpus"] == 2
    assert set(blklab.rig_summaries()) == {"sim", "kernel", "live"}
    with pytest.raises(InputError, match="no disk 'nothing'"):
        blklab.find_disk("nothing")
    with pytest.raises(InputError, match="there is no scheduler 'nothing'"):
        blklab.find_scheduler("nothing")


def test_a_study_that_cannot_be_read_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.toml").write_text("title = 3\n")
    monkeypatch.setenv("BLKLAB_STUDIES", str(tmp_path))
    found = {one.name: one for one in blklab.list_studies()}
    assert "mine.toml" in found["mine"].error and not found["mine"].title
    assert found["bfq-2008"].title == blklab.find_study("bfq-2008").title
    assert blklab.find_study("bfq-2008").parts


def test_names_are_those_of_each_kind(kept: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLKLAB_STORE", kept)
    assert {"wd10ezrx", "950pro-256gb"} <= set(blklab.names("disk"))
    assert blklab.names("comparison") == ["2", "1"]
    assert "fifo_batch" in blklab.tunables("mq-deadline")
    assert "nr_requests" in blklab.tunables("mq-deadline")
    assert blklab.tunables("nothing") == []
    assert blklab.store_text() == kept
    with pytest.raises(KeyError):
        blklab.names("nothing")


def test_a_served_disk_is_a_command_that_is_ready_to_start(tmp_path: Path) -> None:
    made = blklab.serve_disk("wd10ezrx:queue_depth=4", number=7, seed=3)
    assert made.arguments[0] == "create"
    assert {"--id=7", "--seed=3", "--set=queue_depth=4", "--data=memory"} <= set(made.arguments)
    assert made.data is None
    assert blklab.remove_served_disk(3).arguments == ("remove", "3")
    listing = blklab.served_disks().start()
    listing.communicate(timeout=30)
    with pytest.raises(InputError, match="no disk 'nothing'"):
        blklab.serve_disk("nothing")


def test_kernels_of_an_empty_cache_and_wrong_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BLKLAB_CACHE", str(tmp_path))
    found = blklab.list_kernels()
    assert found.kernels == () and str(tmp_path) in str(found.cache)
    assert found.to_json()["kernels"] == []
    for call, said in (
        (blklab.remove_kernels, "nothing to remove"),
        (lambda: blklab.remove_kernels(["nothing"]), "nothing"),
        (lambda: blklab.run_in_kernel(["true"], disk="wd10ezrx"), "blklab kernel build"),
        (lambda: blklab.run_in_kernel(["true"], disk="wd10ezrx", trace_format="events"), "--trace"),
        (lambda: blklab.run_in_kernel(["true"], disk="wd10ezrx", time_travel="x"), "--time-travel"),
        (lambda: blklab.kernel_shell(time_travel="x"), "blklab kernel build"),
        (lambda: blklab.build_kernel(name="a/b"), "a/b"),
        (lambda: blklab.build_kernel(config=["odd"]), "odd"),
    ):
        with pytest.raises(InputError, match=said):
            call()


def test_a_program_runs_in_a_guest_and_the_disk_counts(capsys: pytest.CaptureFixture[str]) -> None:
    real_kernel.image()
    written = io.BytesIO()
    ran = blklab.run_in_kernel(
        ["dd", "if={disk}", "of=/dev/null", "bs=64k", "count=16", "iflag=direct", "status=none"],
        disk="950pro-256gb",
        scheduler=blklab.SchedulerSpec("kyber"),
        stdout=written,
    )
    assert (ran.exit_code, ran.scheduler) == (0, "kyber")
    assert (ran.reads, ran.read_bytes, ran.writes) == (16, 16 << 16, 0)
    assert ran.duration_ns > 0 and set(ran.lateness_ns) == {"p50", "p99", "max"}
    assert (ran.trace, ran.trace_events) == (None, 0)
    assert written.getvalue() == b""
    assert capsys.readouterr() == ("", "")


def test_paths_of_a_guest_are_texts_or_paths(tmp_path: Path) -> None:
    real_kernel.image()
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o755)
    (shared / "told").write_text("here")
    said = io.BytesIO()
    ran = blklab.run_in_kernel(
        ["sh", "-c", f"pwd; cat {shared}/told; echo new > file; sync file"],
        disk="950pro-256gb",
        file_system="ext4",
        mount="/srv",
        share=[str(shared)],
        trace=str(tmp_path / "events"),
        stdout=said,
    )
    assert (ran.exit_code, said.getvalue()) == (0, b"/srv\nhere")
    assert ran.trace == tmp_path / "events/trace.txt" and ran.trace_events > 0
