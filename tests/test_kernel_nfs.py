"""File operations over NFS in a guest: every phase reaches server and disk, and what is refused."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from blklab import programs
from blklab.domain import specs
from blklab.domain.experiment import Experiment
from blklab.domain.result import Result
from blklab.errors import InputError, RunError
from blklab.programs import nfs_files
from blklab.rigs.kernel import cache, nfs
from blklab.rigs.kernel.rig import KernelRig
from tests import real_kernel

PHASES = ("create", "write", "stat", "read", "remove")
_LINE = re.compile(r"(\w+): (\d+) operations in ([0-9.]+) s, ([0-9.]+) a second, ([0-9.]+) ms each")


@pytest.fixture(scope="session")
def kernel() -> str:
    """Key of a kernel with an NFS server and client."""
    return real_kernel.with_nfs()


def experiment(settings: str, scheduler: str = "none", disk: str = "wd10ezrx") -> Experiment:
    spec = f"nfs-files:{settings}" if settings else "nfs-files"
    host = {"memory_kb": 256 << 10}
    return Experiment(specs.workload(spec), specs.disk(disk), specs.scheduler(scheduler), 1, host)


def ran(kernel: str, one: Experiment, cpu: str | None = None) -> Result:
    rig = KernelRig(kernel, cpu=cpu)
    with rig.prepared([one], lambda _: None):
        return rig.run(one)


def phases(result: Result) -> dict[str, tuple[int, float]]:
    """The operations and the seconds of each phase."""
    rows = _LINE.findall(result.raw["phases.txt"].decode())
    return {name: (int(count), float(seconds)) for name, count, seconds, *_ in rows}


def test_each_phase_has_every_operation_and_the_figure_is_of_all(kernel: str) -> None:
    result = ran(kernel, experiment("clients=3,files=7,size_kib=8", "mq-deadline"))
    found = phases(result)
    assert tuple(found) == PHASES
    assert {count for count, _ in found.values()} == {3 * 7}
    assert len(result.operations_ns) == 5 * 3 * 7
    seconds = sum(each for _, each in found.values())
    assert result.figure is not None
    assert result.figure.value == pytest.approx(5 * 3 * 7 / seconds, rel=0.001)
    assert nfs.NOTE in result.notes
    # With the pauses in which the caches are emptied.
    assert result.duration_ns / 1e9 >= seconds


def test_the_server_commits_what_clients_create_and_reads_what_they_read_from_its_disk(
    kernel: str,
) -> None:
    clients, files, size_kib = 2, 10, 64
    result = ran(kernel, experiment(f"clients={clients},files={files},size_kib={size_kib}"))
    assert result.costs is not None
    moved = result.costs.during
    written = clients * files * size_kib << 10
    assert moved.data.bytes >= written
    # A cold cache on both sides: each byte comes from the disk once, not twice.
    assert written <= moved.read.bytes < 2 * written
    # Created, written and removed files are on the disk when the operation ends; two clients at
    # most share a flush.
    assert moved.flushes >= 3 * files
    assert moved.journal.bytes > 0
    # A hard disk turns in 8.3 ms or more: an operation that reaches it takes some of that.
    for name, (count, seconds) in phases(result).items():
        assert seconds * clients / count > (5e-5 if name == "stat" else 1e-3), name


def test_a_run_repeats_exactly_where_the_cpu_is_free(kernel: str) -> None:
    one = experiment("clients=4,files=6,size_kib=16", "bfq")
    first, second = (ran(kernel, one, cpu="free") for _ in range(2))
    assert first.figure == second.figure
    assert first.operations_ns.tolist() == second.operations_ns.tolist()
    assert first.costs == second.costs


def test_more_clients_share_flushes_until_the_servers_threads_are_busy(kernel: str) -> None:
    def rate(settings: str) -> float:
        result = ran(kernel, experiment(f"{settings},size_kib=4", "mq-deadline"), cpu="free")
        assert result.figure is not None
        return result.figure.value

    alone = rate("clients=1,files=16")
    assert rate("clients=8,files=16") > 1.5 * alone
    assert rate("clients=8,files=16,nfsd_threads=1") < rate("clients=8,files=16")


def test_files_as_large_as_the_page_cache_come_to_an_end(kernel: str) -> None:
    # Client and server each have the pages; with too little memory they would wait for each other.
    one = replace(experiment("clients=2,files=4,size_kib=16384"), host={"memory_kb": 64 << 10})
    result = ran(kernel, one)
    assert phases(result)["read"][0] == 8


def test_a_full_disk_is_one_line(kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one = experiment("clients=2,files=50,size_kib=1000", disk="wd10ezrx:capacity_sectors=131072")
    with pytest.raises(InputError, match=r"nfs-files:.* may need .*; the disk has 64 MiB$"):
        ran(kernel, one)
    program = replace(nfs_files.PROGRAM, room_bytes=lambda _: 48 << 20)
    monkeypatch.setattr(nfs_files, "PROGRAM", program)
    with pytest.raises(RunError, match=r"^nfs-files: No space left on device$"):
        ran(kernel, one)


def test_a_kernel_without_nfs_is_refused_with_the_command_that_builds_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BLKLAB_CACHE", str(tmp_path))
    without = cache.Kernel("k", "7.3.4", "", "", (), (), "", 1.0, 1, names=("mine",))
    without.directory.mkdir(parents=True)
    config = without.directory / "config"
    config.write_text("CONFIG_NFSD_V4=y\n# CONFIG_NFS_V4 is not set\n")
    with pytest.raises(InputError) as refused:
        nfs.check(without, "nfs-files:clients=2")
    assert str(refused.value) == (
        "nfs-files:clients=2: needs an NFS server and client, and the kernel 'mine' lacks "
        "CONFIG_NFS_V4; one that has them, for --kernel nfs: blklab kernel build --config "
        "NETWORK_FILESYSTEMS=y --config NFS_FS=y --config NFS_V4=y --config NFSD=y --config "
        "NFSD_V4=y --name nfs"
    )
    config.write_text("CONFIG_NFSD_V4=y\nCONFIG_NFS_V4=y\n")
    nfs.check(without, "nfs-files")


def test_the_default_kernel_is_refused_before_anything_runs() -> None:
    default = real_kernel.image().parent.name
    with pytest.raises(InputError, match=r"^nfs-files: needs an NFS server and client, and the k"):
        ran(default, experiment(""))


def test_a_file_that_lost_bytes_is_an_error_of_the_read(tmp_path: Path) -> None:
    path = tmp_path / "short"
    path.write_bytes(b"123")
    with pytest.raises(RunError, match=r"^short: 2 bytes are missing$"):
        nfs_files._read(path, 5)
    nfs_files._read(path, 3)


def test_the_room_of_its_files_is_that_of_both_sides() -> None:
    program = programs.known("nfs-files")
    values = program.check({"clients": "2", "files": "3", "size_kib": "100"})
    assert program.room_bytes(values) >= 2 * (2 * 3 * 100 << 10)
