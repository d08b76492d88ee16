"""Only flash is overwritten before the first run."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blklab.base.catalogue import Entry
from blklab.domain.experiment import Experiment, SchedulerSpec
from blklab.errors import RunError
from blklab.host.roots import Roots
from blklab.rigs.live import precondition, program
from blklab.rigs.live.rig import LiveRig
from blklab.rigs.live.target import Target
from tests import loop_device

MIB = 1 << 20
TWO = "[w]\nrw=randwrite\nbs=4k\nsize=3m\nio_size=64k\n[r]\nrw=randread\nsize=2m\nio_size=64k\n"
READS = "[r]\nrw=randread\nsize=2m\nio_size=64k\n"


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[str]:
    """An empty loop device that reports itself as non-rotating."""
    if any(shutil.which(name) is None for name in program.PACKAGES):
        pytest.skip(f"needs {', '.join(program.PACKAGES)}")
    loop_device.require()
    with loop_device.attached(tmp_path) as name:
        attribute = Path(f"/sys/block/{name}/queue/rotational")
        before = attribute.read_text()
        attribute.write_text("0")
        try:
            yield name
        finally:
            attribute.write_text(before)


def prepared(loop: str, text: str, **options: str) -> tuple[list[bool], list[str]]:
    """The written MiB of the device before the first run, and the notes."""
    place = LiveRig(write_device="yes", **options)
    disk = place.find_disk(f"/dev/{loop}")
    one = Experiment(Entry("job", Path("job.fio"), text), disk, SchedulerSpec("none"), 1)
    lines: list[str] = []
    with place.prepared([one, one], lines.append):
        content = Path(f"/dev/{loop}").read_bytes()
        assert place.run(one).jobs
    blocks = [content[at : at + MIB] for at in range(0, len(content), MIB)]
    # None is like another, and every page of each was written.
    written = [block for block in blocks if any(block)]
    assert len(set(written)) == len(written)
    assert all(any(block[at : at + 4096]) for block in written for at in range(0, MIB, 4096))
    return [any(block) for block in blocks], lines


def test_flash_is_written_over_before_the_first_run_of_jobs_that_write(loop: str) -> None:
    blocks, lines = prepared(loop, TWO)
    assert blocks == [True] * 5 + [False] * (len(blocks) - 5)
    assert lines == [
        f"2 runs on /dev/{loop}: about 2 s plus 2 of them without a runtime, after "
        "5 MiB of it have been overwritten (--no-precondition skips this)"
    ]


@pytest.mark.parametrize(
    ("text", "options", "rotational"),
    [(TWO, {"no_precondition": "yes"}, "0"), (READS, {}, "0"), (TWO, {}, "1")],
)
def test_nothing_else_is_written_over(
    loop: str, text: str, options: dict[str, str], rotational: str
) -> None:
    Path(f"/sys/block/{loop}/queue/rotational").write_text(rotational)
    blocks, lines = prepared(loop, text, **options)
    assert not any(blocks)
    assert lines == [f"2 runs on /dev/{loop}: about 2 s plus 2 of them without a runtime"]


def test_a_directory_is_no_flash_and_of_several_disks_all_are(tmp_path: Path) -> None:
    for name, value in (("sda", "0"), ("sdb", "1")):
        place = tmp_path / f"sys/block/{name}/queue"
        place.mkdir(parents=True)
        (place / "rotational").write_text(f"{value}\n")
    roots = Roots(sys=tmp_path / "sys")

    def found(device: str | None, *disks: str) -> bool:
        return precondition.is_flash(Target(Path("/x"), device, disks), roots)

    assert found("sda1", "sda")
    assert not found(None, "sda")
    assert not found("sdb", "sdb")
    assert not found("md0", "sda", "sdb")
    assert not found("sdc", "sdc")


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=12))
def test_places_are_joined_without_loss(places: list[tuple[int, int]]) -> None:
    found = precondition.joined(places)
    whole = {byte for start, length in places for byte in range(start, start + length)}
    assert [byte for start, end in found for byte in range(start, end)] == sorted(whole)
    assert all(end < start for (_, end), (start, _) in pairwise(found))
    assert precondition.total_bytes(found) == len(whole)


def test_only_these_parts_are_written_and_long_steps_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precondition, "_LONG_S", 0.0)
    monkeypatch.setattr(precondition, "_FLUSHED_BYTES", MIB)
    file = tmp_path / "disk"
    lines: list[str] = []
    file.write_bytes(bytes(8 * MIB))
    precondition.write_over(file, [(MIB, 3 * MIB + 100), (5 * MIB, 6 * MIB)], lines.append)
    content = file.read_bytes()
    assert len(content) == 8 * MIB
    unchanged = content[:MIB], content[3 * MIB + 100 : 5 * MIB], content[6 * MIB :]
    assert not any(map(any, unchanged))
    assert any(content[3 * MIB : 3 * MIB + 100]) and any(content[6 * MIB - 4096 : 6 * MIB])
    [line] = lines
    assert line.startswith(f"overwriting {file}: about ") and line.endswith(" more")


def test_a_device_that_refuses_is_one_line() -> None:
    with pytest.raises(RunError) as failed:
        precondition.write_over(Path("/dev/full"), [(0, MIB)], print)
    assert str(failed.value) == (
        "/dev/full: could not be overwritten before the first run: No space left on device"
    )
