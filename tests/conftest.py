"""Fixtures for tests of what Python does on top of the core."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import blklab
from blklab import programs as known_programs
from blklab.base.journal import Journal
from blklab.base.signals import Signals
from blklab.domain import core, recordings, scheduler, specs
from blklab.host.devices.queue import Queue
from blklab.host.roots import Roots
from blklab.rigs import sim
from blklab.rigs.kernel import boot, rig
from blklab.settings import record
from tests import browser as real_browser
from tests import fake_core, forked, loop_device, real_kernel, real_postgres, real_tracefs
from tests.applying import Asked, loop_disk, own_roots

# How long an example takes is this machine's: other programs, and other tests, have its CPUs too.
settings.register_profile(
    "shared machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("shared machine")


def pytest_configure(config: pytest.Config) -> None:
    """A first build of a kernel takes minutes, and says so.

    What a shell starts in the background ignores Ctrl-C and SIGQUIT, and so would all that tests
    start.
    Programs that `make test` builds lie beside Python; those of the machine come first.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    # Before the tests are collected, which are skipped without.
    if real_tracefs.mount():
        config.add_cleanup(real_tracefs.unmount)
    real_kernel.let_it_tell(config)
    os.environ["PATH"] += f":{Path(sys.executable).parent}"
    if _starts_workers(config):
        # They would build it at the same time, and unheard.
        real_kernel.image_or_reason()
    if told := getattr(config, "workerinput", {}).get("kernel"):
        real_kernel.built_before = Path(told)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tells a worker of pytest-xdist where the kernel is."""
    found = real_kernel.image_or_reason()
    node.workerinput["kernel"] = str(found) if isinstance(found, Path) else None


def _starts_workers(config: pytest.Config) -> bool:
    return bool(config.getoption("numprocesses", None)) and not hasattr(config, "workerinput")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One worker more than CPUs: many tests wait, for disks, timers and servers."""
    return len(os.sched_getaffinity(0)) + 1


# Settings of disks, cgroups, tracefs and the page cache are the whole machine's: these tests run
# one after another.
_OF_MACHINE = re.compile(r"test_(apply|cli|device|homes|live|machine|rights|study_live|udev)\w*")
# These only empty the page cache, see `page_cache`.
_PROGRAMS = re.compile(r"test_programs\w*")


# Tests that take minutes begin first, so that no worker starts one at the end.
_FIRST = ("machine", "test_virtual_machine", "programs", "test_contributing")
# They build other kernels, for minutes on all CPUs, and wait for each other. Those that take
# longest begin first.
_LAST = (
    "test_kernel_programs",
    "test_file_systems",
    "test_kernel_added",
    "test_bisect",
    "test_kernel_nfs",
    "test_study_kernels",
    "test_kernel_aged",
    "test_kernel_commits",
    "test_verify_parted",
    "test_kernel_run",
)


# Before pytest-xdist, which takes the groups from the marks.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Which tests one worker runs: those of one file, and all that change the machine."""
    for item in items:
        item.add_marker(pytest.mark.xdist_group(group_of(item.path.stem)))
    rank = {group: place - len(_FIRST) for place, group in enumerate(_FIRST)}
    rank |= {group: place for place, group in enumerate(_LAST, start=1)}
    items.sort(key=lambda item: rank.get(group_of(item.path.stem), 0))


def group_of(module: str) -> str:
    """The group of a module's tests: one worker runs all tests of a group."""
    groups = {"machine": _OF_MACHINE, "programs": _PROGRAMS}
    return next((group for group, names in groups.items() if names.fullmatch(module)), module)


@pytest.fixture(scope="session")
def kernel() -> str:
    """Key of the default kernel."""
    return real_kernel.image().parent.name


@pytest.fixture(autouse=True, scope="session")
def guests_beside_others(request: pytest.FixtureRequest) -> None:
    """The other workers have guests too: one that has two CPUs would spin while others need
    them."""
    inputs = getattr(request.config, "workerinput", None)
    if inputs is None:
        return
    cpus = sorted(os.sched_getaffinity(0))
    others = {*range(inputs["workercount"])} - {int(inputs["workerid"].removeprefix("gw"))}
    boot.other_guests.update(cpus[other % len(cpus)] for other in others)


@pytest.fixture(autouse=True, scope="session")
def impatience() -> None:
    """A guest that hangs costs a run of all tests ten minutes, not half an hour."""
    rig._TIMEOUT_S = min(rig._TIMEOUT_S, 600.0)


@pytest.fixture(autouse=True)
def page_cache(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Nothing beside a test with the mark `keeps_page_cache` empties the page cache."""
    alone = request.node.get_closest_marker("keeps_page_cache")
    if not alone and group_of(request.path.stem) != "programs":
        yield
        return
    # The workers' common directory.
    with (tmp_path_factory.getbasetemp().parent / "page-cache").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield


@pytest.fixture(autouse=True)
def own_store(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """No test writes into the user's store; programs that a test starts do not either."""
    file = tmp_path_factory.mktemp("store") / "results.db"
    monkeypatch.setenv("BLKLAB_STORE", str(file))
    return file


@pytest.fixture(autouse=True)
def journal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Journal:
    """No test writes into this machine's journal either."""
    made = Journal(tmp_path / "journal")
    monkeypatch.setenv("BLKLAB_JOURNAL", str(made.directory))
    return made


@pytest.fixture
def signals() -> Iterator[Signals]:
    """Guards what the test does, as commands are guarded."""
    with Signals.guarding() as guard:
        yield guard


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 MiB on a loop device."""
    with loop_device.file_system(tmp_path, 64 << 20) as place:
        yield place


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[str]:
    """The name of a loop device with nothing on it."""
    loop_device.require()
    with loop_device.attached(tmp_path) as name:
        yield name


@pytest.fixture(scope="session")
def postgres() -> Iterator[Path]:
    """A server for the whole session: the directory of its socket."""
    if why := real_postgres.missing():
        pytest.skip(why)
    with real_postgres.server() as directory:
        yield directory


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[real_browser.Browser]:
    """A browser for the whole session."""
    yield from real_browser.started(tmp_path_factory.mktemp("browser"))


@pytest.fixture(scope="session")
def forking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The first words of a command of blklab's that is a fork of a process with all modules."""
    with forked.started(tmp_path_factory.mktemp("forks")) as words:
        yield words


@pytest.fixture(params=["sqlite", "postgresql"])
def anywhere(request: pytest.FixtureRequest, own_store: Path) -> str:
    """An empty store, as for ``--store``: once a file, once a database of a real server."""
    if request.param == "sqlite":
        return str(own_store)
    return real_postgres.new_database(request.getfixturevalue("postgres"))


@pytest.fixture
def on_both(anywhere: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The same as the store of everything that the test runs."""
    monkeypatch.setenv("BLKLAB_STORE", anywhere)
    return anywhere


@pytest.fixture
def programs() -> Asked:
    """What apply calls."""
    return Asked()


@pytest.fixture
def roots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Roots:
    """Where apply writes."""
    monkeypatch.delenv(record.VARIABLE, raising=False)
    return own_roots(tmp_path)


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[Queue]:
    """A real disk that may be changed."""
    with loop_disk(tmp_path) as found:
        yield found


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A stand-in core, two disks and four workloads; the directory they lie in is current."""
    # For modules that load it later, and for those that have loaded it.
    monkeypatch.setitem(sys.modules, "blklab._core", fake_core)
    monkeypatch.setattr(blklab, "_core", fake_core, raising=False)
    for module in (core, known_programs, recordings, scheduler, sim, specs):
        monkeypatch.setattr(module, "_core", fake_core)
    disks, workloads = tmp_path / "disks", tmp_path / "workloads"
    disks.mkdir()
    workloads.mkdir()
    (disks / "desktop-5900rpm.toml").write_text("# a disk\nrpm = 5900\n")
    (disks / "950pro-256gb.toml").write_text("# an SSD\n")
    for name in ("seqread", "seqwrite", "randread", "randwrite"):
        text = f"# {name}: one process <i>&amp;</i>\n[{name}]\nrw={name}\n"
        (workloads / f"{name}.fio").write_text(text)
    monkeypatch.setenv("BLKLAB_DISKS", str(disks))
    monkeypatch.setenv("BLKLAB_WORKLOADS", str(workloads))
    monkeypatch.chdir(tmp_path)
    return tmp_path
