"""Guests that share this machine's memory."""

from __future__ import annotations

import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest

from blklab.base.catalogue import Entry
from blklab.domain import specs
from blklab.domain.experiment import Experiment, SchedulerSpec
from blklab.rigs.kernel import outcome
from blklab.rigs.kernel.boot import boot
from blklab.rigs.kernel.errors import KernelError
from blklab.rigs.kernel.memory import Memory
from blklab.rigs.kernel.modelled_host import KEPT_FREE_MIB
from blklab.rigs.kernel.rig import KernelRig
from blklab.rigs.kernel.view import View
from tests import real_kernel
from tests.hostile_kernel import image, needs_wall

WAIT_S = 10.0


def test_guests_that_need_more_than_there_is_run_one_after_the_other() -> None:
    memory = Memory(lambda: 100)
    running: set[int] = set()
    most: list[int] = []
    lock = threading.Lock()

    def guest(needed: int) -> None:
        with memory.taken(needed, lambda: False):
            with lock:
                running.add(threading.get_ident())
                most.append(len(running))
            with lock:
                running.discard(threading.get_ident())

    with ThreadPoolExecutor(4) as pool:
        # The first one alone needs more than there is.
        list(pool.map(guest, [150, *[60] * 50]))
    assert most == [1] * 51


def test_guests_with_enough_memory_run_side_by_side() -> None:
    memory = Memory(lambda: 100)
    together = threading.Barrier(2)

    def guest(needed: int) -> None:
        with memory.taken(needed, lambda: False):
            together.wait(WAIT_S)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(guest, [40, 60]))


def test_memory_of_running_guests_is_not_counted_twice() -> None:
    told = iter([100, 30])
    memory = Memory(lambda: next(told))
    with memory.taken(70, lambda: False), memory.taken(30, lambda: False):
        pass
    # Without guests the machine is asked again.
    with memory.taken(30, lambda: False):
        pass
    assert next(told, None) is None


def test_a_guest_that_is_not_wanted_any_more_does_not_wait() -> None:
    memory = Memory(lambda: 100)
    with memory.taken(100, lambda: False), memory.taken(100, lambda: True):
        pass


@pytest.mark.parametrize(
    ("job", "needed_mib"),
    [
        ("size=100m", 100 + 256),
        ("size=100m\nnumjobs=2\nfilename=one", 100 + 256),
        # 8 GiB of pages, and 18.3 bytes for each KiB of them.
        ("size=100g", 8 * 1024 + 146 + 80 + KEPT_FREE_MIB),
        ("direct=1\nsize=100g", 256 + KEPT_FREE_MIB),
        ("filename=/dev/vda\nsize=100m", 8 * 1024 + 146 + 80 + KEPT_FREE_MIB),
    ],
)
def test_a_job_needs_no_more_memory_than_its_files_fill(job: str, needed_mib: int) -> None:
    entry = Entry("job", Path("job.fio"), f"[a]\nrw=read\n{job}\n")
    experiment = Experiment(entry, specs.disk("su800-128gb"), SchedulerSpec("none"), 1)
    rig = KernelRig(real_kernel.image().parent.name, "native")
    assert rig._job(experiment).needed_bytes == needed_mib << 20


def test_a_guest_with_too_little_memory_for_its_page_cache_is_told() -> None:
    found: dict[str, Any] = {"rounded": [], "memory_short_kib": 5120}
    disk = specs.disk("su800-128gb")
    assert "the page cache has 5120 KiB less than memory_kb" in outcome.notes(
        cast(outcome.Outcome, found), disk, 4
    )
    found["memory_short_kib"] = 0
    assert not any(
        "memory_kb" in note for note in outcome.notes(cast(outcome.Outcome, found), disk, 4)
    )


def test_a_guest_of_a_bare_disk_has_nothing_in_its_page_cache_when_a_run_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Pages of its own program would be the oldest, and differ whenever it is compiled.
    found: list[Any] = []
    notes = outcome.notes

    def kept(result: outcome.Outcome, *rest: Any) -> tuple[str, ...]:
        found.append(result)
        return notes(result, *rest)

    monkeypatch.setattr(outcome, "notes", kept)
    entry = Entry("job", Path("job.fio"), "[a]\nrw=read\nbs=64k\nsize=4m\n")
    experiment = Experiment(entry, specs.disk("su800-128gb"), SchedulerSpec("none"), 1)
    KernelRig(real_kernel.image().parent.name, "native").run(experiment)
    assert [result["memory_cached_kib"] for result in found] == [0]


@needs_wall
@pytest.mark.parametrize("how", ["os.kill(os.getpid(), 9)", "os._exit(137)"])
def test_a_guest_that_the_system_kills_says_so_with_its_memory(how: str) -> None:
    with tempfile.TemporaryDirectory(prefix="blklab-test-") as directory:
        place = Path(directory)
        place.chmod(0o755)
        with (
            boot(image(place, how), ["/init"], {}, View({}), memory_mib=256) as guest,
            pytest.raises(KernelError) as failed,
        ):
            guest.wait()
    assert str(failed.value).startswith(
        "SIGKILL ended the guest's process, which the system sends when memory is short: the guest "
        "may need 256 MiB; "
    )
    assert str(failed.value).endswith(" are available now")
