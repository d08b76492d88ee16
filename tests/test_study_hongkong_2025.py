"""The study of deadline and CFQ on servers: what its models and its statements rest on."""

from __future__ import annotations

from pathlib import Path

import pytest

import blklab
from blklab import study as study_files
from blklab.domain.over_time import over_time
from blklab.programs.program import Program
from blklab.rigs.kernel import nfs, tools
from blklab.studies import STUDIES
from blklab.study import kernels
from blklab.study.plan import Asked, plan

NAME = "hongkong-2025"
FOLDER = Path(STUDIES.find(NAME).path).with_suffix("")


def rate_mb_s(job: str, disk: str, scheduler: str, operation: str = "read") -> float:
    found = blklab.simulate(job, disk=disk, scheduler=scheduler, host={"cpus": 32})
    sides = [getattr(job, operation) for job in found.jobs]
    return sum(float(side.bytes / side.runtime_ns * 1e3) for side in sides)


def test_its_sweeps_are_a_workload_for_each_number_of_threads() -> None:
    parts = {part.name: part for part in study_files.find(NAME).parts}
    sizes = [4, 8, 16, 32, 64, 128, 256]
    assert parts["sas-mixes"].workloads[:7] == tuple(f"randrw-70:numjobs={n}" for n in sizes)
    assert len(parts["nvme-mixes"].workloads) == 14


@pytest.mark.parametrize(("scheduler", "published"), [("deadline", 3_200), ("cfq", 2_700)])
def test_the_published_rate_of_writes_is_beyond_the_disk(scheduler: str, published: int) -> None:
    job = f"{FOLDER / 'sequential.fio'}:rw=write,runtime=2,size=1g"
    found = rate_mb_s(job, "pm983-960gb", scheduler, "write")
    assert found < published / 2


def test_sixteen_threads_read_as_fast_as_published() -> None:
    job = f"{FOLDER / 'random.fio'}:runtime=500ms"
    for scheduler, published in (("deadline", 146_000), ("cfq", 158_000)):
        found = rate_mb_s(job, "pm983-960gb", scheduler) * 1e6 / 4_096
        assert abs(found / published - 1.0) < 0.15, scheduler


def test_the_advised_expiry_changes_no_request_on_nvme() -> None:
    job = "randrw-70:numjobs=64,runtime=300ms"
    runs = [
        blklab.simulate(job, disk="pm983-960gb", scheduler=scheduler)
        for scheduler in ("deadline", "deadline:read_expire=200,write_expire=500")
    ]
    assert [job.read.clat for job in runs[0].jobs] == [job.read.clat for job in runs[1].jobs]
    assert runs[0].disk == runs[1].disk


def guests(name: str, scheduler: str) -> dict[str, float]:
    """The mean read latency of each guest, ms."""
    found = blklab.simulate(f"{name}:runtime=30", disk="sas-10k", scheduler=scheduler)
    return {job.name: job.read.clat.mean_ns / 1e6 for job in found.jobs}


@pytest.mark.parametrize("scheduler", ["cfq", "bfq"])
def test_weights_of_cgroups_help_the_important_guest_and_its_priority_does_not(
    scheduler: str,
) -> None:
    equal = guests(f"{FOLDER / 'guests-cgroups.fio'}", scheduler)["database"]
    assert guests(f"{FOLDER / 'guests-weights.fio'}", scheduler)["database"] < equal / 1.2
    assert guests("guests", scheduler)["database"] > equal


def test_without_queues_cgroups_and_priorities_change_nothing() -> None:
    alike = guests(f"{FOLDER / 'guests-alike.fio'}", "mq-deadline")
    for name in (f"{FOLDER / 'guests-ionice.fio'}", f"{FOLDER / 'guests-weights.fio'}", "guests"):
        assert guests(name, "mq-deadline") == alike


def test_a_backup_every_half_hour_is_a_pile_up_each_time() -> None:
    job = f"{FOLDER / 'servers-backup.fio'}:runtime=95m"
    for scheduler in ("deadline", "cfq"):
        made = over_time(blklab.simulate(job, disk="sas-10k", scheduler=scheduler))
        assert made is not None and made.pile_ups is not None
        assert made.pile_ups.count == 4, scheduler
        began = [one.start_ns / 60e9 for one in made.pile_ups.found]
        assert [round(minute / 30) for minute in began] == [0, 1, 2, 3]


def test_seventeen_processes_that_never_pause_pile_up_no_requests() -> None:
    job = f"{FOLDER / 'servers.fio'}:runtime=20m"
    for scheduler in ("deadline", "cfq"):
        made = over_time(blklab.simulate(job, disk="sas-10k", scheduler=scheduler))
        assert made is not None and made.pile_ups is not None
        assert made.pile_ups.count == 0, scheduler


SERVERS = ("mysql-tpcc", "mysql-sysbench", "nfs")


def test_its_servers_run_on_one_kernel_that_has_an_nfs_server_and_client() -> None:
    study = study_files.find(NAME)
    [kernel] = study.kernels
    assert kernel.config == nfs.CONFIG
    parts = [part for part in study.parts if part.rigs == ("kernel",)]
    assert tuple(part.name for part in parts) == SERVERS
    assert {part.kernel for part in parts} == {kernel.name}


def test_a_missing_program_leaves_its_part_out_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tools, "missing", list)
    missing = {"tpcc": "needs go-tpc: go install", "sysbench-oltp": "needs sysbench: apt-get"}
    monkeypatch.setattr(Program, "missing", lambda program: missing.get(program.name, ""))
    planned = {part.part.name: part for part in plan(study_files.find(NAME), Asked(quick=True))}
    for name, why in zip(SERVERS, missing.values(), strict=False):
        assert planned[name].setup is None
        assert [skipped.why for skipped in planned[name].skipped] == [why]
    assert planned["nfs"].setup is not None
    assert kernels.needed(list(planned.values())) == ["servers"]
    monkeypatch.setattr(tools, "missing", lambda: ["gcc"])
    planned = {part.part.name: part for part in plan(study_files.find(NAME))}
    for name in SERVERS:
        assert [one.why for one in planned[name].skipped] == ["building a kernel needs gcc"]


def test_each_statement_that_does_not_come_out_has_a_reason() -> None:
    claims = [claim for part in study_files.find(NAME).parts for claim in part.claims]
    assert {claim.text for claim in claims if not claim.not_reproduced} == {
        "Sequential reads are within 5 %",
        "16 threads: 146,000 IOPS under deadline, 158,000 under CFQ",
        "CFQ shows occasional pile-ups of requests",
        "deadline shows none",
        "deadline is smoother: the 99.9th percentile of reads is lower",
        "The 99th percentile of reads, outside of pile-ups, is the same at the end of the day as "
        "at its start",
        "The throughput is the same at the end of the day as at its start",
        "So is the 99th percentile of reads",
        "In its place: a cgroup for each guest, with weights",
        "Guests with a queue each need a scheduler with queues: the database waits less under CFQ "
        "than under deadline",
        "Advised: CFQ with slice_idle 8, here against 0, for sequential readers",
    }
