"""The live rig writes to a device only where that is said."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from blklab.domain.experiment import Experiment, RigSpec, SchedulerSpec
from blklab.errors import InputError
from blklab.rigs import rig
from blklab.rigs.live import danger
from tests import loop_device
from tests.live_runs import MIB, NEEDS_PROGRAMS, READS, WRITES, disk_of, entry

pytestmark = NEEDS_PROGRAMS


def test_a_device_is_read_but_not_written_to_unless_that_is_said(bare: str) -> None:
    node = Path(f"/dev/{bare}")
    place = rig("live")
    one = Experiment(entry(READS), place.find_disk(str(node)), SchedulerSpec("kyber"), 1)
    with place.prepared([one], print):
        assert place.run(one).jobs[0].read.ios > 0
    both = Experiment(
        entry(WRITES + WRITES.replace("[w]", "[v]")), one.disk, SchedulerSpec("none"), 1
    )
    with pytest.raises(InputError, match="--write-device"), place.prepared([both], print):
        pass
    assert node.read_bytes() == bytes(loop_device.SIZE_BYTES)
    place = rig(RigSpec("live", write_device=True))
    with place.prepared([both], print):
        result = place.run(both)
    assert [job.write.bytes for job in result.jobs] == [MIB, MIB]
    # Each job has its own piece; nothing is written after the pieces.
    content = node.read_bytes()
    assert any(content[: 4 * MIB]) and any(content[4 * MIB : 8 * MIB])
    assert not any(content[8 * MIB :])


def test_a_known_signature_is_overwritten_only_under_the_full_id(bare: str) -> None:
    node = Path(f"/dev/{bare}")
    subprocess.run(["mkswap", str(node)], check=True, capture_output=True)
    before = node.read_bytes()
    for overwrite in (None, bare):
        place = rig(RigSpec("live", write_device=True, overwrite=overwrite))
        one = Experiment(entry(WRITES), place.find_disk(str(node)), SchedulerSpec("none"), 1)
        with pytest.raises(InputError, match=r"swap|not the full id"), place.prepared([one], print):
            pass
    assert node.read_bytes() == before
    place = rig(RigSpec("live", overwrite=danger.full_id(bare)))
    with place.prepared([one], print):
        place.run(one)
    assert node.read_bytes() != before


def test_a_mounted_device_is_not_written_to_even_under_its_full_id(mounted: Path) -> None:
    name = disk_of(mounted).name
    node = Path(f"/dev/{name}")
    (mounted / "thesis").write_text("mine")
    os.sync()
    before = node.read_bytes()
    place = rig(RigSpec("live", write_device=True, overwrite=danger.full_id(name)))
    one = Experiment(entry(WRITES), place.find_disk(str(node)), SchedulerSpec("none"), 1)
    with (
        pytest.raises(InputError, match=f"it is mounted at {mounted}.*never written to"),
        place.prepared([one], print),
    ):
        pass
    assert node.read_bytes() == before


def test_a_device_cannot_be_mounted_between_its_check_and_the_end_of_the_runs(
    bare: str, tmp_path: Path
) -> None:
    node = Path(f"/dev/{bare}")
    subprocess.run(["mkfs.ext4", "-q", str(node)], check=True)
    place = rig(RigSpec("live", overwrite=danger.full_id(bare)))
    one = Experiment(entry(WRITES), place.find_disk(str(node)), SchedulerSpec("none"), 1)
    mount = ["mount", str(node), str(tmp_path)]
    with place.prepared([one], print):
        assert subprocess.run(mount, check=False, capture_output=True).returncode != 0
        place.run(one)
        assert subprocess.run(mount, check=False, capture_output=True).returncode != 0
