"""File systems of the kernel rig: files at the same places on both rigs, and mounts at rest."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import blklab
from blklab.agreement.run import host, in_file_system
from blklab.agreement.verdict import meets
from blklab.base.catalogue import Entry
from blklab.domain import core, specs
from blklab.domain.experiment import Experiment, LaidOut
from blklab.domain.result import Result
from blklab.errors import InputError, RunError
from blklab.rigs.kernel import cache, file_systems
from blklab.rigs.kernel.rig import KernelRig
from blklab.rigs.sim import SimRig
from tests import real_kernel
from tests.test_cli import failing

READS = (
    "[a]\ndirect=1\nrw=read\nbs=64k\nsize=3m\n"
    "[b]\ndirect=1\nrw=randread\nbs=4k\nsize=5m\nio_size=1m\n"
)


@pytest.fixture
def kernel() -> cache.Kernel:
    return cache.find(real_kernel.with_file_systems())


def needs(kind: str) -> None:
    if shutil.which(f"mkfs.{kind}", path=file_systems.SBIN) is None:
        pytest.skip(f"not installed: {file_systems.KINDS[kind]}")


def laid_out(kernel: cache.Kernel, name: str, job: str, disk: str = "su800-128gb") -> Experiment:
    """The job with its files in the file system `name`."""
    needs(file_systems.FILE_SYSTEMS[name].kind)
    entry = Entry("job", Path("job.fio"), job)
    bare = Experiment(entry, specs.disk(disk), specs.scheduler("none"), 1, host(kernel))
    sizes = [int(text[:-1]) << 20 for line in job.splitlines() if line.startswith("size=")
             for text in [line.removeprefix("size=")]]  # fmt: skip
    files = KernelRig(kernel.key).lay_out(name, bare.disk, sizes)
    return replace(bare, files=files)


def on_both(kernel: cache.Kernel, experiment: Experiment) -> tuple[Result, Result]:
    assert experiment.files is not None
    on_files = in_file_system(experiment.host, experiment.files)
    ours = replace(experiment, host=on_files)
    return SimRig().run(ours), KernelRig(kernel.key, "native").run(experiment)


@pytest.mark.parametrize("name", sorted(file_systems.FILE_SYSTEMS))
def test_both_rigs_read_a_job_s_files_where_the_file_system_has_them(
    kernel: cache.Kernel, name: str
) -> None:
    experiment = laid_out(kernel, name, READS)
    assert experiment.files is not None
    places = experiment.files.places
    assert [sum(count for _, count in file) for file in places] == [3 << 11, 5 << 11]
    sectors = {
        sector for file in places for first, count in file for sector in range(first, first + count)
    }
    assert len(sectors) == 8 << 11, "no sector belongs to both"
    sim, real = on_both(kernel, experiment)
    ours, theirs = sim.overview, real.detail
    used = set(theirs.sector.tolist())
    if name != "btrfs":
        assert sorted(ours.sector.tolist()) == sorted(theirs.sector.tolist())
        assert used <= sectors, "the kernel reads only there"
    else:
        # Checksums are read beside.
        assert set(ours.sector.tolist()) <= used
    assert sim.jobs[0].read.bytes == real.jobs[0].read.bytes == 3 << 20
    [told] = [note for note in real.notes if note.startswith("files in ")]
    assert (
        told
        == f"files in {experiment.files.file_system.partition(':')[0]} ({experiment.files.mounted})"
    )


def test_files_that_are_not_where_the_experiment_says_are_refused(kernel: cache.Kernel) -> None:
    experiment = laid_out(kernel, "ext4", READS)
    assert experiment.files is not None
    moved = tuple(
        tuple((first + 8, count) for first, count in file) for file in experiment.files.places
    )
    wrong = replace(experiment, files=replace(experiment.files, places=moved))
    with pytest.raises(RunError, match="file 0 of the file system is not where it was laid out"):
        KernelRig(kernel.key, "native").run(wrong)
    fewer = replace(experiment, files=replace(experiment.files, places=moved[:1]))
    with pytest.raises(InputError, match="2 files, and places for 1"):
        SimRig().run(fewer)
    broken = replace(experiment, files=replace(experiment.files, image="AAAA"))
    with pytest.raises(InputError, match="the image of the disk cannot be read"):
        KernelRig(kernel.key, "native").run(broken)


def test_an_overwrite_moves_data_in_btrfs_only_and_the_result_says_so(kernel: cache.Kernel) -> None:
    job = "[a]\ndirect=1\nrw=write\nbs=64k\nsize=2m\nio_size=1m\n"
    for name, moved in (
        ("ext4", []),
        ("btrfs", ["the file system has moved 1024 KiB of the files"]),
    ):
        real = KernelRig(kernel.key, "native").run(laid_out(kernel, name, job))
        assert [note for note in real.notes if "moved" in note] == moved


SSD, NVME, HDD = "su800-128gb", "950pro-256gb", "wd10ezrx"


@pytest.mark.parametrize(
    ("name", "load", "disk", "scheduler"),
    [
        ("ext4", "readers-writer", SSD, "mq-deadline"),
        ("ext4", "write-durable", SSD, "none"),
        # Bios of background writeback without the mark; the share of the limits from the start.
        ("ext4", "write-seq-buffered", SSD, "none"),
        # The file has several extents, and the pages of each end with their own bio, those that are
        # read too. A mount on this disk takes long. Slices of writeback end when the flusher, which
        # sleeps for a request, has submitted them. ext4 commits after five seconds.
        ("ext4", "copy-buffered", HDD, "bfq:low_latency=0"),
        ("ext4", "copy-buffered", f"{NVME}:hw_queues=1", "none"),
        # A full memory.
        ("xfs", "streams-buffered", HDD, "mq-deadline"),
        ("xfs", "streams-buffered", NVME, "bfq"),
        # The journal: what fsync commits, shared commits, its record before all others.
        ("ext4", "commits", SSD, "none"),
        ("ext4:lazytime", "commits", SSD, "mq-deadline"),
        ("xfs:lazytime", "commits", NVME, "kyber"),
        # A queue with nothing to dispatch is not run after a completion.
        ("ext4", "commits", NVME, "bfq"),
        ("ext4", "commits", NVME, "bfq:low_latency=0"),
        ("ext4", "write-seq-fsync", HDD, "kyber"),
        # Several processes write and sync one file: its lock, the order in which they are woken.
        ("ext4", "deliveries-buffered", HDD, "none"),
        ("ext4", "deliveries-buffered", NVME, "bfq"),
        ("xfs", "mix-70-30", SSD, "kyber"),
        ("xfs", "commits", HDD, "mq-deadline"),
        ("xfs", "write-seq-fsync", SSD, "bfq"),
        ("xfs", "deliveries-buffered", SSD, "kyber"),
        # With the throttling of a disk at rest, whatever the mount has written.
        ("xfs", "deliveries-buffered", NVME, "none"),
        ("xfs", "log-and-reads", SSD, "bfq"),
        # Bios of 4,096 folios.
        ("xfs", "copy-buffered", NVME, "bfq"),
        ("btrfs:nodatacow", "priorities", SSD, "bfq"),
        # The read-ahead of btrfs.
        ("btrfs:nodatacow", "read-seq-buffered", NVME, "none"),
    ],
)
def test_cells_in_file_systems_are_the_same_to_the_last_digit(
    kernel: cache.Kernel, name: str, load: str, disk: str, scheduler: str
) -> None:
    needs(file_systems.FILE_SYSTEMS[name].kind)
    found = blklab.verify(
        workloads=[load],
        disks=[disk],
        schedulers=[scheduler],
        file_systems=[name],
        kernel=kernel.key,
    )
    [cell] = found.cells
    assert cell.file_system == name
    assert cell.sim == cell.kernel
    assert cell.kernel.ios > 100


ONE_FILE = {
    # ext4's first write of the file has its lock alone.
    "first-write": "[r]\nrw=read\nbs=512k\nsize=64m\nnumjobs=2\n"
    "[w]\nrw=write\nbs=128k\noffset=64m\nsize=64m\nnumjobs=2\n",
    # Kernel threads flush beside reads: what runs the queue.
    "flushes": "[a]\nrw=rw\nrwmixread=90\nbs=4k\nsize=64m\nioengine=libaio\niodepth=4\n"
    "sync=dsync\nnumjobs=2\n",
    # XFS's log is pushed by a worker, in its turn among the processes.
    "commits": "[w]\nrw=randrw\nrwmixread=70\nbs=4k\nsize=64m\nioengine=libaio\niodepth=4\n"
    "fsync=1\nnumjobs=2\n[r]\nrw=randread\nbs=8k\noffset=64m\nsize=64m\nthinktime=330\n",
    # Of two that sync one inode beside a commit the second waits for the commit before.
    "four-sync": "[w]\nrw=randwrite\nbs=256k\nsize=64m\nioengine=libaio\niodepth=4\n"
    "fsync=16\nnumjobs=4\n",
}


def test_processes_of_one_file_are_the_same_to_the_last_digit(
    kernel: cache.Kernel, tmp_path: Path
) -> None:
    for kind in ("ext4", "xfs"):
        needs(kind)
    jobs = []
    for name, job in ONE_FILE.items():
        jobs.append(tmp_path / f"{name}.fio")
        both = "[global]\nfilename=area\ndirect=1\ntime_based\nruntime=300ms\n"
        jobs[-1].write_text(f"{both}{job}", encoding="utf-8")
    found = blklab.verify(
        jobs=jobs,
        disks=[SSD],
        schedulers=["none", "bfq"],
        file_systems=["ext4", "xfs:lazytime"],
        kernel=kernel.key,
    )
    assert len(found.cells) == len(jobs) * 2 * 2
    others = [cell for cell in found.cells if cell.sim != cell.kernel]
    assert [(cell.load, cell.place, cell.scheduler) for cell in others] == []


WAITING = """[global]
filename=area
direct=1
time_based
runtime=500ms
[big]
rw=randrw
bs=256k
size=128m
ioengine=libaio
iodepth=8
[small]
rw=randwrite
bs=8k
offset=128m
size=64m
ioengine=libaio
iodepth=16
numjobs=4
[sync]
rw=randwrite
bs=8k
offset=192m
size=64m
ioengine=libaio
iodepth=16
fsync=1
[read]
rw=rw
rwmixread=90
bs=512k
offset=256m
size=64m
fsync=16
"""
"""More I/Os than a SATA disk has requests for, beside a process that commits."""


def test_processes_that_wait_for_a_record_or_for_requests_are_woken_as_in_linux(
    kernel: cache.Kernel, tmp_path: Path
) -> None:
    for kind in ("ext4", "xfs"):
        needs(kind)
    job = tmp_path / "waiting.fio"
    job.write_text(WAITING, encoding="utf-8")
    found = blklab.verify(
        jobs=[job],
        disks=[SSD],
        schedulers=["kyber", "mq-deadline"],
        file_systems=["ext4:lazytime", "xfs:lazytime"],
        kernel=kernel.key,
    )
    others = [cell for cell in found.cells if cell.sim != cell.kernel]
    assert [(cell.load, cell.place, cell.scheduler) for cell in others] == []


def test_cells_drawn_from_the_matrix_of_file_systems_agree(kernel: cache.Kernel) -> None:
    """Other cells each day, in the file systems that write in place."""
    for kind in ("ext4", "xfs"):
        needs(kind)
    seed = date.today().toordinal()
    found = blklab.verify(sample=10, seed=seed, file_systems=["ext4", "xfs"], kernel=kernel.key)
    assert len(found.cells) == 10
    # In the kept table all but few are in the bar: fewer than 9 of 10 not once in 1,000 days.
    assert sum(map(meets, found.cells)) >= 9, f"--seed {seed}\n{found.text}"


def test_wrong_requests_are_one_line(
    kernel: cache.Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    for arguments, message in (
        (["--fs", "ext5", "--quick"], "--fs: no 'ext5'; did you mean 'ext4'?"),
        (
            ["--fs", "btrfs:nocow", "--quick"],
            "--fs: no 'btrfs:nocow'; did you mean 'btrfs:nodatacow'?",
        ),
    ):
        code, text = failing(capfd, monkeypatch, "verify", *arguments)
        assert code != 0
        assert message in text, text
    device = tmp_path / "device.fio"
    device.write_text("[a]\nfilename=/dev/sda\nrw=read\ndirect=1\nruntime=1\n")
    found = blklab.verify(
        jobs=[device], disks=["su800-128gb"], schedulers=["none"], file_systems=["ext4"],
        kernel=kernel.key,
    )  # fmt: skip
    [lost] = found.uncompared
    assert lost.reason == "--fs: device has no file, only the disk itself"
    monkeypatch.setattr(file_systems, "SBIN", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RunError, match=r"no mkfs.xfs here: apt-get install xfsprogs$"):
        file_systems.check("xfs", kernel, "--fs")
    # Once, before the first run.
    with pytest.raises(RunError, match=r"^--fs: no mkfs.ext4 here: apt-get install e2fsprogs$"):
        blklab.verify(disks=["su800-128gb"], file_systems=["ext4"], kernel=kernel.key)


def test_a_kernel_without_the_file_system_is_told_with_the_command_that_builds_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BLKLAB_CACHE", str(tmp_path))
    without = cache.Kernel("k", "7.3.4", "", "", (), (), "", 1.0, 1, names=("mine",))
    without.directory.mkdir(parents=True)
    (without.directory / "config").write_text("CONFIG_EXT4_FS=y\n# CONFIG_XFS_FS is not set\n")
    with pytest.raises(InputError) as refused:
        file_systems.check("xfs", without, "--fs")
    assert str(refused.value) == (
        "--fs: the kernel 'mine' has no xfs; one that has: blklab kernel build --config XFS_FS=y "
        "--name xfs"
    )


def test_a_layout_is_an_input_of_a_task() -> None:
    files = LaidOut("ext4", "rw", (((8, 8),),), "")
    assert repr(files) == (
        "LaidOut(file_system='ext4', mounted='rw', places=(((8, 8),),), journal=None)"
    )


COMMITS = "[a]\nrw=randwrite\nbs=4k\nsize=16m\ndirect=1\nfsync=1\nio_size=200k\n"


@pytest.mark.parametrize("name", core.JOURNALED)
def test_a_journal_of_the_host_is_that_of_a_real_file_system_in_a_guest(
    kernel: cache.Kernel, name: str
) -> None:
    needs(name)
    told = specs.host([f"journal=1,file_system={name}"])
    entry = Entry("job", Path("job.fio"), COMMITS)
    asked = Experiment(entry, specs.disk(SSD), specs.scheduler("none"), 1, host(kernel) | told)
    sim, real = SimRig().run(asked), KernelRig(kernel.key).run(asked)
    # On an SSD it does not matter that the journals are at other places.
    assert real.jobs[0].write.clat_hist.percentile(50) == sim.jobs[0].write.clat_hist.percentile(50)
    ours, theirs = (
        {what: getattr(run.disk, what) for what in ("write_ios", "write_sectors", "flush_ios")}
        for run in (sim, real)
    )
    assert ours == theirs
    assert ours["write_ios"] > 50 + 40, "each write has a commit"
    assert any(f"files in {name}" in note for note in real.notes)
    assert not sim.notes


def test_a_sync_without_a_journal_is_told(kernel: cache.Kernel) -> None:
    for text, is_told in (
        (COMMITS, True),
        (COMMITS.replace("fsync", "fdatasync"), False),
        (COMMITS.replace("fsync=1", "sync=sync"), True),
        (COMMITS.replace("fsync=1", "end_fsync=1"), True),
        (COMMITS.replace("fsync=1", "fsync=0"), False),
        (COMMITS.replace("[a]", "[a]\nfilename=/dev/sda"), False),
    ):
        asked = Experiment(
            Entry("job", Path("job.fio"), text), specs.disk(SSD), specs.scheduler("none"), 1, {}
        )
        for rig in (SimRig(), KernelRig(kernel.key)):
            assert (core.UNCOMMITTED in rig.run(asked).notes) == is_told, (rig.name, text)
    on_partitions = replace(
        asked, job=Entry("job", Path("job.fio"), COMMITS), host={"partitions": 1}
    )
    assert core.UNCOMMITTED not in SimRig().run(on_partitions).notes


def test_a_journal_that_cannot_be_had_is_one_line(
    kernel: cache.Kernel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: Any
) -> None:
    job = tmp_path / "commits.fio"
    job.write_text(COMMITS)
    for arguments, message in (
        (
            ("fio", str(job), "--disk", SSD, "--host", "journal=1,file_system=btrfs"),
            "--host: journal=1: the journal of btrfs is not modelled; expected file_system=xfs or "
            "ext4",
        ),
        (
            ("verify", "--quick", "--host", "journal=1"),
            "--host: journal=1: that of --fs ext4 or --fs xfs is always compared",
        ),
    ):
        code, text = failing(capfd, monkeypatch, *arguments)
        assert code != 0
        assert message in " ".join(text.split()), text
    monkeypatch.setattr(file_systems, "SBIN", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    asked = Experiment(
        Entry("job", job, COMMITS), specs.disk(SSD), specs.scheduler("none"), 1, {"journal": 1}
    )
    with pytest.raises(
        RunError, match=r"^--host journal=1: no mkfs.xfs here: apt-get install xfsprogs$"
    ):
        KernelRig(kernel.key).run(asked)
