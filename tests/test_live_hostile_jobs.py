"""A job file comes from anywhere: on a real disk it changes its own test files, nothing else."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from blklab.base.catalogue import Entry
from blklab.base.journal import Journal
from blklab.cli import app
from blklab.domain.experiment import Experiment, SchedulerSpec
from blklab.errors import InputError, RunError
from blklab.host.roots import HERE
from blklab.rigs.live import cgroups, load, program, wall
from blklab.rigs.live.rig import LiveRig

MIB = 1 << 20
PRECIOUS = b"precious\n"
JOB = "[w]\nrw=write\nsize=1M\n"
ENDLESS = "[w]\nrw=randread\nsize=1M\nruntime=600\ntime_based\n"

pytestmark = pytest.mark.skipif(
    any(shutil.which(name) is None for name in program.PACKAGES),
    reason=f"needs {', '.join(program.PACKAGES)}",
)


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A file that no job may touch."""
    file = tmp_path / "victim"
    file.write_bytes(PRECIOUS)
    return file


def run(job: Path, disk: Path, *more: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["fio", str(job), "--rig", "live", "--disk", str(disk), *more])
    if isinstance(done.exception, InputError):
        # As `main` prints it.
        return 2, f"blklab: {done.exception}\n"
    assert done.exception is None, done.exception
    return done.exit_code, done.stderr


REFUSED = {
    "mem=mmap:{victim}": "it names a file",
    "mem=mmapshared:{victim}": "it names a file",
    "mem=mmaphuge": "it needs the name of a file",
    "iomem=mmaphuge:{victim}": "it names a file",
    "buffer_pattern='{victim}'": "it names a file",
    "uid=65534": "could not open its files",
    "gid=65534": "could not open its files",
    "exec_prerun=rm {victim}": "only dropping the page cache is",
    "exec_postrun=rm {victim}": "no commands are run",
    "ioscheduler=none": "choose it with --scheduler",
    "read_iolog={victim}": "does not replay",
    "write_iolog={victim}": "does not replay",
    "verify_state_save=1": "no contents to verify",
    "ioengine=external:{victim}": "simulated are",
    "opendir=/": "name them with filename=",
    "steadystate=iops:1%": "ramp_time",
    "include {victim}": "of its own directory only",
}


@pytest.mark.parametrize("option", REFUSED)
def test_an_option_that_reaches_outside_is_refused_by_name_and_line(
    option: str, mounted: Path, victim: Path, tmp_path: Path
) -> None:
    (tmp_path / "jobs").mkdir()
    job = tmp_path / "jobs/o.fio"
    job.write_text(f"{JOB}{option.format(victim=victim)}\n")
    code, said = run(job, mounted)
    assert code == 2
    assert said.startswith(f"blklab: {job}:4: ") and said.count("\n") == 1, said
    assert REFUSED[option] in said
    assert victim.read_bytes() == PRECIOUS
    assert [path.name for path in mounted.iterdir()] == ["lost+found"]


LEFT_OUT = (
    "write_lat_log=x",
    "write_bw_log={victim}",
    "write_iops_log=../x",
    "write_hist_log=x\nlog_hist_msec=10",
    "log_avg_msec=10\nper_job_logs=0",
    "exec_prerun=sync && echo 3 > /proc/sys/vm/drop_caches",
    "unlink=1",
    "unlink_each_loop=1\nloops=2",
    "allow_mounted_write=1",
    "clat_percentiles=0",
    "stats=0",
    "gtod_reduce=1",
    "disable_lat=1\ndisable_clat=1\ndisable_slat=1",
    "significant_figures=9\nunit_base=8",
)


@pytest.mark.parametrize("options", LEFT_OUT)
def test_an_option_that_is_not_needed_is_left_out_and_named(
    options: str, mounted: Path, victim: Path, tmp_path: Path, journal: Journal
) -> None:
    job = tmp_path / "o.fio"
    job.write_text(f"{JOB}{options.format(victim=victim)}\n")
    code, said = run(job, mounted)
    assert code == 0, said
    for number, option in enumerate(options.split("\n")):
        name = option.partition("=")[0]
        assert f"blklab: ignored: {job}:{number + 4}: {name}=" in said or name == "loops", said
    assert victim.read_bytes() == PRECIOUS
    assert sorted(path.name for path in tmp_path.iterdir() if "x" in path.name) == []
    assert [path.name for path in mounted.iterdir()] == ["lost+found"]
    assert journal.keys() == []


def test_a_value_of_an_option_that_is_left_out_is_checked_all_the_same(
    mounted: Path, tmp_path: Path
) -> None:
    job = tmp_path / "o.fio"
    job.write_text(f"{JOB}stats=maybe\n")
    code, said = run(job, mounted)
    assert (code, said) == (
        2, f"blklab: {job}:4: option 'stats': found 'maybe', expected 0 or 1\n"
    )  # fmt: skip


def test_a_link_out_of_the_jobs_directory_is_not_included(
    mounted: Path, victim: Path, tmp_path: Path
) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/own.inc").write_text("bs=4k\n")
    (tmp_path / "jobs/link.inc").symlink_to(victim)
    job = tmp_path / "jobs/o.fio"
    job.write_text(f"{JOB}include own.inc\n")
    assert run(job, mounted)[0] == 0
    job.write_text(f"{JOB}include link.inc\n")
    code, said = run(job, mounted)
    assert code == 2 and "of its own directory only" in said and "precious" not in said


def test_a_variable_brings_one_value_and_no_further_option(
    mounted: Path, victim: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = tmp_path / "o.fio"
    job.write_text(f"{JOB}description=${{X}}\n")
    monkeypatch.setenv("X", f"harmless\nexec_prerun=rm {victim}")
    code, said = run(job, mounted)
    assert code == 2 and said == (
        f"blklab: {job}:4: ${{X}}: its value holds a new line, ';', '#' or a control character\n"
    )
    assert victim.exists()


def test_a_job_called_global_is_no_section_of_defaults(mounted: Path, tmp_path: Path) -> None:
    job = tmp_path / "o.fio"
    job.write_text(f"{JOB}name=global\n")
    code, said = run(job, mounted)
    assert code == 2 and said.count("\n") <= 2 and "takes a section of that name" in said


# What the list of options lets through by mistake, the wall around fio has to stop.
ESCAPES = {
    "mem=mmap:{victim}": "a buffer in a file",
    "write_bw_log={outside}/x": "a log",
    "exec_prerun=touch {outside}/x": "a program",
    "filename={victim}": "a file",
    "directory={outside}\nfilename=x": "a new file",
    "write_iolog={outside}/x": "a trace",
    "ioengine=filecreate\ndirectory={outside}": "many new files",
}
WALLS = {
    "landlock": wall._has_landlock,
    "bubblewrap": wall._has_bubblewrap,
}


@pytest.mark.parametrize("which", WALLS)
@pytest.mark.parametrize("option", ESCAPES)
def test_the_wall_holds_where_the_list_of_options_does_not(
    which: str,
    option: str,
    mounted: Path,
    victim: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not WALLS[which]():
        pytest.skip(f"there is no {which} here")
    monkeypatch.setattr(wall, "_has_landlock", lambda: which == "landlock")
    outside = tmp_path / "outside"
    outside.mkdir()
    text = f"{JOB}{option.format(victim=victim, outside=outside)}\n"
    monkeypatch.setattr(load.Load, "_text", lambda *_, **__: text)
    place = LiveRig()
    one = Experiment(
        Entry("job", Path("job.fio"), JOB), place.find_disk(str(mounted)), SchedulerSpec("none"), 1
    )
    try:
        place.run(one)
    except RunError as error:
        assert str(error).count("\n") == 0
    assert victim.read_bytes() == PRECIOUS
    assert list(outside.iterdir()) == []
    assert [path.name for path in mounted.iterdir()] == ["lost+found"]


def test_without_any_wall_that_is_said(
    mounted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wall, "_has_landlock", lambda: False)
    monkeypatch.setattr(wall, "_has_bubblewrap", lambda: False)
    job = tmp_path / "o.fio"
    job.write_text(JOB)
    code, said = run(job, mounted)
    assert code == 0 and f"blklab: {wall.NO_WALL}\n" in said


def test_fio_has_no_rights_of_root_but_those_that_jobs_need(mounted: Path, tmp_path: Path) -> None:
    if not wall._has_landlock():
        pytest.skip("this kernel has no Landlock")
    with Endless(ENDLESS, mounted, tmp_path) as (_, fio):
        status = dict(
            line.split(":\t", 1) for line in Path(f"/proc/{fio}/status").read_text().splitlines()
        )
        # CAP_IPC_LOCK is 14, CAP_SYS_NICE 23.
        assert int(status["CapEff"], 16) == int(status["CapBnd"], 16) == 1 << 14 | 1 << 23
        assert status["NoNewPrivs"] == "1"
        assert Path(f"/proc/{fio}/oom_score_adj").read_text() == "1000\n"


class Endless:
    """A live run as a process of its own, and fio's first process, once it reads."""

    def __init__(self, text: str, disk: Path, tmp_path: Path) -> None:
        job = tmp_path / "endless.fio"
        job.write_text(text)
        self._command = [sys.executable, "-m", "blklab", "fio", str(job), "--no-keep"]
        self._command += ["--rig", "live", "--disk", str(disk)]

    def __enter__(self) -> tuple[subprocess.Popen[bytes], int]:
        self._blklab = subprocess.Popen(self._command, stderr=subprocess.PIPE)
        deadline_s = time.monotonic() + 60
        while time.monotonic() < deadline_s and self._blklab.poll() is None:
            for pid in (path.name for path in Path("/proc").iterdir() if path.name.isdecimal()):
                if self._is_ours(int(pid)):
                    return self._blklab, int(pid)
        assert self._blklab.stderr is not None
        self._blklab.kill()
        raise AssertionError(self._blklab.stderr.read().decode())

    def __exit__(self, *_: object) -> None:
        self._blklab.send_signal(signal.SIGTERM)
        self._blklab.communicate()

    def _is_ours(self, pid: int) -> bool:
        try:
            name = Path(f"/proc/{pid}/comm").read_text()
            while name == "fio\n" and pid > 1:
                pid = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
                if pid == self._blklab.pid:
                    return True
        except OSError:
            pass
        return False


GROUPED = "[a]\nrw=randread\nsize=1M\ncgroup=a\ncgroup_weight=300\n{more}[b]\nsize=1M\ncgroup=a/b\n"


def groups() -> set[str]:
    """All I/O cgroups of this machine below the top."""
    top = cgroups._hierarchy(HERE)
    if top is None or not os.access(top, os.W_OK):
        pytest.skip("no cgroups of I/O are mounted, or no permission to make one")
    return {str(path.relative_to(top)) for path in top.rglob("*") if path.is_dir()}


def test_cgroups_of_a_job_are_inside_one_of_the_runs_own_and_go_with_it(
    mounted: Path, tmp_path: Path, journal: Journal
) -> None:
    before = groups()
    job = tmp_path / "grouped.fio"
    job.write_text(GROUPED.format(more=""))
    code, said = run(job, mounted, "--scheduler", "bfq")
    assert code == 0, said
    assert groups() <= before and journal.keys() == []
    with Endless(GROUPED.format(more="runtime=600\ntime_based\n"), mounted, tmp_path):
        top = cgroups._hierarchy(HERE)
        assert top is not None
        deadline_s = time.monotonic() + 30
        members: list[str] = []
        while not members and time.monotonic() < deadline_s:
            members = [text for file in top.glob("blklab-*/a/cgroup.procs")
                       if (text := file.read_text())]  # fmt: skip
        assert members
    assert groups() <= before and journal.keys() == []


def test_cgroups_of_a_run_that_was_killed_are_removed_by_restore(
    mounted: Path, tmp_path: Path, journal: Journal
) -> None:
    before = groups()
    endless_job = GROUPED.format(more="runtime=600\ntime_based\n")
    with Endless(endless_job, mounted, tmp_path) as (blklab, _):
        assert len(groups() - before) == 3
        blklab.kill()
        blklab.wait()
    done = CliRunner().invoke(app, ["restore"])
    assert done.exit_code == 0 and ": removed\n" in done.stdout
    assert groups() <= before and journal.keys() == []


def test_fio_has_shared_memory_and_pids_of_its_own_which_end_with_it(
    mounted: Path, tmp_path: Path
) -> None:
    if not program.confined():
        pytest.skip("no namespaces for this user")
    with Endless(ENDLESS, mounted, tmp_path) as (_, fio):
        for kind in ("ipc", "pid"):
            own, its = (Path(f"/proc/{pid}/ns/{kind}").readlink() for pid in ("self", fio))
            assert own != its, kind
